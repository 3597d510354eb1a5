package tty

import (
	"os"
	"os/exec"
	"sync"

	"github.com/charmbracelet/x/term"
)

// Screen is a console that is drawn on. Its keys are records, not bytes, and
// are read by whoever draws.
type Screen struct {
	in, out         *os.File
	inMode, outMode *term.State
	drawing         Output
	mu              sync.Mutex
	taken           bool
	never           chan struct{}
}

// Take remembers the console's modes.
func Take(in, out *os.File) (*Screen, error) {
	s := &Screen{in: in, out: out, drawing: Output{f: out}, never: make(chan struct{})}
	var err error
	if s.inMode, err = term.GetState(in.Fd()); err != nil {
		return nil, err
	}
	if s.outMode, err = term.GetState(out.Fd()); err != nil {
		return nil, err
	}
	if err := s.Retake(); err != nil {
		return nil, err
	}
	shown.Store(s)
	return s, nil
}

// Keys is where keys are to be read from.
func (s *Screen) Keys() *os.File { return s.in }

// Output is where the screen is to be drawn.
func (s *Screen) Output() *Output { return &s.drawing }

// Gone is never closed: the system ends a program whose console goes.
func (s *Screen) Gone() <-chan struct{} { return s.never }

// Retake notes that the console is drawn on.
func (s *Screen) Retake() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
	watcher.note(screenTaken)
	return nil
}

// Release notes that the console is as it was.
func (s *Screen) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = false
	watcher.note(screenReleased)
}

// Close is Release, for good.
func (s *Screen) Close() {
	s.Release()
	shown.CompareAndSwap(s, nil)
}

// Restore gives everything back at once, without drawing's help.
func (s *Screen) Restore() {
	s.mu.Lock()
	taken := s.taken
	s.mu.Unlock()
	if !taken {
		return
	}
	s.drawing.end(writePatience)
	write(s.out, giveBack, writePatience)
	term.Restore(s.in.Fd(), s.inMode)   // fails where there
	term.Restore(s.out.Fd(), s.outMode) // is none any more
	s.Release()
}

// Stop does nothing: there is no such thing here.
func Stop(bool) bool { return false }

// CanStop reports that.
func CanStop() bool { return false }

func modeOf(*os.File) (string, error) { return "console", nil }

// modeRestorer returns what gives the console's screen back. The console's modes
// are those of the watcher's own start, before the screen was up.
func modeRestorer(_, out *os.File, _ string) (func(), error) {
	mode, err := term.GetState(out.Fd())
	return func() {
		write(out, giveBack, writePatience)
		if err == nil {
			term.Restore(out.Fd(), mode)
		}
	}, nil
}

func small(*os.File) {}

// detach has nothing to do: Ctrl+C is a key while the screen is up.
func detach(*exec.Cmd) {}
