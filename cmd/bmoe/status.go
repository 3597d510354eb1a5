package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"bmoe/engine"
	"bmoe/internal/crash"
	"bmoe/profile"
)

// status is a line that shows how far loading and reading the prompt are, for
// somebody who watches: standard error is a terminal. Otherwise it is silent.
type status struct {
	on    bool
	f     *os.File
	mu    sync.Mutex
	shown bool
	last  time.Time
}

// statusEvery is the least time between two states of the line.
const statusEvery = 100 * time.Millisecond

func newStatus(f *os.File) *status { return &status{on: isTerminal(f), f: f, last: time.Now()} }

// loading shows a stage of loading. It is called from any goroutine.
func (s *status) loading(stage string, done float64) {
	text := "loading: " + stage
	if done > 0 {
		text += fmt.Sprintf(" %.0f %%", 100*done)
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

// watcher shows how much of the prompt has been read.
type watcher struct {
	status *status
	quit   chan struct{}
	ended  chan struct{}
	once   sync.Once
}

// watch begins to watch a session.
func (s *status) watch(session *engine.Session) *watcher {
	w := &watcher{status: s, quit: make(chan struct{}), ended: make(chan struct{})}
	if !s.on {
		close(w.ended)
		return w
	}
	go func() {
		defer close(w.ended)
		defer crash.Catch("status")
		var snap profile.Snapshot
		tick := time.NewTicker(statusEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
				session.Snapshot(&snap)
				if snap.Phase == profile.Prefill {
					s.show(fmt.Sprintf("reading the prompt: %d of %d tokens", snap.PromptDone, snap.Prompt))
				}
			}
		}
	}()
	return w
}

// stop ends watching and takes the line away. Only the first call does
// something.
func (w *watcher) stop() {
	w.once.Do(func() {
		close(w.quit)
		<-w.ended
		w.status.clear()
	})
}
