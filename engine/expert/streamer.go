package expert

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
)

// Options are the choices of a Streamer.
type Options struct {
	Budget  int64 // slot bytes: memory for slots stays within it, but for whole pages
	Policy  policy.Policy
	Overlap bool // compute experts while others are read

	Reserve int64 // of the budget: slots for experts that are read before they are asked for
	Vocab   int   // tokens of the vocabulary, for guesses by their ids

	// WholeLayers reads every expert of every layer anew, whatever is needed of it: what
	// streaming costs that knows nothing of routes. The budget is to hold a layer.
	WholeLayers bool
}

// Stats is what a streamer has counted. Bytes are logical unless a name says
// otherwise.
type Stats struct {
	policy.Counters
	Resident         int64 // slot bytes of the experts that are there
	Budget           int64 // slot bytes
	Slots, SlotsUsed int
	SlotsAhead       int   // of them, kept for what is read ahead
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
	starts [][MaxProjections]int // by layer: where in a slot a projection's window begins
	shape  policy.Shape
	dir    *policy.Directory
	curve  *policy.Curve // what other budgets would have hit
	counts bool          // curve counts what is looked up
	ahead  int64
	vocab  int
	fore   forecast
	census census
	links  links
	bank   []int32 // all experts of the layer, if whole layers are read
	notes  []Note  // by expert, of the latest batch; nil: nobody wants them

	// OnRead, if set, learns of every read that is over, on a lane's goroutine and with
	// the streamer locked: it must be quick and ask the streamer nothing.
	OnRead func(layer, expert, projection int, guessed bool, r *flashio.Request)

	// mu guards slots with reads pending, the free slots, the reads' counters
	// and the part of the batch that waits for slots. A batch that finds all its
	// experts does not take it.
	mu     sync.Mutex
	quiet  sync.Cond // no read is in flight that was made ahead
	pools  []*pool
	slotOf []*slot // by key; nil: not in a slot
	flying int     // reads made ahead, not over and wanted by no batch
	short  error   // why there are fewer slots than the directory reckons with
	after  func(time.Duration, func()) (stop func() bool)

	flights []flashio.Flight // scratch of Hung

	batch   Batch
	submits []*flashio.Request

	onTheWay     int   // reads submitted and not over
	readingSince int64 // when that last rose from zero

	// Since the cache was last emptied.
	reads, windowBytes, busyNanos, readingNanos int64

	latency stats.Histogram // time inside the system call, a read
}

// NewStreamer lays out the slots and commits memory for the budget. It needs a
// reader (SetReader) before the first batch, and does not own it.
func NewStreamer(files *flashio.Files, l Layout, o Options) (*Streamer, error) {
	shape, err := l.Shape(files)
	if err != nil {
		return nil, err
	}
	if o.WholeLayers {
		shape.Used = shape.Experts
	}
	starts, err := l.starts(files)
	if err != nil {
		return nil, err
	}
	s := &Streamer{files: files, layout: l, starts: starts, shape: shape, slotOf: make([]*slot, shape.Keys()), ahead: o.Reserve, vocab: o.Vocab,
		dir: policy.NewDirectory(shape, o.Budget-o.Reserve, o.Policy), curve: policy.NewCurve(shape)}
	s.quiet.L = &s.mu
	s.after, s.flights = afterFunc, make([]flashio.Flight, 0, flashio.MaxLanes)
	if o.WholeLayers {
		s.bank = make([]int32, 0, l.Experts)
	}
	s.fore.init(shape)
	s.census.init(shape, o.Policy)
	s.links.init(shape, &s.census)
	pools := s.dir.Pools()
	for i, n := range pools.Bytes {
		// Beside its most residents a pool holds what is read ahead, never more
		// than all there is, and slots that hung reads have taken.
		memory, err := flashio.Reserve((2*pools.Cap[i] + flashio.MaxLanes) * int(n))
		if err != nil {
			s.Close() // the error that matters is the first
			return nil, fmt.Errorf("address space for expert slots: %w", err)
		}
		s.pools = append(s.pools, &pool{memory: memory, slotBytes: int(n)})
	}
	if err := s.grow(); err != nil {
		s.Close()
		return nil, err
	}
	b := &s.batch
	b.init(l.Experts)
	b.streamer, b.serial = s, !o.Overlap
	s.submits = make([]*flashio.Request, 0, l.Experts*MaxProjections)
	return s, nil
}

