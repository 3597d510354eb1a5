package expert

import (
	"fmt"
	"runtime"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/stats"
)

// Options are the choices of a Streamer.
type Options struct {
	Budget  int64 // logical bytes of experts that may be resident
	Policy  policy.Policy
	Overlap bool // compute experts while others are read
}

// Stats is what a streamer has counted. Bytes are logical unless a name says
// otherwise.
type Stats struct {
	policy.Counters
	Resident, Budget int64
	Slots, SlotsUsed int
	ArenaBytes       int64 // committed for slots
	Reads            int64 // windows read, failed ones not counted
	WindowBytes      int64 // what the drive served for them
	BusyNanos        int64 // time inside the system call, summed over reads
	ReadingNanos     int64 // time with at least one read in flight
}

// Streamer reads missing experts straight into cache slots. Its methods are
// for one goroutine; the batch that Acquire returns is for all workers.
type Streamer struct {
	files  *flashio.Files
	reader flashio.Reader
	layout Layout
	slots  slots
	dir    *policy.Directory

	memory *flashio.Range // room for every expert, committed for the budget's slots
	count  int            // slots committed
	free   []int32
	slotOf []int32 // by key; -1: not in a slot

	batch   Batch
	submits []*flashio.Request

	// Counted by ReadDone, under the batch's mu, since the cache was last emptied.
	reads, windowBytes, busyNanos, readingNanos int64

	latency stats.Histogram // time inside the system call, a read
}

// NewStreamer lays out the slots and commits memory for the budget. It needs a
// reader (SetReader) before the first batch, and does not own it.
func NewStreamer(files *flashio.Files, l Layout, o Options) (*Streamer, error) {
	sl, err := layOut(l, files)
	if err != nil {
		return nil, err
	}
	shape := l.Shape()
	s := &Streamer{files: files, layout: l, slots: sl, dir: policy.NewDirectory(shape, o.Budget, o.Policy),
		slotOf: make([]int32, shape.Keys())}
	for i := range s.slotOf {
		s.slotOf[i] = -1
	}
	total := most(shape, shape.Total())
	if s.memory, err = flashio.Reserve(total * sl.bytes); err != nil {
		return nil, fmt.Errorf("address space for %d expert slots: %w", total, err)
	}
	if err := s.grow(most(shape, o.Budget)); err != nil {
		s.memory.Release() // the error that matters is the first
		return nil, err
	}
	b := &s.batch
	b.owner, b.serial, b.news.L = s, !o.Overlap, &b.mu
	b.items = make([]item, l.Experts)
	for i := range b.items {
		b.items[i].batch = b
	}
	s.submits = make([]*flashio.Request, 0, l.Experts*MaxProjections)
	return s, nil
}

// SetReader gives the streamer the reader to use from now on; nil while there
// is none. No batch may be open.
func (s *Streamer) SetReader(r flashio.Reader) { s.reader = r }

// SetOverlap says whether experts are computed while others are read.
func (s *Streamer) SetOverlap(on bool) { s.batch.serial = !on }

// Acquire implements Source.
func (s *Streamer) Acquire(layer, tokens int, ids []int32) *Batch {
	b := &s.batch
	s.dir.Visit(layer, tokens, ids, &b.plan)

	b.layer, b.err, b.next, b.consumed, b.started = layer, nil, 0, 0, 0
	b.failed.Store(false)
	b.n = len(b.plan.Steps)
	for i, step := range b.plan.Steps {
		it := &b.items[i]
		it.key, it.expert = step.Key, int32(int(step.Key)-layer*s.layout.Experts)
		it.slot, it.late, it.arrived = s.slotOf[step.Key], false, step.Hit
		it.made.Store(false)
		it.missing[StageIn].Store(int32(len(s.layout.Layers[layer]) - 1))
		it.missing[StageOut].Store(1)
		if step.Hit {
			s.point(it)
			it.missing[StageIn].Store(0)
			it.missing[StageOut].Store(0)
			b.next, b.started = i+1, i+1
		}
	}
	// Who was evicted from outside the batch frees its slot now; who is of the
	// batch does when it has been computed.
	for i := range b.plan.Steps {
		for _, gone := range b.plan.Steps[i].Evicted {
			if at := b.indexOf(gone); at >= 0 {
				b.items[at].late = true
				continue
			}
			s.free = append(s.free, s.slotOf[gone])
			s.slotOf[gone] = -1
		}
	}
	b.mu.Lock()
	s.submit(b)
	b.mu.Unlock()
	return b
}

