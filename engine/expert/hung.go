package expert

import (
	"fmt"
	"slices"
	"time"

	"bmoe/engine/expert/policy"
)

// Reads may never return: a network drive that is gone, a controller that resets for
// minutes. Nobody who stops waits for such a read. Its slot stays the system's until it
// does return, and another slot takes its place meanwhile.

// patience is how long a read in flight is waited for that nobody wants any more: what
// is slow and not hung ends by then, and its slot is free.
const patience = 2 * time.Second

// Hung is a read that has been in flight for long.
type Hung struct {
	Lane                      int
	Layer, Expert, Projection int // -1: it is not for an expert
	Path                      string
	Offset                    int64
	Started                   int64 // clock.Now
}

// Hung appends the reads that lanes began at an instant or before and have not ended.
// It may be called on any goroutine while a run goes on.
func (s *Streamer) Hung(dst []Hung, begunBy int64) []Hung {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights = s.reader.InFlight(s.flights[:0])
	for _, f := range s.flights {
		if f.Started > begunBy {
			continue
		}
		h := Hung{Lane: f.Lane, Layer: -1, Expert: -1, Projection: -1, Started: f.Started}
		if sl, ok := f.Request.Done.(*slot); ok {
			h.Projection = 0
			for f.Request != &sl.reads[h.Projection] {
				h.Projection++
			}
			h.Layer = s.shape.Layer(sl.key)
			h.Expert = int(sl.key - s.shape.Key(h.Layer, 0))
			h.Path, h.Offset = s.files.File(f.Request.File).Path, f.Request.Offset
		}
		dst = append(dst, h)
	}
	return dst
}

// GiveUp ends the wait of an open batch for its reads, if there is one: it fails with
// the cause, and leaves behind what lanes have begun. It may be called on any goroutine.
func (s *Streamer) GiveUp(cause error) {
	b := &s.batch
	s.mu.Lock()
	waits := b.inFlight.Load() > 0
	if waits {
		if b.err == nil {
			b.err = fmt.Errorf("layer %d: reads given up: %w", b.layer, cause)
		}
		b.givenUp.Store(true)
		b.failed.Store(true)
	}
	s.mu.Unlock()
	if waits {
		b.Announce()
	}
}

// leaveBehind gives up the slots of a batch into which reads are still on their way.
func (s *Streamer) leaveBehind(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.n {
		it := &b.items[i]
		sl := it.slot.Load()
		if sl == nil || sl.user != it || sl.pending == 0 {
			continue
		}
		b.inFlight.Add(int32(-sl.pending))
		it.slot.Store(nil)
		s.lose(sl)
	}
}

// lose gives a slot up to the reads that are on their way into it, and makes another in
// its place. mu is held.
func (s *Streamer) lose(sl *slot) {
	for p := range sl.reads {
		if sl.flying[p] {
			s.reader.Leave(&sl.reads[p])
		}
	}
	if sl.ahead {
		s.flying -= sl.pending
		s.noLongerAhead(sl)
	}
	s.read(sl.pending)
	s.slotOf[sl.key] = nil
	sl.user, sl.lost = nil, true
	p := sl.pool
	p.lost++
	if p.spare > 0 {
		p.spare--
		return
	}
	if err := p.grow(len(p.slots)+1, s); err != nil {
		s.short = fmt.Errorf("a read into a slot does not return, and there is no memory for another: %w", err)
	}
}

// found takes a slot back whose last read has returned after all. mu is held.
func (s *Streamer) found(sl *slot) {
	sl.lost, sl.key = false, policy.None
	sl.pool.lost--
	sl.pool.spare++
	sl.pool.free = append(sl.pool.free, sl)
}

// lost counts the slots that are given up to reads. mu is held.
func (s *Streamer) lost() (n int) {
	for _, p := range s.pools {
		n += p.lost
	}
	return n
}

// Recall takes back all that was read ahead and not demanded, and guesses nothing until
// the next pass. Reads that have begun are waited for, unless they take long. No batch
// may be open.
func (s *Streamer) Recall() {
	s.takeAllBack()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying == 0 {
		return
	}
	enough := false
	stop := s.after(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		enough = true
		s.quiet.Broadcast()
	})
	defer stop()
	for s.flying > 0 && !enough {
		s.quiet.Wait()
	}
	if s.flying == 0 {
		return
	}
	for _, p := range s.pools {
		for _, sl := range slices.Clone(p.aheads) {
			if sl.pending > 0 {
				s.lose(sl)
			}
		}
	}
}

// afterFunc is the clock of Recall; tests have another.
func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }
