//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/pool"
	"bmoe/flashio"
	"bmoe/internal/cli"
	"bmoe/internal/conform"
	"bmoe/internal/crash"
	"bmoe/internal/tty"
	"bmoe/internal/userdir"
	"bmoe/tui"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// faultVariable makes the program of the tests fail within itself: on a lane,
// on a compute worker, on a goroutine that is not the program's, or in a way that
// cannot be recovered from. armVariable names a file: a lane fails once it is there.
// With the fault "pause" nothing fails: the program makes that file at the read that
// pauseVariable counts, and goes on when it has been removed.
const (
	faultVariable = "BMOE_TEST_FAULT"
	armVariable   = "BMOE_TEST_ARM"
	pauseVariable = "BMOE_TEST_PAUSE"
	shellVariable = "BMOE_TEST_AS_SHELL"
)

// asked is the prompt of these tests, which no report may hold.
const asked = "a private question"

// programMain is the program in a process of its own, or the shell of one.
func programMain() {
	switch fault := os.Getenv(faultVariable); {
	case os.Getenv(shellVariable) != "":
		shellMain()
	case fault != "":
		faultyMain(fault)
	default:
		main()
	}
}

// faultyMain is main with a fault in it.
func faultyMain(fault string) {
	if tty.Watch(versionText()) {
		return
	}
	switch fault {
	case "pause":
		at, err := strconv.ParseInt(os.Getenv(pauseVariable), 10, 64)
		if err != nil {
			panic(err)
		}
		flashio.System = pausingOpener{flashio.System, at, new(atomic.Int64)}
		main()
		return
	case "lane":
		flashio.System = faultyOpener{flashio.System}
		main()
		return
	}
	crash.Handle(func(p *crash.Panic) { os.Exit(fail(p)) })
	o, err := parse(os.Args[1:])
	if err != nil {
		panic(err)
	}
	opening, err := o.begun()
	if err != nil {
		panic(err)
	}
	stop := watched()
	err = tui.Run(context.Background(), tui.Options{Name: "demo", Open: func(progress func(string, float64)) (backend.Backend, error) {
		s, err := opening.finish(context.Background(), progress)
		return faultyEngine{s, fault}, err
	}})
	stop()
	if p := new(tui.PanicError); errors.As(err, p) {
		os.Exit(fail(p.Panic))
	}
	os.Exit(exitCode(err))
}

type faultyOpener struct{ flashio.Opener }

func (o faultyOpener) Open(path string, direct bool) (flashio.Handle, error) {
	h, err := o.Opener.Open(path, direct)
	return faultyHandle{h}, err
}

type faultyHandle struct{ flashio.Handle }

func (h faultyHandle) ReadAt(p []byte, off int64) (int, error) {
	if _, err := os.Stat(os.Getenv(armVariable)); err == nil {
		panic("no room for " + asked)
	}
	return h.Handle.ReadAt(p, off)
}

type pausingOpener struct {
	flashio.Opener
	at    int64
	reads *atomic.Int64
}

func (o pausingOpener) Open(path string, direct bool) (flashio.Handle, error) {
	h, err := o.Opener.Open(path, direct)
	return pausingHandle{h, o}, err
}

type pausingHandle struct {
	flashio.Handle
	pausingOpener
}

func (h pausingHandle) ReadAt(p []byte, off int64) (int, error) {
	if h.reads.Add(1) == h.at {
		path := os.Getenv(armVariable)
		err := os.WriteFile(path, nil, 0o600)
		for ; err == nil; _, err = os.Stat(path) {
			time.Sleep(time.Millisecond)
		}
	}
	return h.Handle.ReadAt(p, off)
}

type faultyEngine struct {
	backend.Backend
	fault string
}

func (e faultyEngine) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	switch e.fault {
	case "stranger": // a goroutine of somebody who does not know of Catch
		go func() { panic("this is " + asked) }()
		select {}
	case "fatal":
		debug.SetMaxStack(1 << 20)
		return nil, errors.New(strings.Repeat("x", deep(1)))
	}
	pool.New(2).Each(&faultyLoop{make(chan struct{})})
	return e.Backend.Generate(ctx, r)
}

