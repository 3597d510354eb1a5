package tty

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Terminals disagree about the width of characters: those of new scripts, of
// planes in which nothing was assigned, of pictures made of several. A line that
// is wider than whoever drew it thought would go on in the next one, everything
// below it would stand a line lower, and at the bottom the screen would scroll.
// So lines end at the margin while the screen is up.
const (
	wrapOff  = "\x1b[?7l"
	wrapOn   = "\x1b[?7h"
	altStart = "\x1b[?1049h"
	altEnd   = "\x1b[?1049l"
)

// wrapping puts that into what is drawn. The renderer turns wrapping off for
// single characters and on again after them; some consoles understand sequences
// only from where it says so to where it leaves its screen.
var wrapping = [][2][]byte{
	{[]byte(wrapOn), nil},
	{[]byte(altStart), []byte(altStart + wrapOff)},
	{[]byte(altEnd), []byte(altEnd + wrapOn)},
}

// Output is the terminal as the screen is drawn on it: what is between the start
// and the end of the alternate screen does not wrap.
type Output struct {
	f       *os.File
	awaited atomic.Pointer[chan struct{}] // closed by the next write

	mu   sync.Mutex // held while a part of the screen is written
	over bool       // the terminal was given back: what is drawn goes nowhere
}

// Write writes a part of the screen. Sequences have to be whole in it.
func (o *Output) Write(b []byte) (int, error) {
	if c := o.awaited.Swap(nil); c != nil {
		close(*c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	if o.over {
		return n, nil
	}
	for _, r := range wrapping {
		if bytes.Contains(b, r[0]) {
			b = bytes.ReplaceAll(b, r[0], r[1])
		}
	}
	if _, err := o.f.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}

// end lets what is being written come to its end, if the terminal takes it in time,
// and what is drawn later go nowhere: whoever draws does not know yet that the
// terminal is being given back, and would draw over the shell's screen.
func (o *Output) end(patience time.Duration) {
	done := make(chan struct{})
	go func() {
		o.mu.Lock()
		o.over = true
		o.mu.Unlock()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// Next returns a channel that is closed when the next write begins.
func (o *Output) Next() <-chan struct{} {
	c := make(chan struct{})
	o.awaited.Store(&c)
	return c
}

// Read reads from the terminal; with Close and Fd it makes the output be known for
// one.
func (o *Output) Read(b []byte) (int, error) { return o.f.Read(b) }

// Close does nothing: the terminal is the process's.
func (o *Output) Close() error { return nil }

// Fd is the terminal's.
func (o *Output) Fd() uintptr { return o.f.Fd() }
