package expert

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/conform"
)

// fixture is a file of random bytes that holds three layers of experts at odd
// offsets, two of them of different size, and a dense one between.
type fixture struct {
	layout Layout
	path   string
	bytes  []byte
	files  *flashio.Files
	opener *faultyOpener
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{layout: Layout{Experts: 12, Used: 3}, opener: &faultyOpener{Opener: flashio.System}}
	offset := int64(33)
	add := func(layer int, name string, n int64) Projection {
		p := Projection{Name: fmt.Sprintf("blk.%d.%s", layer, name), Offset: offset, Bytes: n}
		offset += n*int64(f.layout.Experts) + 31
		return p
	}
	for layer, sizes := range [][]int64{{5000, 5000, 7001}, nil, {5000, 5000, 9000}, {64, 64, 64}} {
		var ps []Projection
		for i, n := range sizes {
			ps = append(ps, add(layer, []string{"gate", "up", "down"}[i], n))
		}
		f.layout.Layers = append(f.layout.Layers, ps)
	}
	f.bytes = make([]byte, offset)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(f.bytes)
	path := filepath.Join(conform.TempDir(t), "experts.bin")
	if err := os.WriteFile(path, f.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	f.path = path
	var err error
	if f.files, err = flashio.OpenFiles([]string{path}, flashio.FileOptions{Opener: f.opener, Round: -1}); err != nil {
		t.Fatal(err)
	}
	return f
}

// faultyOpener fails the reads for which fail says so, and holds them back while
// gate is locked.
type faultyOpener struct {
	flashio.Opener
	fail atomic.Bool
	gate sync.RWMutex
}

func (o *faultyOpener) Open(path string, direct bool) (flashio.Handle, error) {
	h, err := o.Opener.Open(path, direct)
	return &faultyHandle{h, o}, err
}

type faultyHandle struct {
	flashio.Handle
	o *faultyOpener
}

func (h *faultyHandle) ReadAt(p []byte, off int64) (int, error) {
	h.o.gate.RLock()
	defer h.o.gate.RUnlock()
	if h.o.fail.Load() && off > 8192 {
		return 0, syscall.EIO
	}
	return h.Handle.ReadAt(p, off)
}

func (f *fixture) shape(t *testing.T) policy.Shape {
	t.Helper()
	shape, err := f.layout.Shape(f.files)
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

// freeSlots returns how many slots are free.
func freeSlots(s *Streamer) (n int) {
	for _, p := range s.pools {
		n += len(p.free)
	}
	return n
}

func (f *fixture) streamer(t *testing.T, budget int64, lanes int, overlap bool) *Streamer {
	t.Helper()
	p, err := policy.New("lru", f.shape(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStreamer(f.files, f.layout, Options{Budget: budget, Policy: p, Overlap: overlap})
	if err != nil {
		t.Fatal(err)
	}
	r, err := flashio.OpenLanes(f.files, flashio.LaneOptions{Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	s.SetReader(r)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// compute plays the workers of a batch: each takes any stage that is ready and
// not taken, checks its bytes and says that it is computed.
func (f *fixture) compute(b *Batch, workers int, onData func(expert int32, ok bool)) {
	taken := make([]struct{ in, made, out atomic.Bool }, b.Len())
	var left atomic.Int32
	left.Store(int32(b.Len()))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for left.Load() > 0 && !b.Failed() {
				seq, worked := b.Seq(), false
				for i := range taken {
					t := &taken[i]
					switch {
					case b.Ready(i, StageIn) && !t.in.Swap(true):
						if !f.matches(b, i, StageIn) {
							onData(b.Expert(i), false)
						}
						t.made.Store(true)
						b.Computed(i, StageIn)
					case t.made.Load() && b.Ready(i, StageOut) && !t.out.Swap(true):
						onData(b.Expert(i), f.matches(b, i, StageOut))
						left.Add(-1)
						b.Computed(i, StageOut)
					default:
						continue
					}
					worked = true
				}
				if !worked && left.Load() > 0 && !b.Failed() {
					b.Wait(seq)
				}
			}
		})
	}
	wg.Wait()
}

// matches compares what a stage of the i-th expert sees with the file.
func (f *fixture) matches(b *Batch, i, stage int) bool {
	projections := f.layout.Layers[b.layer]
	for p, proj := range projections {
		if (p == len(projections)-1) != (stage == StageOut) {
			continue
		}
		want := f.bytes[proj.Offset+int64(b.Expert(i))*proj.Bytes:][:proj.Bytes]
		if !bytes.Equal(b.Data(i, p), want) {
			return false
		}
	}
	return true
}

// TestEveryExpertHasItsBytes streams random batches, some of them larger than
// the budget, and checks every byte that the workers see. What was hit, read
// and evicted must not depend on lanes, workers or overlap.
func TestEveryExpertHasItsBytes(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	for _, budget := range []int64{shape.LayerWorkingSet(), 150_000, shape.Total()} {
		var want [sha256.Size]byte
		for i, c := range []struct {
			lanes, workers int
			overlap        bool
		}{{1, 1, true}, {4, 3, true}, {8, 2, true}, {2, 1, false}, {4, 3, false}} {
			s := f.streamer(t, budget, c.lanes, c.overlap)
			rng := rand.New(rand.NewPCG(7, 7))
			sum := sha256.New()
			for step := range 200 {
				layer := []int{0, 2, 3}[step%3]
				tokens := 1
				if step%20 < 3 {
					tokens = 8 // a prompt's batch: may touch all experts
				}
				ids := make([]int32, 0, tokens*3)
				for range tokens {
					for _, e := range rng.Perm(12)[:3] {
						ids = append(ids, int32(e))
					}
				}
				b := s.Acquire(layer, tokens, ids)
				var mu sync.Mutex
				seen := map[int32]int{}
				f.compute(b, c.workers, func(e int32, ok bool) {
					mu.Lock()
					defer mu.Unlock()
					seen[e]++
					if !ok {
						t.Errorf("budget %d, %+v, step %d: expert %d has wrong bytes", budget, c, step, e)
					}
				})
				for _, id := range ids {
					if seen[id] != 1 {
						t.Fatalf("budget %d, %+v, step %d: expert %d computed %d times", budget, c, step, id, seen[id])
					}
				}
				if err := b.Release(); err != nil {
					t.Fatal(err)
				}
				st := s.Stats()
				fmt.Fprintln(sum, st.Counters, st.Resident)
				if st.Resident > budget || st.ArenaBytes > budget+int64(len(s.pools)*os.Getpagesize()) || st.SlotsUsed+freeSlots(s) != st.Slots {
					t.Fatalf("budget %d, step %d: %d bytes resident, %d committed, %d of %d slots used, %d free", budget, step, st.Resident, st.ArenaBytes, st.SlotsUsed, st.Slots, freeSlots(s))
				}
			}
			got := [sha256.Size]byte(sum.Sum(nil))
			if i == 0 {
				want = got
			} else if got != want {
				t.Errorf("budget %d, %+v: other hits or evictions than with one lane", budget, c)
			}
		}
	}
}

func TestFailedReadFailsTheBatchAndLosesNothingElse(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	s := f.streamer(t, shape.LayerWorkingSet()+20_000, 2, true)
	run := func(layer int, ids ...int32) error {
		b := s.Acquire(layer, len(ids)/3, ids)
		f.compute(b, 2, func(e int32, ok bool) {
			if !ok {
				t.Errorf("expert %d of layer %d has wrong bytes", e, layer)
			}
		})
		return b.Release()
	}
	if err := run(2, 0, 1, 2); err != nil {
		t.Fatal(err)
	}
	f.opener.fail.Store(true)
	for _, ids := range [][]int32{{3, 4, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}} {
		err := run(2, ids...)
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "layer 2, expert") || !strings.Contains(err.Error(), "experts.bin") {
			t.Fatalf("got %v, want an EIO that names layer, expert and file", err)
		}
		st := s.Stats()
		if st.SlotsUsed+freeSlots(s) != st.Slots {
			t.Fatalf("%d slots used and %d free, want %d in all", st.SlotsUsed, freeSlots(s), st.Slots)
		}
	}
	f.opener.fail.Store(false)
	for range 3 {
		for _, ids := range [][]int32{{3, 4, 5}, {0, 1, 2}, {9, 10, 11}} {
			if err := run(2, ids...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestResizeKeepsWhatFits(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	s := f.streamer(t, shape.Total(), 2, true)
	visit := func(layer int, ids ...int32) {
		t.Helper()
		b := s.Acquire(layer, len(ids)/3, ids)
		f.compute(b, 1, func(e int32, ok bool) {
			if !ok {
				t.Errorf("layer %d, expert %d has wrong bytes", layer, e)
			}
		})
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
	resize := func(budget int64) {
		t.Helper()
		if err := s.Resize(budget, s.ahead); err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		if st.ArenaBytes > budget+int64(len(s.pools)*os.Getpagesize()) || st.SlotsUsed+freeSlots(s) != st.Slots {
			t.Errorf("a budget of %d: %d bytes committed, %d of %d slots used, %d free", budget, st.ArenaBytes, st.SlotsUsed, st.Slots, freeSlots(s))
		}
	}
	first, last := []int32{0, 1, 2, 3, 4, 5}, []int32{6, 7, 8, 9, 10, 11}
	for _, layer := range []int{0, 2, 3} {
		visit(layer, first...)
		visit(layer, last...)
	}
	arena := s.Stats().ArenaBytes
	resize(shape.Total() / 2) // of each layer the half that came last
	before := s.Stats()
	for _, layer := range []int{0, 2, 3} {
		visit(layer, last...)
	}
	if after := s.Stats(); after.Hits-before.Hits != 18 || after.Evictions != 18 {
		t.Errorf("%d hits of 18 and %d evictions of 18 after shrinking", after.Hits-before.Hits, after.Evictions)
	}
	// One layer's working set: all layers share slots, and what is kept moves.
	resize(shape.LayerWorkingSet())
	if st := s.Stats(); st.Slots != 3 || st.SlotsUsed != 3 {
		t.Errorf("%d of %d slots used, want 3 of 3", st.SlotsUsed, st.Slots)
	}
	before = s.Stats()
	visit(3, 9, 10, 11)
	if after := s.Stats(); after.Hits-before.Hits != 3 {
		t.Errorf("%d hits of 3 with the slots of one layer", after.Hits-before.Hits)
	}
	resize(shape.Total())
	before = s.Stats()
	visit(3, 9, 10, 11)
	visit(0, last...)
	if after := s.Stats(); after.Hits-before.Hits != 3 || after.Rereads-before.Rereads != 6 || after.ArenaBytes != arena {
		t.Errorf("%d hits, %d re-reads, %d bytes committed; want 3, 6 and %d", after.Hits-before.Hits, after.Rereads-before.Rereads, after.ArenaBytes, arena)
	}
	s.Empty()
	if st := s.Stats(); st.Counters != (policy.Counters{}) || st.Resident != 0 {
		t.Errorf("not empty: %+v", st)
	}
	visit(0, last...)
	if st := s.Stats(); st.Hits != 0 || st.Lookups != 6 {
		t.Errorf("an emptied cache gave %d hits of %d", st.Hits, st.Lookups)
	}
}

func TestMappedGivesTheSameBytes(t *testing.T) {
	f := newFixture(t)
	m := NewMapped(f.layout, [][]byte{f.bytes})
	for range 2 {
		b := m.Acquire(2, 2, []int32{5, 1, 5, 11, 1, 0})
		if b.Len() != 4 {
			t.Fatalf("%d distinct experts, want 4", b.Len())
		}
		for i, e := range []int32{5, 1, 11, 0} {
			if b.Expert(i) != e || !b.Ready(i, StageIn) || !b.Ready(i, StageOut) || !f.matches(b, i, StageIn) || !f.matches(b, i, StageOut) {
				t.Errorf("item %d is expert %d with other bytes, or not ready", i, b.Expert(i))
			}
		}
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOnlyReadsCountAsWakeUps: news of another worker, long after the last read,
// is no time from the drive to a worker.
func TestOnlyReadsCountAsWakeUps(t *testing.T) {
	f := newFixture(t)
	s := f.streamer(t, f.shape(t).Total(), 2, true)
	visit := func(b *Batch) {
		f.compute(b, 1, func(int32, bool) {})
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
	visit(s.Acquire(2, 1, []int32{0, 1, 2}))
	s.ResetLatency()

	b := s.Acquire(2, 1, []int32{0, 1, 2}) // all hits
	var waiter sync.WaitGroup
	seq := b.Seq()
	waiter.Go(func() { b.Wait(seq) })
	for parked := 0; parked == 0; runtime.Gosched() {
		parked = int(b.parked.Load())
	}
	b.Announce()
	waiter.Wait()
	visit(b)
	if n := s.Wake().Count(); n != 0 {
		t.Errorf("%d wake-ups counted without a read", n)
	}

	// A read's end does count: the waiter is parked before the lane may read.
	f.opener.gate.Lock()
	b = s.Acquire(2, 1, []int32{3, 4, 5})
	seq = b.Seq()
	waiter.Go(func() { b.Wait(seq) })
	for parked := 0; parked == 0; runtime.Gosched() {
		parked = int(b.parked.Load())
	}
	f.opener.gate.Unlock()
	waiter.Wait()
	visit(b)
	if n := s.Wake().Count(); n == 0 {
		t.Error("a worker that waited for a read was not counted")
	}
}

// TestFailedGrowthKeepsTheBudget: without memory for more slots the directory
// must not admit more experts than there are slots, or a read waits for ever.
func TestFailedGrowthKeepsTheBudget(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	budget := 2 * shape.LayerWorkingSet()
	s := f.streamer(t, budget, 2, true)
	// No room to grow: address space that ends behind the slots of today.
	for _, p := range s.pools {
		whole := p.memory
		defer whole.Release()
		var err error
		if p.memory, err = flashio.Reserve(max(p.committed, 1)); err != nil {
			t.Fatal(err)
		}
		if err := p.memory.Commit(0, p.committed); err != nil {
			t.Fatal(err)
		}
		for _, sl := range p.slots {
			sl.mem = p.memory.Bytes()[sl.index*p.slotBytes:][:p.slotBytes]
		}
	}
	if err := s.Resize(shape.Total(), s.ahead); err == nil || !strings.Contains(err.Error(), "{cache}") {
		t.Fatalf("got %v, want an error that mentions the setting", err)
	}
	if st := s.Stats(); st.Budget != budget {
		t.Fatalf("a budget of %d is in force, want %d as before", st.Budget, budget)
	}
	for _, layer := range []int{0, 2, 0, 2} {
		b := s.Acquire(layer, 3, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8})
		f.compute(b, 2, func(e int32, ok bool) {
			if !ok {
				t.Errorf("layer %d, expert %d has wrong bytes", layer, e)
			}
		})
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
