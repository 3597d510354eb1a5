package expert

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/flashio/flashtest"
)

// hangFixture is a streamer on a disk of which the read at an offset does not return
// before it is told to.
func hangFixture(t *testing.T, f *fixture, at int64) (s *Streamer, disk *flashtest.Disk, arrived, release chan struct{}) {
	t.Helper()
	disk = flashtest.NewDisk(nil)
	files, err := flashio.OpenFiles([]string{f.path}, flashio.FileOptions{Opener: disk, Round: -1})
	if err != nil {
		t.Fatal(err)
	}
	shape := f.shape(t)
	p, err := policy.New("lru", shape)
	if err != nil {
		t.Fatal(err)
	}
	budget := 4 * shape.LayerWorkingSet()
	s, err = NewStreamer(files, f.layout, Options{Budget: budget, Reserve: shape.LayerWorkingSet(), Policy: p, Overlap: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := flashio.OpenLanes(files, flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.SetReader(r)
	arrived, release = make(chan struct{}), make(chan struct{})
	var hung atomic.Bool
	disk.Before(func(_ string, off int64, n int) {
		if at >= off && at < off+int64(n) && !hung.Swap(true) {
			close(arrived)
			<-release
		}
	})
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, disk, arrived, release
}

// What is read ahead and does not return is not waited for beyond patience; its slot
// is replaced, and is one of the cache's again when the read returns.
func TestRecallLeavesAReadThatHangs(t *testing.T) {
	f := newFixture(t)
	up := f.layout.Layers[2][1]
	s, _, arrived, release := hangFixture(t, f, up.Offset+5*up.Bytes+100)
	var waited time.Duration
	s.after = func(d time.Duration, f func()) func() bool { waited = d; go f(); return func() bool { return true } }
	free := freeSlots(s)
	if !s.readAhead(s.shape.Key(2, 5)) {
		t.Fatal("it is not read ahead")
	}
	<-arrived
	if h := s.Hung(nil, 1<<62); len(h) != 1 && len(h) != 2 || h[0].Layer != 2 || h[0].Expert != 5 {
		t.Errorf("hung: %+v", h)
	}
	if h := s.Hung(nil, 0); len(h) != 0 {
		t.Errorf("hung before it had begun: %+v", h)
	}
	s.Recall()
	if waited != patience || s.flying != 0 || s.lost() != 1 || freeSlots(s) != free {
		t.Errorf("waited %v; %d reads ahead, %d slots lost, %d of %d free", waited, s.flying, s.lost(), freeSlots(s), free)
	}
	s.Empty()
	if freeSlots(s) != free {
		t.Errorf("after emptying %d of %d are free", freeSlots(s), free)
	}
	if err := s.Resize(s.dir.Budget(), s.ahead); err == nil {
		t.Error("a cache of which a read has a slot was resized")
	}
	b := s.Acquire(2, 1, []int32{5, 6}) // the expert itself, into another slot
	f.compute(b, 2, func(e int32, ok bool) {
		if !ok {
			t.Errorf("expert %d has wrong bytes", e)
		}
	})
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	close(release)
	for end := time.Now().Add(10 * time.Second); ; {
		s.mu.Lock()
		lost := s.lost()
		s.mu.Unlock()
		if lost == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the slot does not come back")
		}
	}
	if err := s.Resize(s.dir.Budget()+s.ahead, s.ahead); err != nil {
		t.Error(err)
	}
	s.Empty()
	if freeSlots(s) != free {
		t.Errorf("after the read has returned %d of %d are free", freeSlots(s), free)
	}
}

// A batch that waits for a read that does not return ends when it is given up, and
// the next one has all its room.
func TestABatchIsGivenUp(t *testing.T) {
	f := newFixture(t)
	up := f.layout.Layers[2][1]
	s, _, arrived, release := hangFixture(t, f, up.Offset+5*up.Bytes+100)
	defer close(release)
	s.GiveUp(context.Canceled) // nothing waits: nothing happens
	free := freeSlots(s)
	b := s.Acquire(2, 1, []int32{4, 5, 6})
	go func() {
		<-arrived
		for b.inFlight.Load() != 1 { // the other lane reads the rest
			runtime.Gosched()
		}
		s.GiveUp(context.Canceled)
	}()
	f.compute(b, 2, func(int32, bool) {})
	if err := b.Release(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if s.lost() != 1 || b.InFlight() {
		t.Errorf("%d slots lost, in flight: %v", s.lost(), b.InFlight())
	}
	for range 3 {
		b := s.Acquire(2, 1, []int32{4, 5, 6, 7})
		f.compute(b, 2, func(e int32, ok bool) {
			if !ok {
				t.Errorf("expert %d has wrong bytes", e)
			}
		})
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
	s.Empty()
	if freeSlots(s) != free {
		t.Errorf("%d of %d slots are free", freeSlots(s), free)
	}
}