// SetReader gives the streamer the reader to use from now on; nil while there
// is none. No batch may be open.
func (s *Streamer) SetReader(r flashio.Reader) {
	s.reader = r
	if r != nil {
		// Half of the lanes at most: what demand then waits for is short.
		s.fore.most = max(1, r.Lanes()/2)
	}
}

// SetOverlap says whether experts are computed while others are read.
func (s *Streamer) SetOverlap(on bool) { s.batch.serial = !on }

// SetPolicy changes which experts are given up; those that are there stay. No batch
// may be open.
func (s *Streamer) SetPolicy(p policy.Policy) {
	s.dir.SetPolicy(p)
	s.census.follow(p)
}

// Acquire implements Source.
func (s *Streamer) Acquire(layer, tokens int, ids []int32) *Batch {
	b := &s.batch
	wanted := 0
	if s.bank != nil {
		wanted = s.wholeLayer(ids)
		tokens, ids = 1, s.bank
	} else {
		s.curve.Visit(layer, ids, s.counts)
	}
	s.dir.Visit(layer, tokens, ids, &b.plan)
	if s.notes != nil {
		s.note(layer)
	}
	s.links.batch()
	hits := 0
	b.begin(layer, len(b.plan.Steps))
	if s.bank != nil {
		b.unused = b.n - wanted
		b.left.Store(int32(wanted))
	}
	s.census.visit(b.plan.Steps[:b.n], b.n-b.unused)
	for i, step := range b.plan.Steps {
		it := &b.items[i]
		it.key, it.expert, it.late, it.fresh = step.Key, int32(int(step.Key)-layer*s.layout.Experts), false, false
		it.made.Store(false)
		it.slot.Store(nil)
		if step.Hit {
			it.slot.Store(s.slotOf[step.Key])
			hits++
		}
	}
	b.next, b.started = hits, hits
	b.known = hits == b.n
	b.whole = b.known
	if b.known && !s.fore.on() {
		return b
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fore.on() {
		s.visited(layer, tokens, ids)
	}
	if !b.known && s.short != nil {
		b.err = s.short
		b.failed.Store(true)
	} else if !b.known {
		late := s.evict(b)
		if tokens == 1 {
			s.links.asked = clock.Now()
		}
		s.submit(b)
		b.whole = !late && b.next == b.n
	}
	if s.fore.on() {
		s.pump()
	}
	return b
}

// wholeLayer empties the cache and puts all experts of a layer into s.bank, those
// that are wanted first. It returns how many these are.
func (s *Streamer) wholeLayer(ids []int32) (wanted int) {
	for k, sl := range s.slotOf {
		if sl != nil {
			s.forget(policy.Key(k), profile.GoneLayer)
			s.give(sl)
		}
	}
	s.bank = s.bank[:0]
	for _, e := range ids {
		if !slices.Contains(s.bank, e) {
			s.bank = append(s.bank, e)
		}
	}
	wanted = len(s.bank)
	for e := range int32(s.layout.Experts) {
		if !slices.Contains(s.bank[:wanted], e) {
			s.bank = append(s.bank, e)
		}
	}
	return wanted
}

// evict frees the slots of those who were evicted from outside the batch. Who is
// of the batch is late: it gives its slot up when it has been computed; evict
// reports whether there are such. mu is held.
func (s *Streamer) evict(b *Batch) (late bool) {
	for i := range b.plan.Steps {
		gone := b.plan.Steps[i].Evicted
		if gone == policy.None {
			continue
		}
		if at := b.indexOf(gone); at >= 0 {
			b.items[at].late, late = true, true
			continue
		}
		s.give(s.slotOf[gone])
	}
	return late
}

// indexOf finds a key among the items. Misses of a layer evict mostly experts
// of other layers, which are not searched for.
func (b *Batch) indexOf(k policy.Key) int {
	if b.streamer.shape.Layer(k) != b.layer {
		return -1
	}
	for i := range b.n {
		if b.items[i].key == k {
			return i
		}
	}
	return -1
}

// take gives a free slot of a layer's pool to an expert. mu is held; there is
// one.
func (s *Streamer) take(k policy.Key) *slot {
	layer := s.shape.Layer(k)
	p := s.poolOf(layer)
	sl := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	sl.key, sl.ahead, sl.useless, sl.user, sl.link = k, false, false, nil, -1
	sl.there = [MaxProjections]bool{}
	sl.missing[StageIn].Store(int32(len(s.layout.Layers[layer]) - 1))
	sl.missing[StageOut].Store(1)
	s.point(sl)
	s.slotOf[k] = sl
	return sl
}

// give frees a slot that no read is on its way into. mu is held.
func (s *Streamer) give(sl *slot) {
	if sl.ahead {
		s.noLongerAhead(sl)
	}
	s.slotOf[sl.key] = nil
	sl.key, sl.user = policy.None, nil
	sl.pool.free = append(sl.pool.free, sl)
}

func (s *Streamer) poolOf(layer int) *pool { return s.pools[s.dir.Pools().Of[layer]] }

// point sets a slot's data to where its expert's projections lie in it.
func (s *Streamer) point(sl *slot) {
	layer := s.shape.Layer(sl.key)
	expert := int64(int(sl.key) - layer*s.layout.Experts)
	for p, proj := range s.layout.Layers[layer] {
		skip := int((proj.Offset + expert*proj.Bytes) & int64(s.files.Align()-1))
		sl.data[p] = sl.mem[s.starts[layer][p]+skip:][:proj.Bytes]
	}
}

// submit gives slots to the next items that have none and submits their reads,
// until slots or items run out: the first stage of all of them comes before the
// second of any, so that computing can begin. mu is held.
func (s *Streamer) submit(b *Batch) {
	free := &s.poolOf(b.layer).free
	from, wanted := b.next, 0
	s.submits = s.submits[:0]
	for b.next < b.n && b.err == nil {
		it := &b.items[b.next]
		s.fore.failed[it.key] = false
		sl := s.slotOf[it.key]
		if it.fresh = sl == nil; it.fresh {
			if len(*free) == 0 {
				break
			}
			sl = s.take(it.key)
		} else {
			wanted += s.promote(sl)
		}
		sl.user = it
		if s.links.asked > 0 {
			s.links.missed(sl)
		}
		it.slot.Store(sl)
		b.next++
		b.started++
	}
	last := len(s.layout.Layers[b.layer]) - 1
	for i := from; i < b.next; i++ {
		for p := 0; b.items[i].fresh && p < last; p++ {
			s.prepare(b.items[i].slot.Load(), p, false)
		}
	}
	for i := from; i < b.next; i++ {
		if b.items[i].fresh {
			s.prepare(b.items[i].slot.Load(), last, false)
		}
	}
	if wanted+len(s.submits) == 0 {
		return
	}
	b.inFlight.Add(int32(wanted + len(s.submits)))
	s.reading(len(s.submits))
	s.reader.Submit(s.submits...)
}

// reading counts n reads more on their way, and read n fewer; between the first and
// the last the drive is at work. mu is held.
func (s *Streamer) reading(n int) {
	if s.onTheWay == 0 && n > 0 {
		s.readingSince = clock.Now()
	}
	s.onTheWay += n
}

func (s *Streamer) read(n int) {
	s.onTheWay -= n
	if s.onTheWay == 0 && n > 0 {
		s.readingNanos += clock.Now() - s.readingSince
	}
}

// prepare adds the read of one projection to those that are submitted next. mu
// is held.
func (s *Streamer) prepare(sl *slot, p int, spec bool) {
	layer := s.shape.Layer(sl.key)
	proj := &s.layout.Layers[layer][p]
	expert := int64(int(sl.key) - layer*s.layout.Experts)
	w, err := s.files.Window(proj.File, proj.Offset+expert*proj.Bytes, proj.Bytes)
	if err != nil {
		// NewStreamer asked for this very window: the set cannot have changed.
		panic(err)
	}
	r := &sl.reads[p]
	r.File, r.Offset, r.Need, r.Spec, r.Done = proj.File, w.Offset, w.Need, spec, sl
	r.Buf = sl.mem[s.starts[layer][p]:][:w.Length]
	sl.flying[p] = true
	sl.pending++
	s.submits = append(s.submits, r)
}

// ReadDone implements flashio.Completer, on a lane's goroutine. It wakes workers
// only if they can go on: a stage can be computed, or nothing is in flight.
func (sl *slot) ReadDone(r *flashio.Request) {
	s := sl.streamer
	b, news := &s.batch, false
	s.mu.Lock()
	p := 0
	for r != &sl.reads[p] {
		p++
	}
	sl.flying[p] = false
	sl.pending--
	if sl.lost {
		if sl.pending == 0 {
			s.found(sl)
		}
		s.mu.Unlock()
		return
	}
	s.read(1)
	if s.OnRead != nil && r.Ended != 0 { // else no read was made
		layer := s.shape.Layer(sl.key)
		s.OnRead(layer, int(sl.key-s.shape.Key(layer, 0)), p, sl.ahead, r)
	}
	if r.Err == nil {
		if !sl.ahead {
			s.reads++
			s.windowBytes += int64(r.N)
		}
		s.busyNanos += r.Ended - r.Started
		s.latency.Record(r.Ended - r.Started)
		if sl.link >= 0 {
			s.links.read(sl, r)
		}
		stage := s.stage(sl, p)
		sl.there[p] = true
		done := sl.missing[stage].Add(-1) == 0
		news = done && sl.user != nil && !b.serial && (stage == StageIn || sl.user.made.Load())
	}
	if sl.user == nil {
		s.doneAhead(sl, r.Err)
		s.mu.Unlock()
		return
	}
	if r.Err != nil {
		if b.err == nil {
			b.err = fmt.Errorf("layer %d, expert %d: %w", b.layer, sl.user.expert, r.Err)
		}
		b.failed.Store(true)
		news = true
	}
	if b.inFlight.Add(-1) == 0 {
		news = true
	}
	if news && r.Ended != 0 { // else no read was made
		b.lastEnded.Store(r.Ended)
	}
	s.mu.Unlock()
	if news {
		b.Announce()
	}
}

// stage tells which stage a projection of a slot's expert is for.
func (s *Streamer) stage(sl *slot, p int) int {
	if p == len(s.layout.Layers[s.shape.Layer(sl.key)])-1 {
		return StageOut
	}
	return StageIn
}

// drop takes back the reads of a batch that no lane has begun: it will not be
// computed.
func (s *Streamer) drop(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.n {
		sl := b.items[i].slot.Load()
		if sl == nil || sl.user != &b.items[i] {
			continue
		}
		n := s.takeBack(sl)
		s.read(n)
		b.inFlight.Add(int32(-n))
	}
}

// leave ends a batch's use of the slots that were filled for it. Its reads are
// over; taking mu also waits until the last ReadDone has nothing more to do with
// the slot.
func (s *Streamer) leave(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.n {
		it := &b.items[i]
		if sl := it.slot.Load(); sl != nil && sl.user == it {
			sl.user = nil
		}
	}
}

// settle ends a batch that was not computed to its end, when none of its reads
// is in flight: it forgets what did not arrive.
func (s *Streamer) settle(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.n {
		it := &b.items[i]
		sl := it.slot.Load()
		mine := sl != nil && sl.key == it.key
		if it.late {
			// The directory has evicted it already; a failed batch may not have computed it.
			if mine {
				s.give(sl)
			}
			continue
		}
		if !mine || !sl.arrived() {
			s.forget(it.key, profile.GoneFailed)
			if mine {
				s.give(sl)
			}
		}
	}
}

// forget takes an expert out of the cache that nobody has pushed out.
func (s *Streamer) forget(k policy.Key, why uint8) {
	if s.dir.IsResident(k) {
		s.dir.Forget(k)
		s.census.evicted(k, why, policy.None)
	}
}

// Empty forgets all residents and counters; the memory stays.
func (s *Streamer) Empty() {
	s.Recall()
	s.dir.Empty()
	s.census.empty()
	s.curve.Empty()
	for _, p := range s.pools {
		p.free = p.free[:0]
		// The last of the list is taken first: slots fill from the start.
		for i := len(p.slots) - 1; i >= 0; i-- {
			if p.slots[i].lost {
				continue
			}
			p.slots[i].key = policy.None
			p.free = append(p.free, p.slots[i])
		}
	}
	clear(s.slotOf)
	s.reads, s.windowBytes, s.busyNanos, s.readingNanos = 0, 0, 0, 0
	s.fore.worth = Ahead{}
	s.ResetLatency()
}

// Resize changes the budget and which part of it is kept for reading ahead. Entries
// that fit stay, in the policy's order; those in slots that go are moved. No batch may
// be open.
func (s *Streamer) Resize(budget, reserve int64) error {
	s.Recall()
	if n := s.lost(); n > 0 {
		return fmt.Errorf("%s still in the hands of reads that do not return: until they do the cache keeps its size", units.Plural(int64(n), "slot"))
	}
	old, oldAhead := s.dir.Budget(), s.ahead
	s.ahead = reserve
	for _, k := range s.dir.Resize(budget - s.ahead) {
		s.census.evicted(k, profile.GoneShrunk, policy.None)
		s.give(s.slotOf[k])
	}
	if err := s.grow(); err != nil {
		// The directory must not let in more than there are slots for: a read
		// would wait for one for ever.
		s.ahead = oldAhead
		s.dir.Resize(old)
		return errors.Join(err, s.shrink())
	}
	return s.shrink()
}

// wanted returns how many slots a pool is to have: for residents, and for what
// is read ahead.
func (s *Streamer) wanted(i int) (slots, ahead int) {
	ahead = s.dir.Pools().Beside(s.ahead)[i]
	return s.dir.Pools().Slots[i] + ahead, ahead
}

// grow brings every pool to at least the slots that it is to have.
func (s *Streamer) grow() error {
	for i, p := range s.pools {
		n, ahead := s.wanted(i)
		if n > len(p.slots) {
			if err := p.grow(n, s); err != nil {
				return err
			}
		}
		p.maxAhead, p.aheads = ahead, slices.Grow(p.aheads, ahead)
	}
	return nil
}

// shrink moves what lies in slots that go, or in the pool that its layer had
// before, and hands back the memory.
func (s *Streamer) shrink() error {
	keep := make([]int, len(s.pools))
	for i, p := range s.pools {
		n, _ := s.wanted(i)
		keep[i] = n
		free := p.free[:0]
		for _, sl := range p.free {
			if sl.index < n {
				free = append(free, sl)
			}
		}
		p.free = free
	}
	for k, from := range s.slotOf {
		if from == nil {
			continue
		}
		i := s.dir.Pools().Of[s.shape.Layer(policy.Key(k))]
		if from.pool == s.pools[i] && from.index < keep[i] {
			continue
		}
		to := s.take(policy.Key(k))
		copy(to.mem, from.mem)
		to.missing[StageIn].Store(0)
		to.missing[StageOut].Store(0)
		from.key = policy.None
		if from.index < keep[slices.Index(s.pools, from.pool)] {
			from.pool.free = append(from.pool.free, from)
		}
	}
	var errs []error
	for i, p := range s.pools {
		errs = append(errs, p.shrink(keep[i]))
	}
	return errors.Join(errs...)
}

// Stats returns what was counted since the cache was last emptied. No batch may be open.
func (s *Streamer) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	resident, entries := s.dir.Resident()
	st := Stats{Counters: s.dir.Counters(), Resident: resident, Budget: s.dir.Budget() + s.ahead, SlotsUsed: entries,
		Reads: s.reads, WindowBytes: s.windowBytes, BusyNanos: s.busyNanos, ReadingNanos: s.readingNanos}
	for _, p := range s.pools {
		st.Slots += len(p.slots)
		st.SlotsAhead += p.maxAhead
		st.ArenaBytes += int64(p.committed)
	}
	return st
}

// Latency copies the times inside the system call, a read, since the last
// ResetLatency. Reads ahead may be in flight.
func (s *Streamer) Latency(dst *stats.Histogram) { s.latency.CopyTo(dst) }

// ResetLatency starts the two histograms anew, as for a run of its own.
func (s *Streamer) ResetLatency() {
	s.mu.Lock()
	s.latency.Reset()
	s.mu.Unlock()
	s.batch.wake.Reset()
}

// Wake returns the times from a read's end until a parked worker ran again,
// since the last ResetLatency. No batch may be open.
func (s *Streamer) Wake() *stats.Histogram { return &s.batch.wake }

// Directory returns the cache's book-keeping, for screens that show who is resident.
func (s *Streamer) Directory() *policy.Directory { return s.dir }

// CountCurve begins the curve's counts anew, or ends them: a run's decoding is
// counted, its prompt is not. No batch may be open.
func (s *Streamer) CountCurve(on bool) {
	if s.counts = on; on {
		s.curve.Forget()
	}
}

// Curve tells what other budgets would have hit. Visits are the streamer's own.
func (s *Streamer) Curve() *policy.Curve { return s.curve }

// Close hands back the memory, but for that into which reads that were given up may
// still write. The reader stays open; no other read is in flight.
func (s *Streamer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.pools {
		if p.lost > 0 {
			continue
		}
		errs = append(errs, p.memory.Release())
	}
	return errors.Join(errs...)
}
