// Package tty holds the terminal while a screen is drawn on it, and gives it
// back whatever ends the program: a quit, a signal, a hang-up, a panic on any
// goroutine, and, by way of a watcher, what a Go program cannot recover from.
//
// Who draws sets and resets the modes of the screen. This package owns what
// must not depend on it: the mode of the line, the reading of keys, and the way
// back when the drawing cannot be asked any more.
package tty

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/term"
)

// giveBack leaves every mode that drawing may have set, in an order that a
// terminal in any of them understands: synchronized output, the scroll region
// and colours first, then the keyboard's modes, which belong to the alternate
// screen, then that screen, then mouse, paste, focus, clusters, line ends and the cursor.
const giveBack = "\x1b[?2026l" + "\x1b[r" + "\x1b[0m" + "\x1b[>4m" + "\x1b[<1u" + "\x1b[?1049l" +
	"\x1b[?1002l\x1b[?1003l\x1b[?1006l" + "\x1b[?2004l" + "\x1b[?1004l" + "\x1b[?2027l" + wrapOn + "\x1b[0 q" + "\x1b[?25h" + "\r"

// How long giving the terminal back may take.
const (
	writePatience  = 500 * time.Millisecond // for a terminal that takes no output
	answerPatience = time.Second            // for answers that are on their way
	silence        = 50 * time.Millisecond  // for a terminal that has never answered
	probing        = 2 * time.Second        // as long after the start, silence means nothing
)

// shown is the screen that is up, for Restore.
var shown atomic.Pointer[Screen]

// Restore gives the terminal back, if a screen is up, without asking whoever
// draws on it. It may be called on any goroutine, and takes bounded time.
func Restore() {
	if s := shown.Load(); s != nil {
		s.Restore()
	}
}

// write writes to a terminal that may take nothing any more.
func write(out *os.File, text string, patience time.Duration) {
	done := make(chan struct{})
	go func() {
		out.WriteString(text) // nobody is left to tell
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
}

// Is reports whether a file is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(f.Fd()) }
