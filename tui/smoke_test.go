//go:build !windows

package tui

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bmoe/engine/backend"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// realTerminal runs the program in a pseudo terminal with an emulator behind it.
type realTerminal struct {
	t        *testing.T
	ptm, pts *os.File
	emu      *vt.SafeEmulator
	before   *term.State
	done     chan error
	result   error

	mu  sync.Mutex
	raw bytes.Buffer // all that was written to the terminal
}

func inTerminal(t *testing.T, w, h int, environ []string, o Options) *realTerminal {
	t.Helper()
	ptm, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(ptm, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		t.Fatal(err)
	}
	r := &realTerminal{t: t, ptm: ptm, pts: pts, emu: vt.NewSafeEmulator(w, h), done: make(chan error, 1)}
	if r.before, err = term.GetState(pts.Fd()); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := ptm.Read(buf)
			r.mu.Lock()
			r.raw.Write(buf[:n])
			r.mu.Unlock()
			if _, werr := r.emu.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}()
	go io.Copy(ptm, r.emu) // what the emulator answers to queries
	o.Input, o.Output = pts, pts
	o.Environ = append([]string{"TERM=xterm-256color", "LANG=C.UTF-8"}, environ...)
	go func() { r.done <- Run(context.Background(), o) }()
	// Neither end is closed here: a goroutine that reads may still be winding down.
	return r
}

func (r *realTerminal) screen() string { return ansi.Strip(r.emu.Render()) }

func (r *realTerminal) waitFor(parts ...string) {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		s, missing := r.screen(), ""
		for _, p := range parts {
			if !strings.Contains(s, p) {
				missing = p
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%q did not appear:\n%s", missing, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitGone waits until the screen no longer shows a text. What a frame shows below
// it may still be of the frame before: frames are drawn from the top.
func (r *realTerminal) waitGone(text string) {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for strings.Contains(r.screen(), text) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%q stays:\n%s", text, r.screen())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *realTerminal) types(s string) {
	r.t.Helper()
	if _, err := io.WriteString(r.ptm, s); err != nil {
		r.t.Fatal(err)
	}
}

// restored waits for the end and checks that the terminal is as it was.
func (r *realTerminal) restored() error {
	r.t.Helper()
	select {
	case r.result = <-r.done:
	case <-time.After(15 * time.Second):
		r.t.Fatalf("the program did not end:\n%s", r.screen())
	}
	after, err := term.GetState(r.pts.Fd())
	if err != nil {
		r.t.Fatal(err)
	}
	if *after != *r.before {
		r.t.Error("the terminal's mode was not restored")
	}
	deadline := time.Now().Add(5 * time.Second)
	for r.emu.IsAltScreen() || r.emu.CursorHidden() {
		if time.Now().After(deadline) {
			r.t.Errorf("alternate screen %v, cursor hidden %v after the end", r.emu.IsAltScreen(), r.emu.CursorHidden())
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for on, off := range map[string]string{"\x1b[?1002h": "\x1b[?1002l", "\x1b[?2004h": "\x1b[?2004l"} {
		if bytes.LastIndex(r.raw.Bytes(), []byte(on)) > bytes.LastIndex(r.raw.Bytes(), []byte(off)) {
			r.t.Errorf("%q was not taken back", on)
		}
	}
	return r.result
}

func TestInARealTerminal(t *testing.T) {
	f := newFake()
	f.step = make(chan struct{})
	opening := make(chan struct{})
	r := inTerminal(t, 120, 40, nil, Options{Name: "demo", Open: func(p func(string, float64)) (backend.Backend, error) {
		p("dense weights", 0.5)
		<-opening
		return f, nil
	}})
	r.waitFor("loading: dense weights 50 %", "> ") // the prompt is there before the model
	close(opening)
	r.waitFor("ask something", "idle")

	r.types("\x1b[200~two\nlines\x1b[201~") // a bracketed paste
	r.waitFor("> two", "  lines")
	r.types("\r")
	f.step <- struct{}{}
	r.waitFor("decoding")
	r.types("\x1bOQ\x1bOS") // F2, F4
	r.waitFor("release-mmap on next run", "lanes 8 next run")
	close(f.step)
	r.waitFor("thought for", "In numbers", "release-mmap on applied", "lanes 8 applied")
	r.types("\x07") // Ctrl+G
	r.waitFor("run 2 against run 1", "text identical")
	r.types("\x1b[21~")                                                                 // F10
	r.waitFor("settings that differ", "lanes 8, release-mm", "identical", "Esc closes") // the last: half a frame still shows the prompt
	r.types("\x1b")
	r.waitGone("settings that differ") // else the next key would be Alt and that key
	r.waitFor("> ask something")
	f.mu.Lock()
	if len(f.prompts) != 1 || f.prompts[0] != "two\nlines" {
		t.Errorf("the paste arrived as %q", f.prompts)
	}
	f.mu.Unlock()

	r.types("a\x1b\rb\nc") // Alt+Enter, Ctrl+J
	r.waitFor("> a", "  b", "  c")
	if err := pty.Setsize(r.ptm, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	r.emu.Resize(80, 24)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	r.types("\t")
	r.waitFor("1 token", "5 process", "prompt")
	r.types("\x03")
	r.waitFor("Ctrl+C again quits")
	r.types("\x03")
	if err := r.restored(); err != nil {
		t.Errorf("returned %v", err)
	}
	if !f.closed {
		t.Error("the engine was not closed")
	}
}

func TestCtrlCDuringLoadAndDecodeRestoreTheTerminal(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	r := inTerminal(t, 80, 24, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { <-block; return nil, errors.New("too late") }})
	r.waitFor("loading")
	r.types("\x03")
	if err := r.restored(); err != nil {
		t.Errorf("during load: %v", err)
	}

	f := newFake()
	f.step = make(chan struct{})
	r = inTerminal(t, 80, 24, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
	r.waitFor("idle")
	r.types("hello\r")
	f.step <- struct{}{}
	r.waitFor("decoding")
	r.types("\x03")
	r.waitFor("Esc stops the answer")
	r.types("\x03")
	if err := r.restored(); err != nil {
		t.Errorf("during decode: %v", err)
	}
	if !f.closed {
		t.Error("the engine was not closed")
	}
}

func TestALoadErrorRestoresTheTerminal(t *testing.T) {
	bad := errors.New("open x.gguf: no such file")
	r := inTerminal(t, 80, 24, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { return nil, bad }})
	if err := r.restored(); !errors.Is(err, bad) {
		t.Errorf("returned %v", err)
	}
}

func TestASignalRestoresTheTerminal(t *testing.T) {
	f := newFake()
	r := inTerminal(t, 80, 24, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
	r.waitFor("idle")
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := r.restored(); !errors.Is(err, ErrInterrupted) {
		t.Errorf("returned %v", err)
	}
}

// panicky is an engine with a bug.
type panicky struct{ *fakeEngine }

func (panicky) Generate(context.Context, backend.Request) (*backend.Run, error) {
	panic("a bug in the engine")
}

func TestAPanicRestoresTheTerminal(t *testing.T) {
	f := newFake()
	r := inTerminal(t, 80, 24, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { return panicky{f}, nil }})
	r.waitFor("idle")
	r.types("hello\r")
	if err := r.restored(); err == nil || !strings.Contains(err.Error(), "failed within itself: engine: panic with a value of type string in bmoe/tui.panicky.Generate") {
		t.Errorf("returned %v", err)
	}
}

// NO_COLOR counts with any value; the library's own check knows only booleans.
func TestNoColorInARealTerminal(t *testing.T) {
	colours := func(environ ...string) bool {
		f := newFake()
		r := inTerminal(t, 120, 40, environ, Options{Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
		r.waitFor("idle")
		r.types("hi\r")
		r.waitFor("48 tokens")
		r.types("\x03\x03")
		if err := r.restored(); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return bytes.Contains(r.raw.Bytes(), []byte("38;5;")) || bytes.Contains(r.raw.Bytes(), []byte("38;2;"))
	}
	if !colours() {
		t.Error("no colours without NO_COLOR: the test sees nothing")
	}
	if colours("NO_COLOR=yes") {
		t.Error("colours with NO_COLOR=yes")
	}
}

// What is copied reaches the terminal, a word that was found its token, and the text of
// the search the status line's cursor.
func TestCopyAndFindInARealTerminal(t *testing.T) {
	f := told()
	r := inTerminal(t, 120, 40, nil, Options{Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
	r.waitFor("idle")
	r.types("hi\r")
	r.waitFor("48 tokens")
	r.types("\ty") // to the panes
	r.waitFor("the answer is copied")
	want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(answerText))
	deadline := time.Now().Add(5 * time.Second)
	for {
		r.mu.Lock()
		found := bytes.Contains(r.raw.Bytes(), []byte(want))
		r.mu.Unlock()
		if found {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the terminal was not given the answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.types("\x06mapped") // Ctrl+F
	r.waitFor("find: mapped", "1 of 1")
	if p := r.emu.CursorPosition(); p.X != len(" find: mapped") {
		t.Errorf("the cursor is in column %d of the search", p.X)
	}
	r.types("\t")
	r.waitFor("of run 1", "FROZEN", "e says why")
	r.types("\x03\x03")
	if err := r.restored(); err != nil {
		t.Error(err)
	}
}
