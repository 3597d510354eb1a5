//go:build !windows

package tty

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"bmoe/internal/crash"

	"golang.org/x/sys/unix"
)

// keyboard reads the terminal on a goroutine of its own and passes on what it
// reads through a pipe. It sees reads as they came, which tells pastes from
// typing, and the terminal's end.
type keyboard struct {
	fd       int
	in, out  *os.File // the pipe
	cancel   [2]*os.File
	ended    chan struct{} // closed when the goroutine has returned; nil while there is none
	gone     chan struct{} // closed when the terminal has ended
	answered atomic.Bool   // the terminal has answered something
	left     []byte        // read, and not passed on
	bursts   bursts
}

const (
	gatherFor = 20 * time.Millisecond  // after a line end in a burst, for more of it
	quietFor  = 200 * time.Millisecond // after which a paste is over
	gatherMax = 64 << 10               // bytes
)

func newKeyboard(fd int) (*keyboard, error) {
	k := &keyboard{fd: fd, gone: make(chan struct{}), bursts: bursts{now: time.Now}}
	var err error
	if k.out, k.in, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("keyboard: %w", err)
	}
	if k.cancel[0], k.cancel[1], err = os.Pipe(); err != nil {
		k.in.Close()
		k.out.Close()
		return nil, fmt.Errorf("keyboard: %w", err)
	}
	return k, nil
}

// start begins to read, unless that goes on already.
func (k *keyboard) start() {
	if k.ended != nil {
		return
	}
	k.ended = make(chan struct{})
	k.in.SetWriteDeadline(time.Time{})
	go k.run(k.ended)
}

// stop ends reading and returns when it has ended. What the reader of the pipe
// has not taken stays for it.
func (k *keyboard) stop() {
	if k.ended == nil {
		return
	}
	k.abandon()
	<-k.ended
	k.ended = nil
	var b [1]byte
	k.cancel[0].Read(b[:])
}

// abandon asks the goroutine to end, from any other.
func (k *keyboard) abandon() {
	k.cancel[1].Write([]byte{0})
	k.in.SetWriteDeadline(time.Now())
}

func (k *keyboard) close() {
	k.stop()
	for _, f := range []*os.File{k.in, k.out, k.cancel[0], k.cancel[1]} {
		f.Close()
	}
}

func (k *keyboard) run(ended chan struct{}) {
	defer close(ended)
	defer crash.Catch("keyboard")
	buf := make([]byte, gatherMax)
	for k.pass(nil) {
		wait := time.Duration(-1)
		if k.bursts.open {
			wait = quietFor
		}
		ready, cancelled := k.wait(wait)
		switch {
		case cancelled:
			return
		case !ready:
			if !k.pass(k.bursts.quiet(nil)) {
				return
			}
			continue
		}
		n, over := k.gather(buf)
		if bytes.Contains(buf[:n], []byte("\x1b[?")) {
			k.answered.Store(true) // no key begins so
		}
		ok := k.pass(k.bursts.feed(nil, buf[:n]))
		if over {
			close(k.gone)
			return
		}
		if !ok {
			return
		}
	}
}

// gather reads what is there. Several characters with a line end may be the
// first part of a paste, so it waits a moment for more.
func (k *keyboard) gather(buf []byte) (n int, over bool) {
	for {
		m, err := unix.Read(k.fd, buf[n:min(len(buf), n+4096)])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			return n, false
		case err != nil || m <= 0:
			return n, true
		}
		n += m
		if n == 1 || n == len(buf) || !bytes.ContainsAny(buf[:n], "\r\n") {
			return n, false
		}
		if ready, cancelled := k.wait(gatherFor); !ready || cancelled {
			return n, false
		}
	}
}

// wait waits until there is something to read; a negative time is without end.
func (k *keyboard) wait(d time.Duration) (ready, cancelled bool) {
	fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}, {Fd: int32(k.cancel[0].Fd()), Events: unix.POLLIN}}
	ms := -1
	if d >= 0 {
		ms = int(d.Milliseconds())
	}
	for {
		_, err := unix.Poll(fds, ms)
		if err == unix.EINTR {
			continue
		}
		return err == nil && fds[0].Revents != 0, err != nil || fds[1].Revents != 0
	}
}

// pass passes bytes on; what does not go through before stop is kept.
func (k *keyboard) pass(b []byte) bool {
	k.left = append(k.left, b...)
	if len(k.left) == 0 {
		return true
	}
	n, err := k.in.Write(k.left)
	k.left = append(k.left[:0], k.left[n:]...)
	return err == nil
}
