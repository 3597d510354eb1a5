package engine

import (
	"context"
	"fmt"
	"time"

	"bmoe/engine/expert"
	"bmoe/internal/clock"
	"bmoe/internal/crash"
	"bmoe/internal/units"
)

// What is done about reads that do not return.
const (
	hungAfter = 30 * time.Second // until it is told
	lookEvery = time.Second
	letGo     = 2 * time.Second // after a run was stopped, until it no longer waits for them
)

// Notify has f hear what the user should know while a run goes on, on any goroutine. It
// is called between runs.
func (s *Session) Notify(f func(text string)) { s.notify = f }

// watch looks after a run's reads until the function that comes back is called: those
// that hang are told, and are not waited for once ctx has ended.
func (s *Session) watch(ctx context.Context) (done func()) {
	if s.streamer == nil && s.rows == nil {
		return func() {}
	}
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer crash.Catch("watch")
		defer close(gone)
		ticks := time.NewTicker(lookEvery)
		defer ticks.Stop()
		stopped, patience := ctx.Done(), (<-chan time.Time)(nil)
		for {
			select {
			case <-over:
				return
			case <-ticks.C:
				if s.streamer != nil {
					s.hung.look(s, clock.Now())
				}
			case <-stopped:
				stopped, patience = nil, time.After(s.letGo)
			case <-patience:
				if s.streamer != nil {
					s.streamer.GiveUp(ctx.Err())
				}
				if s.rows != nil {
					s.rows.GiveUp(ctx.Err())
				}
			}
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// hung is what has been told of reads that hang.
type hung struct {
	told  map[expert.Hung]bool
	reads []expert.Hung // scratch
}

// look tells once of each read that has hung by now, in one line.
func (h *hung) look(s *Session, now int64) {
	h.reads = s.streamer.Hung(h.reads[:0], now-hungAfter.Nanoseconds())
	fresh := 0
	for _, r := range h.reads {
		if h.told[r] {
			continue
		}
		if h.told == nil {
			h.told = map[expert.Hung]bool{}
		}
		h.told[r] = true
		h.reads[fresh], fresh = r, fresh+1
	}
	if fresh > 0 && s.notify != nil {
		s.notify(hungText(h.reads[:fresh], now, s.reader.Lanes()))
	}
}

// hungText tells of reads that hang, the first by name.
func hungText(reads []expert.Hung, now int64, lanes int) string {
	r := reads[0]
	what := "a table's row"
	if r.Layer >= 0 {
		what = fmt.Sprintf("layer %d, expert %d, %s at %d", r.Layer, r.Expert, r.Path, r.Offset)
	}
	text := fmt.Sprintf("the drive does not answer: lane %d has been reading for %.0f s (%s)", r.Lane+1, units.InSeconds(now-r.Started), what)
	switch n := len(reads); {
	case n == lanes && n > 1:
		text += ", and so have all other lanes"
	case n > 1:
		text += ", and so have " + units.Plural(int64(n-1), "other lane")
	}
	return text + "; stopping the answer does not wait for it"
}