// indexOf finds a key among the items that could be evicted: a batch that
// exceeds the budget is rare, and then it is a prompt's.
func (b *Batch) indexOf(k policy.Key) int {
	for i := range b.n {
		if b.items[i].key == k {
			return i
		}
	}
	return -1
}

// submit gives slots to the next items that have none and submits their reads,
// until slots or items run out: the first stage of all of them comes before the
// second of any, so that computing can begin. The batch's mu is held.
func (s *Streamer) submit(b *Batch) {
	from := b.next
	for b.next < b.n && len(s.free) > 0 && b.err == nil {
		it := &b.items[b.next]
		it.slot = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		s.slotOf[it.key] = it.slot
		s.point(it)
		b.next++
		b.started++
	}
	s.submits = s.submits[:0]
	last := len(s.layout.Layers[b.layer]) - 1
	for i := from; i < b.next; i++ {
		for p := range last {
			s.prepare(&b.items[i], p)
		}
	}
	for i := from; i < b.next; i++ {
		s.prepare(&b.items[i], last)
	}
	if len(s.submits) == 0 {
		return
	}
	if b.inFlight.Add(int32(len(s.submits))) == int32(len(s.submits)) {
		b.readingSince = clock.Now()
	}
	s.reader.Submit(s.submits...)
}

// prepare adds the read of one projection to those that submit hands over.
func (s *Streamer) prepare(it *item, p int) {
	layer := it.batch.layer
	proj := &s.layout.Layers[layer][p]
	w, err := s.files.Window(proj.File, proj.Offset+int64(it.expert)*proj.Bytes, proj.Bytes)
	if err != nil {
		// NewStreamer asked for this very window: the set cannot have changed.
		panic(err)
	}
	r := &it.reads[p]
	r.File, r.Offset, r.Need, r.Done = proj.File, w.Offset, w.Need, it
	r.Buf = s.slot(it.slot)[s.slots.start[layer][p]:][:w.Length]
	s.submits = append(s.submits, r)
}

// ReadDone implements flashio.Completer, on a lane's goroutine. It wakes workers
// only if they can go on: a stage can be computed, or nothing is in flight.
func (it *item) ReadDone(r *flashio.Request) {
	b := it.batch
	news := false
	b.mu.Lock()
	if r.Err != nil {
		if b.err == nil {
			b.err = fmt.Errorf("layer %d, expert %d: %w", b.layer, it.expert, r.Err)
		}
		b.failed.Store(true)
		news = true
	} else {
		s := b.owner
		s.reads++
		s.windowBytes += int64(r.N)
		s.busyNanos += r.Ended - r.Started
		s.latency.Record(r.Ended - r.Started)
		stage := StageIn
		if r == &it.reads[len(s.layout.Layers[b.layer])-1] {
			stage = StageOut
		}
		if it.missing[stage].Add(-1) == 0 {
			news = !b.serial && (stage == StageIn || it.made.Load())
			it.arrived = it.missing[StageIn].Load() == 0 && it.missing[StageOut].Load() == 0
		}
	}
	if b.inFlight.Add(-1) == 0 {
		news = true
		b.owner.readingNanos += clock.Now() - b.readingSince
	}
	if news && r.Ended != 0 { // else no read was made
		b.lastEnded = r.Ended
	}
	b.mu.Unlock()
	if news {
		b.Announce()
	}
}

// settle forgets what did not arrive. The batch's mu is held, no read is in flight.
func (s *Streamer) settle(b *Batch) {
	if b.err == nil {
		return
	}
	for i := range b.n {
		it := &b.items[i]
		if it.late {
			// The directory has evicted it already; a failed batch may not have consumed it.
			if it.slot >= 0 && s.slotOf[it.key] == it.slot {
				s.freeSlot(it)
			}
			continue
		}
		if !it.arrived {
			s.dir.Forget(it.key)
			if it.slot >= 0 {
				s.freeSlot(it)
			}
		}
	}
}

func (s *Streamer) freeSlot(it *item) {
	s.free = append(s.free, it.slot)
	s.slotOf[it.key] = -1
}

// slot returns the memory of a slot.
func (s *Streamer) slot(n int32) []byte {
	return s.memory.Bytes()[int(n)*s.slots.bytes:][:s.slots.bytes]
}

