package tui

import (
	"sync"
	"time"

	"bmoe/internal/crash"
	"bmoe/profile"
)

// readingEvery is how often a prefill is looked at.
const readingEvery = 100 * time.Millisecond

// WatchPrefill calls f with a snapshot every now and then while a prompt is being
// read, on a goroutine of its own. The function that it returns ends this: after
// that f is not called any more.
func WatchPrefill(snapshot func(*profile.Snapshot), f func(*profile.Snapshot)) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer crash.Catch("prefill")
		var s profile.Snapshot
		tick := time.NewTicker(readingEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if snapshot(&s); s.Phase == profile.Prefill {
					f(&s)
				}
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-ended
	})
}
