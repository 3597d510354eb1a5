//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bmoe/internal/conform"
	"bmoe/profile"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
)

// A reader that leaves ends the run at once, without a word.
func TestClosedOutputEndsTheRunQuietly(t *testing.T) {
	for _, more := range [][]string{nil, {"--progress"}} {
		cmd := program(append([]string{"-p", dogStory, "--temp", "0", "--simulate-host", "ntfs"}, more...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(pipe).ReadByte(); err != nil {
			t.Fatal(err)
		}
		pipe.Close()
		err = cmd.Wait()
		if err != nil || errs.String() != "" {
			t.Errorf("%v: %v, standard error %q", more, err, errs.String())
		}
	}
}

// Ctrl+C, a kill or a hangup during the answer: what there is has been written,
// and the code is 130.
func TestInterruptDuringDecode(t *testing.T) {
	for _, c := range []struct {
		kind string
		sig  os.Signal
	}{
		{"", os.Interrupt}, {"", syscall.SIGTERM}, {"", syscall.SIGHUP},
		{"--progress", os.Interrupt}, {"--progress", syscall.SIGTERM}, {"--progress", syscall.SIGHUP},
	} {
		args := []string{"-p", dogStory, "--simulate-host", "ntfs", "--temp", "0"}
		if c.kind != "" {
			args = append(args, c.kind)
		}
		cmd := program(args...)
		var errs strings.Builder
		cmd.Stderr = &errs
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(pipe)
		first, err := in.ReadString(' ')
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		var rest strings.Builder
		if _, err := in.WriteTo(&rest); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Contains(errs.String(), "goroutine") {
			t.Errorf("%s %v: exit code %d, %q, standard error %q", c.kind, c.sig, code, first+rest.String(), errs.String())
		}
		if c.kind == "--progress" && !strings.Contains(rest.String(), `"cancelled":true,"stop_reason":"cancelled"`) {
			t.Errorf("the lines do not tell of it: %s", rest.String())
		}
	}
}

// A hangup that is ignored, as under nohup, ends nothing.
func TestIgnoredHangupGoesOn(t *testing.T) {
	cmd := program("-p", dogStory, "--simulate-host", "ntfs", "--temp", "0", "-n", "12", "--progress")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, cmd.Args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	if _, err := in.WriteTo(&rest); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(rest.String(), "BMOE_DONE") {
		t.Errorf("%v: %s", err, rest.String())
	}
}

// A kill or a hangup ends the line chat in good order too, at its prompt.
func TestSignalsEndTheLineChat(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		cmd := program("--plain")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		seen, buf := "", make([]byte, 4096)
		for !strings.Contains(seen, "you: ") {
			n, err := out.Read(buf)
			seen += string(buf[:n])
			if err != nil {
				t.Fatalf("%v after %q", err, seen)
			}
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		in.Close()
		if code := cmd.ProcessState.ExitCode(); !timer.Stop() || code != 130 {
			t.Errorf("%v: exit code %d", sig, code)
		}
	}
}

// Ctrl+C while the model is being opened, read and run: never a hang, never a word.
func TestInterruptDuringLoad(t *testing.T) {
	for _, read := range []string{"1", "2", "9", "60"} { // of the probe, the dense weights, experts
		cmd := program("-p", dogStory, "--simulate-host", "ntfs", "--temp", "0")
		at := filepath.Join(conform.TempDir(t), "paused")
		cmd.Env = append(cmd.Env, faultVariable+"=pause", armVariable+"="+at, pauseVariable+"="+read)
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		for _, err := os.Stat(at); err != nil; _, err = os.Stat(at) {
			if cmd.Process.Signal(syscall.Signal(0)) != nil {
				t.Fatalf("ended before read %s", read)
			}
			time.Sleep(time.Millisecond)
		}
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), os.Remove(at)); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); !kill.Stop() || code != 130 || strings.Contains(errs.String(), "goroutine") || strings.Contains(errs.String(), "failed") {
			t.Errorf("at read %s: exit code %d, %q", read, code, errs.String())
		}
	}
}

