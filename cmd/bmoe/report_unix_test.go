//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"

	"github.com/creack/pty"
)

// An interrupted report has what was whole by then, and says so.
func TestInterruptedReport(t *testing.T) {
	for until, tells := range map[string]string{"1 of 2": "while the drive was measured", "run 2 of": "while the engine was measured"} {
		dir := filepath.Join(conform.TempDir(t), "r")
		cmd := program("--report", dir, "-n", "8", "--cells", "100", "--simulate-host", "ntfs")
		pipe, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), until) {
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(pipe)
		if err != nil {
			t.Error(err)
		}
		if exit := new(exec.ExitError); !errors.As(cmd.Wait(), &exit) || exit.ExitCode() != 130 {
			t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), rest)
		}
		row, files := reported(t, dir)
		if len(row.LeftOut) != 1 || !strings.Contains(row.LeftOut[0], tells) || !strings.Contains(files["report.txt"], tells) {
			t.Errorf("left out: %q", row.LeftOut)
		}
		if engine := until != "1 of 2"; engine != (row.Engine != nil) || engine && !row.IOBench.Complete {
			t.Errorf("interrupted at %s: %+v", until, row)
		}
	}
}

// On a terminal somebody is asked first, and nothing is written against a no.
func TestReportAsks(t *testing.T) {
	for answers, written := range map[string]bool{"n\n": false, "\ns\ny\n": true} {
		dir := filepath.Join(conform.TempDir(t), "r")
		cmd := program("--report", dir, "-n", "4", "--cells", "1")
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		var seen strings.Builder
		buf := make([]byte, 4096)
		answered := false
		for {
			n, err := terminal.Read(buf)
			seen.Write(buf[:n])
			if !answered && strings.Contains(seen.String(), "Write them?") {
				answered = true
				if _, err := io.WriteString(terminal, answers); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				break // the terminal reports EIO at the end
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v:\n%s", err, seen.String())
		}
		terminal.Close()
		_, err = os.Stat(dir)
		if there := err == nil; there != written || written != strings.Contains(seen.String(), "--- report.json") || written == strings.Contains(seen.String(), "Nothing was written.") {
			t.Errorf("answered %q: written %v\n%s", answers, there, seen.String())
		}
		if !strings.Contains(seen.String(), "left)") || !strings.Contains(seen.String(), "engine: run ") {
			t.Errorf("no progress in\n%s", seen.String())
		}
	}
}