// deep overflows the stack long before it returns.
func deep(n int) int {
	if n == math.MaxInt {
		return n
	}
	return deep(n+1) + n
}

// faultyLoop fails on worker 1.
type faultyLoop struct{ joined chan struct{} }

func (l *faultyLoop) Work(worker int) {
	if worker == 0 {
		<-l.joined // a job that worker 0 alone had done would not wait for the other
		return
	}
	close(l.joined)
	panic("a fault on a worker")
}

// shellMain is the shell of a job: it starts the program in a process group of
// its own, takes the terminal back when that stops, and goes on with it when a
// line is typed.
func shellMain() {
	os.Unsetenv(shellVariable)
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	pid := cmd.Process.Pid
	signal.Ignore(syscall.SIGTTOU) // not before: the job would inherit it
	fmt.Printf("job %d\n", pid)
	for stops := 1; ; {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err == syscall.EINTR {
			continue
		} else if err != nil {
			panic(err)
		}
		if !status.Stopped() {
			os.Exit(status.ExitStatus())
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, os.Getpid())
		fmt.Printf("STOPPED %d\n", stops) // what was said before shows again with the shell's screen
		stops++
		if _, err := os.Stdin.Read(make([]byte, 64)); err != nil {
			os.Exit(1)
		}
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid)
		syscall.Kill(-pid, syscall.SIGCONT)
	}
}

// endsWith waits for the end and checks the exit code and the terminal.
func (x *terminal) endsWith(code int) {
	x.t.Helper()
	x.quit("", code)
}

// questions are what terminals are asked and answer.
var questions = []string{"\x1b[?2026$p", "\x1b[?2027$p", "\x1b]11;?", "\x1b[?u", "\x1b[c"}

// What is wrong with a file is said before the terminal is asked anything.
func TestABadModelAsksTheTerminalNothing(t *testing.T) {
	whole := readTest(t, filepath.Join("..", "..", "engine", "demo", "tiny-stories-moe-q8_0.gguf"))
	for _, path := range []string{
		filepath.Join(conform.TempDir(t), "none.gguf"), temp(t, "cut.gguf", whole[:len(whole)*9/10]), temp(t, "text.gguf", []byte("not a model")),
	} {
		x := inTerminal(t, 100, 30, path)
		x.endsWith(1)
		x.waitForText("bmoe: ", filepath.Base(path))
		if bytes.ContainsRune(x.raw(), '\x1b') {
			t.Errorf("%s: the terminal was asked or told something: %q", path, x.raw())
		}
	}
}

