//go:build unix

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestInterruptReportsWhatThereIs(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) { checkInterrupt(t, sig) })
	}
}

// checkInterrupt ends a run by a signal once it has measured something.
func checkInterrupt(t *testing.T, sig os.Signal) {
	t.Helper()
	path := testFile(t, 16<<20)
	out := filepath.Join(tempDir(t), "out.csv")
	cmd := program("-m", path, "--lanes", "1,2", "--seconds", "0.2", "--repeats", "1000", "--csv", out, "--mmap", "--via-hardlink")
	stdout, stderr, code := wait(t, cmd, func() {
		// The preamble is five lines; from the sixth on there are rows.
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if text, err := os.ReadFile(out); err == nil && strings.Count(string(text), "\n") >= 6 {
				break
			}
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Error(err)
		}
	})
	if code != 130 || stderr != "" || !strings.Contains(stdout, "incomplete") || !strings.Contains(stdout, "peak ") {
		t.Errorf("exit %d, stderr %q, stdout %q", code, stderr, stdout)
	}
	if text, err := os.ReadFile(out); err != nil || strings.Count(string(text), "\n") < 6 {
		t.Errorf("%v: the CSV file holds %q", err, text)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

func TestClosedOutputEndsTheRunQuietly(t *testing.T) {
	path := testFile(t, 16<<20)
	cmd := program("-m", path, "--lanes", "1,2,4,8", "--seconds", "0.3")
	var errs strings.Builder
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(pipe).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("%v, stderr %q", err, errs.String())
	}
}

// Without room for the output, the run fails and says so.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer full.Close()
	path := testFile(t, 1<<20)
	for _, args := range [][]string{{"--help"}, {"-m", path, "--lanes", "1", "--seconds", "0.05"}, {"-m", path, "--lanes", "1", "--seconds", "0.05", "--json"}} {
		cmd := program(args...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = full, &errs
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "writing to standard output: no space left") {
			t.Errorf("%q: %v, %q", args, err, errs.String())
		}
	}
}

func TestFileWithoutPermission(t *testing.T) {
	path := testFile(t, 1<<20)
	cmd := program("-m", path, "--seconds", "0.1")
	if os.Getuid() == 0 {
		// Root may read anything: let somebody else try, with a copy of the
		// program where he can reach it.
		if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		binary, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = filepath.Join(filepath.Dir(path), "program")
		if err := os.WriteFile(cmd.Path, binary, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := wait(t, cmd, nil)
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "permission denied") || !strings.Contains(stderr, "model.gguf") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestProgressOnlyForAWatcher runs the program on a terminal and looks for what
// the other tests, which have none, must not see.
func TestProgressOnlyForAWatcher(t *testing.T) {
	path := testFile(t, 4<<20)
	cmd := program("-m", path, "--lanes", "1,2", "--seconds", "0.1")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var seen strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := terminal.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			break // the terminal reports EIO at the end
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(seen.String(), "1/2  nothing (the drive), 1 lane ") || !strings.Contains(seen.String(), "left)") {
		t.Errorf("no progress in %q", seen.String())
	}
}

// TestMappedFileThatShrinksIsAnError: nothing is read through the mapping, so a
// shrinking file costs no SIGBUS. (Windows refuses to shrink a mapped file.)
func TestMappedFileThatShrinksIsAnError(t *testing.T) { checkShrinking(t, "--mmap") }
