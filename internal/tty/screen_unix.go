//go:build !windows

package tty

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Screen is a terminal that is drawn on.
type Screen struct {
	in, out *os.File
	mode    unix.Termios // before
	keys    *keyboard
	drawing Output
	since   time.Time

	mu     sync.Mutex
	taken  bool
	stderr int // a copy of the standard error that was silenced, or -1
}

// Take takes the terminal: it puts its line into raw mode and begins to read
// keys. A program in the background stops here until it is brought forward.
func Take(in, out *os.File) (*Screen, error) {
	s := &Screen{in: in, out: out, drawing: Output{f: out}, since: time.Now(), stderr: -1}
	mode, err := unix.IoctlGetTermios(int(in.Fd()), getMode)
	if err != nil {
		return nil, os.NewSyscallError("read the terminal's mode", err)
	}
	s.mode = *mode
	if s.keys, err = newKeyboard(int(in.Fd())); err != nil {
		return nil, err
	}
	if err := s.Retake(); err != nil {
		s.keys.close()
		return nil, err
	}
	shown.Store(s)
	return s, nil
}

// Keys is where keys are to be read from: those of the terminal, with pastes
// marked.
func (s *Screen) Keys() *os.File { return s.keys.out }

// Output is where the screen is to be drawn.
func (s *Screen) Output() *Output { return &s.drawing }

// Gone is closed when the terminal has gone: its end was read.
func (s *Screen) Gone() <-chan struct{} { return s.keys.gone }

// Retake takes the terminal again after Release.
func (s *Screen) Retake() error {
	raw := s.mode
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Oflag = unix.OPOST | unix.ONLCR // a line feed begins a line, also in what others write
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	// From the background this stops the process.
	if err := setTermios(int(s.in.Fd()), &raw); err != nil {
		return os.NewSyscallError("set the terminal to raw mode", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = true
	s.silence()
	watcher.note(screenTaken)
	s.keys.start()
	return nil
}

// Release gives the line of the terminal back, after whoever drew on it has
// reset its modes. What the terminal still sends, answers among it, is taken in
// first: it would be typed into the shell.
func (s *Screen) Release() {
	s.keys.stop()
	write(s.out, "\x1b[?25h", writePatience) // some terminals have a cursor for each of their screens
	s.drain()
	s.back()
}

// Close is Release, for good.
func (s *Screen) Close() {
	s.Release()
	shown.CompareAndSwap(s, nil)
	s.keys.close()
}

// Restore gives everything back at once, modes included, without drawing's help.
func (s *Screen) Restore() {
	s.mu.Lock()
	taken := s.taken
	s.mu.Unlock()
	if !taken {
		return
	}
	s.drawing.end(writePatience)
	write(s.out, giveBack, writePatience)
	s.keys.abandon()
	s.drain()
	s.back()
}

// back sets the line's mode as it was. Only the first call does something.
func (s *Screen) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.taken {
		return
	}
	s.taken = false
	setTermios(int(s.in.Fd()), &s.mode) // fails where the terminal has gone
	s.speak()
	watcher.note(screenReleased)
}

// drain takes in what is on its way from the terminal. A last question is
// answered behind all else, so its answer ends the wait; a terminal that has
// never answered anything is not waited for.
func (s *Screen) drain() {
	select {
	case <-s.keys.gone:
		return
	default:
	}
	patience := answerPatience
	if !s.keys.answered.Load() && time.Since(s.since) > probing {
		patience = silence
	} else {
		write(s.out, "\x1b[c", writePatience)
	}
	var got []byte
	buf := make([]byte, 4096)
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 || isAnswered(got) {
			return
		}
		fds := []unix.PollFd{{Fd: int32(s.in.Fd()), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, int(left.Milliseconds())+1); err == unix.EINTR || n == 0 {
			continue
		}
		n, err := unix.Read(int(s.in.Fd()), buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return
		}
		got = append(got, buf[:n]...)
	}
}

// isAnswered finds the answer to the last question, a terminal's attributes.
func isAnswered(b []byte) bool {
	for {
		_, after, ok := bytes.Cut(b, []byte("\x1b[?"))
		if !ok {
			return false
		}
		b = after
		rest := bytes.TrimLeft(b, "0123456789;")
		if len(rest) > 0 && rest[0] == 'c' {
			return true
		}
	}
}

// silence keeps standard error off the screen, if that is where it goes: what
// the runtime says of its end would be drawn over the screen, and over the
// shell's after it. The caller holds the lock.
func (s *Screen) silence() {
	if s.stderr >= 0 {
		return
	}
	if _, err := unix.IoctlGetTermios(2, getMode); err != nil {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return // it stays where it is
	}
	defer null.Close()
	old, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return
	}
	if dup2(int(null.Fd()), 2) != nil {
		unix.Close(old)
		return
	}
	s.stderr = old
}

// speak undoes silence. The caller holds the lock.
func (s *Screen) speak() {
	if s.stderr >= 0 {
		dup2(s.stderr, 2)
		unix.Close(s.stderr)
		s.stderr = -1
	}
}

// Stop stops the process, or with group set its whole job, as Ctrl+Z does, and
// returns when it goes on. It reports whether it had stopped: where no shell
// could resume it, the system does not stop a process.
func Stop(group bool) bool {
	going := make(chan os.Signal, 1)
	signal.Notify(going, syscall.SIGCONT)
	defer signal.Stop(going)
	if group {
		syscall.Kill(0, syscall.SIGTSTP) // for the others: here it is heard
	}
	// Once the runtime has heard SIGTSTP it cannot give it back its default. A
	// write from the background stops a process by the same rules, and nothing
	// hears that signal.
	if err := syscall.Kill(os.Getpid(), syscall.SIGTTOU); err != nil {
		return false
	}
	// Where it works, the process stands still between here and SIGCONT, and
	// the time with it or not: so after it there is some more.
	for range 4 {
		select {
		case <-going:
			return true
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}

// CanStop reports whether stopping could make sense: a process that leads its
// session has no shell above it to resume it.
func CanStop() bool {
	leader, err := unix.Getsid(0)
	return err != nil || leader != os.Getpid()
}

func setTermios(fd int, mode *unix.Termios) error {
	for {
		if err := unix.IoctlSetTermios(fd, setMode, mode); err != unix.EINTR {
			return err
		}
	}
}