// In a terminal that answers late nothing is left to be typed into the shell,
// however soon the program is quit.
func TestLateAnswersAreTakenIn(t *testing.T) {
	const late = 150 * time.Millisecond
	x := inTerminalThat(t, terminalKind{w: 100, h: 30, late: late})
	x.waitFor("> ")
	x.quit(keyStop, 0)
	asked := 0
	for _, q := range questions {
		asked += bytes.Count(x.raw(), []byte(q))
	}
	if asked < 3 {
		t.Fatalf("the terminal was asked %d things: the test sees nothing", asked)
	}
	if _, err := term.MakeRaw(x.pts.Fd()); err != nil { // so that what waits can be seen
		t.Fatal(err)
	}
	fds := []unix.PollFd{{Fd: int32(x.pts.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int((3 * late).Milliseconds())); n != 0 || err != nil {
		b := make([]byte, 256)
		n, _ := x.pts.Read(b)
		t.Errorf("left for the shell: %q, %v", b[:n], err)
	}
}

// Ctrl+Z where nobody could resume the program says so.
func TestCtrlZAsSessionLeader(t *testing.T) {
	x := inTerminal(t, 100, 30)
	x.waitFor("idle")
	x.types("\x1a")
	x.waitFor("there is no shell to go back to")
	x.types("still there")
	x.waitFor("> still there")
	// From outside as well: the system does not stop such a process.
	x.cmd.Process.Signal(syscall.SIGTSTP)
	x.waitFor("there is no shell to go back to", "> still there")
	x.quit(keyStop+keyStop, 0)
}

// Ctrl+Z and SIGTSTP give the terminal back before the program stops; going on
// takes it again and draws everything.
func TestStopAndGoOn(t *testing.T) {
	x := inTerminalThat(t, terminalKind{w: 100, h: 30, env: []string{shellVariable + "=1"}})
	x.waitFor("idle")
	first, _, _ := bytes.Cut(x.raw(), []byte("\n"))
	var pid int
	if _, err := fmt.Sscanf(string(first), "job %d", &pid); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	for i, stop := range []func(){
		func() { x.types("\x1a") },
		func() { syscall.Kill(pid, syscall.SIGTSTP) },
	} {
		word := fmt.Sprintf("word%d", i)
		x.types(word)
		x.waitFor(word)
		stop()
		x.waitForText(fmt.Sprint("STOPPED ", i+1))
		if after, err := term.GetState(x.pts.Fd()); err != nil || *after != *x.before {
			t.Errorf("stopped, but the terminal's mode is not what it was: %v", err)
		}
		x.gaveBack()
		x.types("fg\n")
		x.waitFor("idle", word)
		x.types("!")
		x.waitFor(word + "!")
	}
	x.quit(keyStop+keyStop, 0)
}

// SIGSTOP cannot be heard. Who had the terminal meanwhile may have left it in any
// mode: going on sets all of them again, and what was typed is not lost.
func TestStoppedWithoutAWord(t *testing.T) {
	x := inTerminal(t, 100, 30)
	x.waitFor("idle")
	raw, err := term.GetState(x.pts.Fd())
	if err != nil {
		t.Fatal(err)
	}
	x.cmd.Process.Signal(syscall.SIGSTOP)
	if err := term.SetState(x.pts.Fd(), x.before); err != nil {
		t.Fatal(err)
	}
	io.WriteString(x.emu, "\x1b[?1049l\x1b[?2004l\x1b[2Jother things")
	x.types("typed meanwhile\n")
	time.Sleep(20 * time.Millisecond)
	x.cmd.Process.Signal(syscall.SIGCONT)
	x.waitFor("idle", "typed meanwhile")
	deadline := time.Now().Add(patience)
	for {
		now, err := term.GetState(x.pts.Fd())
		if err != nil {
			t.Fatal(err)
		}
		if *now == *raw && x.emu.IsAltScreen() && !strings.Contains(x.screen(), "other things") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the terminal was not taken again:\n%s", x.screen())
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.quit(keyStop+keyStop, 0)
}

// A terminal that goes ends the program even if SIGHUP is ignored.
func TestHangUpWithSIGHUPIgnored(t *testing.T) {
	x := inTerminalThat(t, terminalKind{w: 100, h: 30, ignoreHUP: true})
	x.waitFor("idle")
	x.pts.Close()
	x.ptm.Close()
	select {
	case <-x.ended:
	case <-time.After(patience):
		t.Fatal("the program goes on without its terminal")
	}
	if code := x.cmd.ProcessState.ExitCode(); code != cli.Interrupted {
		t.Errorf("exit code %d", code)
	}
}

// A signal ends the program when the terminal takes no output, which blocks the
// loop that draws.
func TestASignalEndsABlockedProgram(t *testing.T) {
	ptm, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptm.Close()
	defer pts.Close()
	if err := pty.Setsize(ptm, &pty.Winsize{Rows: 50, Cols: 200}); err != nil {
		t.Fatal(err)
	}
	before, err := term.GetState(pts.Fd())
	if err != nil {
		t.Fatal(err)
	}
	cmd := program()
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pts, pts, pts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	defer cmd.Process.Kill()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { // nobody reads: the terminal is full soon
		now, err := term.GetState(pts.Fd())
		if err != nil {
			t.Fatal(err)
		}
		if *now != *before && time.Since(began) > time.Second {
			break
		}
		if time.Since(began) > patience {
			t.Fatal("the screen did not come up")
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("did not end")
	}
	after, err := term.GetState(pts.Fd())
	if err != nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted || *after != *before {
		t.Errorf("exit code %d, mode restored %v", code, *after == *before)
	}
}

// A fault anywhere gives the terminal back, says so in one line and leaves a
// report that holds places and no texts.
func TestFaultsGiveTheTerminalBack(t *testing.T) {
	for _, c := range []struct {
		fault string
		code  int
		place string // in the report
		line  string // on the terminal
	}{
		{"lane", cli.Failed, "faultyHandle.ReadAt", "failed within itself: lane: panic with a value of type string in bmoe/cmd/bmoe.faultyHandle.ReadAt (terminal_unix_test.go:"},
		{"worker", cli.Failed, "faultyLoop).Work", "failed within itself: engine: panic with a value of type string in bmoe/cmd/bmoe.(*faultyLoop).Work (terminal_unix_test.go:"},
		{"stranger", 2, "faultyEngine.Generate", "failed within itself: panic: its text is left out"},
		{"fatal", 2, "bmoe.deep", "failed within itself: a fatal error of the runtime"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			dir := conform.TempDir(t)
			arm := filepath.Join(dir, "armed")
			x := inTerminalThat(t, terminalKind{w: 200, h: 30, env: []string{
				faultVariable + "=" + c.fault, armVariable + "=" + arm, userdir.StateVariable + "=" + filepath.Join(dir, "state")}})
			x.waitFor("idle")
			if err := os.WriteFile(arm, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			x.types(asked)
			x.waitFor(asked)
			x.types("\r")
			x.endsWith(c.code)
			x.waitForText("bmoe: "+c.line, "the report is ")
			x.gaveBack()
			if s := x.screen(); strings.Contains(s, "goroutine") || strings.Contains(s, asked) || strings.Count(s, "bmoe: ") != 1 {
				t.Errorf("more than a line:\n%s", s)
			}
			reports, err := filepath.Glob(filepath.Join(dir, "state", "crash-*.txt"))
			if err != nil || len(reports) != 1 {
				t.Fatalf("reports: %q, %v", reports, err)
			}
			report := string(readTest(t, reports[0]))
			if !strings.Contains(report, c.place) || strings.Contains(report, asked) {
				t.Errorf("no %q, or the prompt, in the report:\n%.3000s", c.place, report)
			}
		})
	}
}

// Killed outright, the program leaves the terminal to its watcher.
func TestKilled(t *testing.T) {
	x := inTerminal(t, 100, 30)
	x.waitFor("idle")
	x.cmd.Process.Kill()
	<-x.ended
	x.gaveBack()
}

// gaveBack waits until the terminal is in none of the screen's modes.
func (x *terminal) gaveBack() {
	x.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		after, err := term.GetState(x.pts.Fd())
		if err != nil {
			x.t.Fatal(err)
		}
		wrong := ""
		for on, off := range map[string]string{"\x1b[?1002h": "\x1b[?1002l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1004h": "\x1b[?1004l", "\x1b[?1049h": "\x1b[?1049l"} {
			if raw := x.raw(); bytes.LastIndex(raw, []byte(on)) > bytes.LastIndex(raw, []byte(off)) {
				wrong = on
			}
		}
		if *after == *x.before && wrong == "" && !x.emu.CursorHidden() {
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("mode restored %v, cursor hidden %v, still on: %q", *after == *x.before, x.emu.CursorHidden(), wrong)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Lines that come at once were pasted, whether the terminal says so or not; a
// paste that never ends gives way to Ctrl+C.
func TestPasteWithoutBrackets(t *testing.T) {
	x := inTerminal(t, 100, 30)
	x.waitFor("idle")
	x.types("line one\rline two\rline three\r")
	x.waitFor("> line one", "  line two", "  line three")
	x.types("\r")
	x.waitFor("run 1", "idle")
	x.types(keyF10)
	x.waitFor("settings that differ", "line one line two line three") // one prompt
	x.closes("settings that differ")

	var long strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&long, "this is line %d of many\r", i)
	}
	x.types(long.String())
	x.waitFor("this is line 1999 of many")
	x.types(keyStop)
	x.waitFor("> ask something") // it was the draft

	x.types("\x1b[200~and it goes on")
	x.types(" and on")
	time.Sleep(100 * time.Millisecond) // past what would make a key of its own of it
	x.types(keyStop)
	x.types("x")
	x.waitFor("> x")
	x.quit(keyStop+keyStop+keyStop, 0)
}