// point sets an item's data to where its projections lie in its slot.
func (s *Streamer) point(it *item) {
	mem := s.slot(it.slot)
	layer := int(it.key) / s.layout.Experts
	for p, proj := range s.layout.Layers[layer] {
		offset := proj.Offset + int64(it.expert)*proj.Bytes
		skip := int(offset & int64(s.files.Align()-1))
		it.data[p] = mem[s.slots.start[layer][p]+skip:][:proj.Bytes]
	}
}

// Empty forgets all residents and counters; the memory stays.
func (s *Streamer) Empty() {
	s.dir.Empty()
	s.free = s.free[:0]
	for i := range s.slotOf {
		s.slotOf[i] = -1
	}
	// The last of the list is taken first: slots fill from the start.
	for n := int32(s.count) - 1; n >= 0; n-- {
		s.free = append(s.free, n)
	}
	s.reads, s.windowBytes, s.busyNanos, s.readingNanos = 0, 0, 0, 0
	s.latency.Reset()
	s.batch.wake.Reset()
}

// Resize changes the budget. Entries that fit stay, in the policy's order;
// those in slots beyond the new end are moved. No batch may be open.
func (s *Streamer) Resize(budget int64) error {
	old := s.dir.Budget()
	for _, k := range s.dir.Resize(budget) {
		s.free = append(s.free, s.slotOf[k])
		s.slotOf[k] = -1
	}
	n := most(s.layout.Shape(), budget)
	if n < s.count {
		return s.shrink(n)
	}
	if err := s.grow(n); err != nil {
		// The directory must not let in more than there are slots for: a read
		// would wait for one for ever.
		s.dir.Resize(old)
		return err
	}
	return nil
}

// grow commits slots up to n and touches their pages: a fresh page costs a
// quarter of the read rate (docs/architecture.md, Memory).
func (s *Streamer) grow(n int) error {
	from, size := s.count*s.slots.bytes, (n-s.count)*s.slots.bytes
	if err := s.memory.Commit(from, size); err != nil {
		return fmt.Errorf("commit %d MiB for %d expert slots: %w; choose a smaller --cache-mb", size>>20, n-s.count, err)
	}
	s.memory.Touch(from, size, runtime.NumCPU())
	for i := n - 1; i >= s.count; i-- {
		s.free = append(s.free, int32(i))
	}
	s.count = n
	return nil
}

// shrink moves what lies in slots beyond n and hands their memory back.
func (s *Streamer) shrink(n int) error {
	keep := s.free[:0]
	for _, f := range s.free {
		if int(f) < n {
			keep = append(keep, f)
		}
	}
	s.free = keep
	for k, from := range s.slotOf {
		if int(from) < n {
			continue
		}
		to := s.free[len(s.free)-1] // n slots hold whatever the budget allows
		s.free = s.free[:len(s.free)-1]
		copy(s.slot(to), s.slot(from))
		s.slotOf[k] = to
	}
	from, size := n*s.slots.bytes, (s.count-n)*s.slots.bytes
	s.count = n
	if err := s.memory.Decommit(from, size); err != nil {
		return fmt.Errorf("hand back %d MiB of expert slots: %w", size>>20, err)
	}
	return nil
}

// Stats returns what was counted since the cache was last emptied. No batch may be open.
func (s *Streamer) Stats() Stats {
	resident, entries := s.dir.Resident()
	return Stats{Counters: s.dir.Counters(), Resident: resident, Budget: s.dir.Budget(),
		Slots: s.count, SlotsUsed: entries, ArenaBytes: int64(s.count) * int64(s.slots.bytes),
		Reads: s.reads, WindowBytes: s.windowBytes, BusyNanos: s.busyNanos, ReadingNanos: s.readingNanos}
}

// Latency returns the times inside the system call, a read, since the last
// ResetLatency. No batch may be open.
func (s *Streamer) Latency() *stats.Histogram { return &s.latency }

// ResetLatency starts the two histograms anew, as for a run of its own.
func (s *Streamer) ResetLatency() {
	s.latency.Reset()
	s.batch.wake.Reset()
}

// Wake returns the times from a read's end until a parked worker ran again,
// since the last ResetLatency. No batch may be open.
func (s *Streamer) Wake() *stats.Histogram { return &s.batch.wake }

// Directory returns the cache's book-keeping, for screens that show who is resident.
func (s *Streamer) Directory() *policy.Directory { return s.dir }

// Close hands back the memory. The reader stays open.
func (s *Streamer) Close() error { return s.memory.Release() }
