package expert

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
)

// aheadStreamer returns a streamer that may read three experts of each size
// ahead, over a reader that waits for the test.
func aheadStreamer(t *testing.T, f *fixture) (*Streamer, *held) {
	t.Helper()
	shape := f.shape(t)
	p, err := policy.New("lru", shape)
	if err != nil {
		t.Fatal(err)
	}
	var ahead int64
	for _, n := range shape.Pools(0).Bytes {
		ahead += 3 * n
	}
	s, err := NewStreamer(f.files, f.layout, Options{Budget: shape.Total(), Policy: p, Overlap: true, Reserve: ahead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if st := s.Stats(); st.ArenaBytes > shape.Total()+int64(len(s.pools))<<16 || st.Budget != shape.Total() {
		t.Fatalf("%d bytes committed for a budget of %d, said to be %d", st.ArenaBytes, shape.Total(), st.Budget)
	}
	h := &held{}
	s.SetReader(h)
	return s, h
}

// specs tells of each waiting read whether it is speculation.
func (h *held) specs() (list []bool) {
	for _, r := range h.queue {
		list = append(list, r.Spec)
	}
	return list
}

func TestDemandPromotesWhatIsReadAhead(t *testing.T) {
	f := newFixture(t)
	s, h := aheadStreamer(t, f)
	key := f.shape(t).Key(2, 5)
	if !s.readAhead(key) || s.readAhead(key) {
		t.Fatal("an expert was not read ahead, or twice")
	}
	if got := h.specs(); !slices.Equal(got, []bool{true, true, true}) {
		t.Fatalf("queued %v, want three speculative reads", got)
	}
	h.complete(0) // its gate has come before anybody asks
	up := h.begin(0)
	if c := s.Stats().Counters; c != (policy.Counters{}) {
		t.Errorf("the directory knows of a guess: %+v", c)
	}
	b := s.Acquire(2, 1, []int32{5})
	if got := h.specs(); !slices.Equal(got, []bool{false}) {
		t.Fatalf("after demand the queue is %v, want the down as demand", got)
	}
	if c := s.Stats().Counters; c.Hits != 0 || c.Lookups != 1 || c.ReadBytes != 19000 {
		t.Errorf("counted %+v, want a miss", c)
	}
	if b.Ready(0, StageIn) || !b.InFlight() {
		t.Error("ready before its up has arrived")
	}
	h.end(up, nil)
	if !b.Ready(0, StageIn) || b.Ready(0, StageOut) {
		t.Error("the first stage has all its bytes, the second has not")
	}
	h.complete(0)
	b.Computed(0, StageIn)
	b.Computed(0, StageOut)
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if b := s.Acquire(2, 1, []int32{5}); !b.Ready(0, StageIn) || !b.Ready(0, StageOut) || len(h.queue) != 0 {
		t.Error("what was read ahead and used has not stayed")
	}
}

func TestCancelFreesTheSlotWhenReadsAreOver(t *testing.T) {
	f := newFixture(t)
	s, h := aheadStreamer(t, f)
	free := freeSlots(s)
	shape := f.shape(t)
	s.readAhead(shape.Key(2, 5))
	s.cancel(shape.Key(2, 5))
	if len(h.queue) != 0 || freeSlots(s) != free {
		t.Fatalf("%d reads wait and %d of %d slots are free after cancelling all", len(h.queue), freeSlots(s), free)
	}
	s.readAhead(shape.Key(2, 5))
	gate := h.begin(0)
	s.cancel(shape.Key(2, 5))
	if len(h.queue) != 0 || freeSlots(s) != free-1 {
		t.Fatal("a slot is free while a read into it is in flight")
	}
	// Demanded after all: what was taken back is read anew.
	b := s.Acquire(2, 1, []int32{5})
	if got := h.specs(); !slices.Equal(got, []bool{false, false}) {
		t.Fatalf("queued %v, want up and down as demand", got)
	}
	h.end(gate, nil)
	h.complete(0)
	h.complete(0)
	if !b.Ready(0, StageIn) || !b.Ready(0, StageOut) {
		t.Error("not ready with all bytes there")
	}
	b.Computed(0, StageIn)
	b.Computed(0, StageOut)
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	s.cancel(shape.Key(2, 5)) // a resident is no guess
	if b := s.Acquire(2, 1, []int32{5}); !b.Ready(0, StageOut) {
		t.Error("a resident was cancelled")
	}

	s.readAhead(shape.Key(2, 6))
	gate = h.begin(0)
	s.cancel(shape.Key(2, 6))
	h.end(gate, nil)
	if freeSlots(s) != free-1 { // the resident
		t.Error("a slot is not free after its last read")
	}
	if s.readAhead(shape.Key(3, 0)); !s.readAhead(shape.Key(3, 1)) || !s.readAhead(shape.Key(3, 2)) || s.readAhead(shape.Key(3, 3)) {
		t.Error("not three experts of a size are read ahead")
	}
	s.Recall()
	if len(h.queue) != 0 || freeSlots(s) != free-1 {
		t.Error("not all was recalled")
	}
}

func TestFailedReadAheadIsForgotten(t *testing.T) {
	f := newFixture(t)
	s, h := aheadStreamer(t, f)
	free := freeSlots(s)
	key := f.shape(t).Key(2, 5)
	s.readAhead(key)
	h.end(h.begin(0), syscall.EIO)
	h.complete(0)
	h.complete(0)
	if freeSlots(s) != free {
		t.Error("the slot of a failed read ahead is not free")
	}
	s.readAhead(key)
	h.end(h.begin(0), syscall.EIO)
	b := s.Acquire(2, 1, []int32{5}) // while up and down are in flight
	if len(h.queue) != 3 || b.Failed() {
		t.Fatalf("%d reads wait, want up, down and gate anew", len(h.queue))
	}
	for range 3 {
		h.complete(0)
	}
	if !b.Ready(0, StageIn) || !b.Ready(0, StageOut) {
		t.Error("not ready with all bytes there")
	}
}

// TestGuessesDecideNothing streams random batches with and without experts read
// ahead, right and wrong, cancelled and not: what is hit and evicted is the same.
func TestGuessesDecideNothing(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	walk := func(guess bool) (all []policy.Counters) {
		p, _ := policy.New("lru", shape)
		o := Options{Budget: 160_000, Policy: p, Overlap: true}
		if guess {
			o.Reserve = shape.LayerWorkingSet()
			o.Budget += o.Reserve
		}
		s, err := NewStreamer(f.files, f.layout, o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := flashio.OpenLanes(f.files, flashio.LaneOptions{Lanes: 3})
		if err != nil {
			t.Fatal(err)
		}
		s.SetReader(r)
		routes, guesses := rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(6, 6))
		for step := range 300 {
			layer := []int{0, 2, 3}[step%3]
			var ids []int32
			for range 1 + routes.IntN(4) {
				for _, e := range routes.Perm(12)[:3] {
					ids = append(ids, int32(e))
				}
			}
			for range 3 {
				k := shape.Key(layer, int32(guesses.IntN(12)))
				if guess && s.readAhead(k) && guesses.IntN(4) == 0 {
					s.cancel(k)
				}
			}
			b := s.Acquire(layer, len(ids)/3, ids)
			f.compute(b, 2, func(e int32, ok bool) {
				if !ok {
					t.Errorf("step %d: expert %d has wrong bytes", step, e)
				}
			})
			if err := b.Release(); err != nil {
				t.Fatal(err)
			}
			all = append(all, s.Stats().Counters)
			if step == 150 {
				if err := s.Resize(o.Budget*3/4, s.ahead); err != nil {
					t.Fatal(err)
				}
				if err := s.Resize(o.Budget, s.ahead); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.Empty()
		if st := s.Stats(); freeSlots(s) != st.Slots {
			t.Errorf("%d of %d slots are free in an empty cache", freeSlots(s), st.Slots)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		return all
	}
	if with, without := walk(true), walk(false); !slices.Equal(with, without) {
		t.Error("guesses changed what is hit, read or evicted")
	}
}
