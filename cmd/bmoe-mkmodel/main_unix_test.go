//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"bmoe/internal/cli"
)

// asProgram makes the test binary run as the program.
const asProgram = "BMOE_MKMODEL_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Whatever asks the program to end while it writes, nothing is left of the file.
func TestSignalsLeaveNothingBehind(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "--preset", "qwen3-30b-a3b", "-o", dir+"/m.gguf")
		cmd.Env = append(os.Environ(), asProgram+"=1")
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		for {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) > 0 {
				break
			}
			if cmd.Process.Signal(syscall.Signal(0)) != nil {
				break // it has ended; what follows says how
			}
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Signal(sig)
		cmd.Wait()
		entries, err := os.ReadDir(dir)
		if code := cmd.ProcessState.ExitCode(); !kill.Stop() || err != nil || code != cli.Interrupted || len(entries) != 0 || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%v: exit %d, %q, left behind %v (%v)", sig, code, errs.String(), entries, err)
		}
	}
}
