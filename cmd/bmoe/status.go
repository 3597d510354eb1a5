package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"bmoe/internal/tty"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui"
)

// status is a line that shows how far loading and reading the prompt are, for
// somebody who watches: standard error is a terminal.
type status struct {
	on    bool
	lines bool // otherwise tell in lines how far reading a long prompt is
	f     *os.File
	mu    sync.Mutex
	shown bool
	last  time.Time
}

// statusEvery is the least time between two states of the line.
const statusEvery = 100 * time.Millisecond

func newStatus(f *os.File) *status { return &status{on: tty.Is(f), f: f, last: time.Now()} }

// loading shows a stage of loading. It is called from any goroutine.
func (s *status) loading(stage string, done float64) {
	text := "loading: " + stage
	if done > 0 {
		text += " " + units.Share(done)
	}
	s.show(text)
}

func (s *status) show(text string) {
	if !s.on {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nothing flashes up for what takes no time.
	if time.Since(s.last) < statusEvery {
		return
	}
	s.last, s.shown = time.Now(), true
	fmt.Fprintf(s.f, "\r\x1b[K%s", text)
}

// clear takes the line away.
func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		fmt.Fprint(s.f, "\r\x1b[K")
	}
}

// reading tells how much of the prompt has been read, until the function that it
// returns is called. Where nobody watches a terminal it is a line now and then,
// once it has lasted a second.
func (s *status) reading(snapshot func(*profile.Snapshot)) (stop func()) {
	var notes profile.PrefillNotes
	end := tui.WatchPrefill(snapshot, func(snap *profile.Snapshot) {
		text := "reading the prompt: " + snap.PrefillText()
		switch {
		case s.on:
			s.show(text)
		case s.lines && notes.Due(snap):
			fmt.Fprintf(s.f, "bmoe: %s\n", text)
		}
	})
	return func() {
		end()
		s.clear()
	}
}