// A prompt that never comes to its end can be interrupted.
func TestInterruptWhileThePromptIsAwaited(t *testing.T) {
	cmd := program("-n", "1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	// More than a pipe holds: once it is written, the program reads.
	if _, err := in.Write(make([]byte, 256<<10)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); !kill.Stop() || code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// A plain run on a terminal, interrupted by a key during the answer: the
// terminal is as before. The model's text cannot command it.
func TestInterruptInATerminal(t *testing.T) {
	ptm, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptm.Close()
	defer pts.Close()
	before, err := term.GetState(pts.Fd())
	if err != nil {
		t.Fatal(err)
	}
	cmd := program("-p", dogStory, "--simulate-host", "ntfs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pts, pts, pts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	seen := ""
	for !strings.Contains(seen, "time") { // of "Once upon a time"
		n, err := ptm.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(buf[:n])
	}
	if _, err := ptm.Write([]byte{3}); err != nil { // Ctrl+C
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		for {
			if _, err := ptm.Read(buf); err != nil {
				return
			}
		}
	}()
	go func() { cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		cmd.Process.Kill()
		t.Fatal("did not end")
	}
	after, err := term.GetState(pts.Fd())
	if err != nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 130 || *after != *before {
		t.Errorf("exit code %d, terminal restored %v", code, *after == *before)
	}
}

// Anonymous memory stays under what the run says it allocated.
func TestMemoryIsAccountedFor(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system does not tell anonymous memory apart: ", err)
	}
	args := []string{"-p", dogStory, "-n", "200", "--temp", "0", "--repeat-penalty", "1"}
	var res profile.Result
	parseJSON(t, succeeds(t, append(args, "--json")...).stdout, &res)
	m := res.Memory
	stated := m.DenseMiB + m.CacheMiB + m.KVMiB + m.ScratchMiB + m.VocabMiB + m.RecordsMiB + m.RuntimeMiB
	// The budget bounds what slots take, and little of it is left over.
	budget := res.Cache.BudgetMiB.Value
	if m.CacheMiB < 0.95*budget || m.CacheMiB > 1.03*budget+1 || m.DenseMiB == 0 || m.KVMiB == 0 || m.ScratchMiB == 0 || m.VocabMiB == 0 {
		t.Errorf("memory: %+v", m)
	}

	cmd := program(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak, samples := 0.0, 0
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		case <-time.After(2 * time.Millisecond):
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if err != nil {
				continue // it has just ended
			}
			for line := range strings.Lines(string(status)) {
				var kib float64
				if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kib); n == 1 && kib > 0 {
					peak = max(peak, kib/1024)
					samples++
				}
			}
		}
	}
	t.Logf("peak RssAnon %.1f MiB in %d samples, stated %.1f: %+v", peak, samples, stated, m)
	if samples < 5 {
		t.Fatalf("only %d samples", samples)
	}
	// Two MiB for the program's own variables and its threads' stacks, which
	// the runtime does not count.
	if peak > stated+2 {
		t.Errorf("%.1f MiB of anonymous memory, but only %.1f are stated: %+v", peak, stated, m)
	}
}

// Without room for the output, the run fails and says so.
func TestOutputThatFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer full.Close()
	for _, args := range [][]string{{"-p", "hi"}, {"-p", "hi", "--json"}, {"-p", "hi", "--progress"}, {"--help"}, {"--tokenize", "hi"}} {
		cmd := program(args...)
		var errs strings.Builder
		cmd.Stdout, cmd.Stderr = full, &errs
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || strings.Count(errs.String(), "writing to standard output: no space left") != 1 {
			t.Errorf("%q: %v, %q", args, err, errs.String())
		}
	}
}

// What is no file is refused where a file has to be; a prompt may come through a
// pipe, and one Ctrl+C ends the wait for it. So it does a template that goes on.
func TestPipesAndInterrupts(t *testing.T) {
	dir := conform.TempDir(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{pipe, "-p", "x"}, {"--chat-template-file", pipe, "-p", "x"}, {"--conversation", pipe, "--show-prompt"}} {
		refused(t, 1, []string{"regular file", pipe}, args...)
	}
	// opened returns the pipe's other end once the program waits at its own.
	opened := func() *os.File {
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				return f
			}
		}
		t.Fatal("nobody opens the pipe")
		return nil
	}
	endless := temp(t, "endless.jinja", []byte("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"))
	for _, c := range []struct {
		prompt string
		args   []string
	}{{"", nil}, {"hello", []string{"--show-prompt", "--chat-template-file", endless}}, {"hello", []string{"--chat-template-file", endless}}} {
		cmd := program(append(c.args, "-f", pipe)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		f := opened()
		if c.prompt != "" {
			if _, err := f.WriteString(c.prompt); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		f.Close()
		if code := cmd.ProcessState.ExitCode(); !kill.Stop() || code != 130 || errs.String() != "" {
			t.Errorf("%q: exit code %d, %q", c.args, code, errs.String())
		}
	}
	// The prompt through the pipe.
	cmd := program("--show-prompt", "--raw", "-f", pipe)
	go func() {
		f := opened()
		f.WriteString("Once upon")
		f.Close()
	}()
	if r := finish(t, cmd); r.code != 0 || !strings.HasPrefix(r.stdout, "Once upon\n") {
		t.Errorf("%+v", r)
	}
}

// Logits may go into a pipe; one Ctrl+C ends the wait for its reader.
func TestLogitsIntoAPipe(t *testing.T) {
	pipe := filepath.Join(conform.TempDir(t), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Nobody opens it.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := writeFile(ctx, pipe, func(io.Writer) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe that nobody opens: %v", err)
	}
	// Somebody opens it and reads nothing: it takes less than these logits.
	f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := program("--eval-tokens", strings.Repeat("1,", 199)+"1", "--save-logits", pipe, "-m", conform.File(t, "models/qwen3moe.gguf"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	for n := 0; n <= 0; time.Sleep(time.Millisecond) { // 0, or EAGAIN, until the first comes
		if cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal("the program has ended")
		}
		n, _ = syscall.Read(int(f.Fd()), make([]byte, 1))
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); !kill.Stop() || code != 130 {
		t.Errorf("a pipe that is not read: exit code %d", code)
	}
}

// What cannot be written whole is not left there in part.
func TestHalfAFileDoesNotStay(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "logits")
	ctx, cancel := context.WithCancel(context.Background())
	err := writeFile(ctx, path, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		cancel()
		_, err := w.Write([]byte("the rest"))
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
