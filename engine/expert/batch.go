package expert

import (
	"sync"
	"sync/atomic"

	"bmoe/engine/expert/policy"
	"bmoe/internal/clock"
	"bmoe/internal/stats"
)

// Source hands out a layer's experts. Two things stand behind it: a Streamer,
// and Mapped for computing from the model file's mapping.
type Source interface {
	// Acquire looks up the experts of a batch and starts the reads of those
	// that are missing. ids is every routed expert, [tokens x k] token-major.
	// The batch is valid until it is released; there is one at a time.
	Acquire(layer, tokens int, ids []int32) *Batch
}

// spinNanos is how long a waiting worker looks for news before it parks. It is
// short, since a spinning worker may hold the very core that a lane needs.
const spinNanos = 4_000

// The two stages of an expert's computing. Each is ready as soon as its own
// projections are in memory.
const (
	StageIn  = iota // every projection but the last: gate and up, fused or not
	StageOut        // the last: down, which works on what the first stage made
	stages
)

// Batch is a view of the slots of one layer's distinct experts, in the order in
// which they should be computed. Workers take a stage that is Ready, say
// Computed when the last of its work is done, and Wait when there is nothing to
// take. Where every expert is there already, none of this takes a lock.
type Batch struct {
	layer    int
	plan     policy.Plan
	items    []item    // room for all experts of a layer
	n        int       // of them, in this batch
	unused   int       // of those, the last, which are read and not computed
	streamer *Streamer // nil when computed from a mapping
	serial   bool      // nothing is ready while a read is in flight
	known    bool      // every item was a hit
	whole    bool      // every item has its slot from the beginning, and keeps it

	left     atomic.Int32 // experts not computed yet
	inFlight atomic.Int32 // reads for the batch that are submitted and not over
	failed   atomic.Bool
	givenUp  atomic.Bool // its reads are not waited for

	// Guarded by the streamer's mu.
	err      error
	next     int // the first item that has no slot yet
	started  int // items that have had a slot
	computed int // items computed, unless whole

	seq    atomic.Uint32 // bumped at every piece of news
	parked atomic.Int32
	park   sync.Mutex // guards wake, and lets nobody park between news and waking
	news   sync.Cond

	lastEnded atomic.Int64    // when the last read ended that was news
	wake      stats.Histogram // from a read's end until a parked worker ran again
}

// item is one expert of a batch.
type item struct {
	key    policy.Key
	expert int32
	late   bool                 // gives up its slot within this batch
	fresh  bool                 // its slot has just been taken
	made   atomic.Bool          // the first stage is computed
	slot   atomic.Pointer[slot] // nil while the item waits for one
}

// init makes room for batches of n experts.
func (b *Batch) init(n int) {
	b.items = make([]item, n)
	b.news.L = &b.park
}

// begin starts a new view of n experts.
func (b *Batch) begin(layer, n int) {
	b.layer, b.n, b.unused, b.err, b.computed = layer, n, 0, nil, 0
	b.left.Store(int32(n))
	b.failed.Store(false)
	b.givenUp.Store(false)
}

// Len returns the number of experts that are to be computed.
func (b *Batch) Len() int { return b.n - b.unused }

// Expert returns the id of the i-th expert.
func (b *Batch) Expert(i int) int32 { return b.items[i].expert }

// Data returns the bytes of a projection of the i-th expert; its stage must be
// Ready.
func (b *Batch) Data(i, projection int) []byte { return b.items[i].slot.Load().data[projection] }

// Ready reports whether all projections of a stage of the i-th expert are there.
// It says nothing of whether the second stage has its input.
func (b *Batch) Ready(i, stage int) bool {
	if b.serial && b.inFlight.Load() > 0 {
		return false
	}
	s := b.items[i].slot.Load()
	return s != nil && s.missing[stage].Load() == 0
}

// Failed reports whether a read of the batch failed: workers should stop.
func (b *Batch) Failed() bool { return b.failed.Load() }

// InFlight reports whether reads of the batch are on their way.
func (b *Batch) InFlight() bool { return b.inFlight.Load() > 0 }

// Seq returns the number of the latest piece of news, for Wait.
func (b *Batch) Seq() uint32 { return b.seq.Load() }

// Announce tells waiting workers to look again. The batch does so itself when
// a stage has become ready or the last one is computed.
func (b *Batch) Announce() {
	b.seq.Add(1)
	// Whoever parks counts itself before it looks at seq: either it sees the
	// news or it is seen here.
	if b.parked.Load() > 0 {
		b.park.Lock()
		b.news.Broadcast()
		b.park.Unlock()
	}
}

// Wait returns when there is news after seq.
func (b *Batch) Wait(seq uint32) {
	for start := clock.Now(); clock.Now()-start < spinNanos; {
		if b.seq.Load() != seq {
			return
		}
	}
	b.park.Lock()
	b.parked.Add(1)
	before := b.lastEnded.Load()
	for b.seq.Load() == seq {
		b.news.Wait()
	}
	b.parked.Add(-1)
	// What another worker announced says nothing of the way from drive to worker.
	if ended := b.lastEnded.Load(); ended != before {
		b.wake.Record(clock.Now() - ended)
	}
	b.park.Unlock()
}

// Computed tells that a stage of the i-th expert is computed. After the second
// nobody may look at the expert's data again in this batch: if it gives up its
// slot, the next read goes there.
func (b *Batch) Computed(i, stage int) {
	it := &b.items[i]
	if stage == StageIn {
		it.made.Store(true)
		if b.Ready(i, StageOut) { // else the read that completes it brings the news
			b.Announce()
		}
		return
	}
	news := b.left.Add(-1) == 0
	if !b.whole {
		news = b.makeRoom(it) || news
	}
	if news {
		b.Announce()
	}
}

// makeRoom lets the next items have the slot of one that is computed, and
// reports whether there are such.
func (b *Batch) makeRoom(it *item) bool {
	s := b.streamer
	s.mu.Lock()
	defer s.mu.Unlock()
	b.computed++
	if it.late {
		s.give(it.slot.Load())
	}
	if b.next == b.n {
		return false
	}
	if !b.serial || b.computed == b.started {
		s.submit(b)
	}
	return true
}

// Release ends the batch. If it was not computed to its end, because a read
// failed or a worker did, Release waits for reads in flight and takes back what
// the batch had promised. It returns the read's error.
func (b *Batch) Release() error {
	s := b.streamer
	if s == nil {
		return nil
	}
	done := b.left.Load() == 0
	if done && b.unused == 0 {
		if !b.known {
			s.leave(b)
		}
		return nil
	}
	if !done {
		s.drop(b)
	}
	for {
		seq := b.Seq()
		if !b.InFlight() || b.givenUp.Load() {
			break
		}
		b.Wait(seq)
	}
	if b.givenUp.Load() {
		s.leaveBehind(b)
	}
	if done && !b.Failed() {
		s.leave(b)
		return nil
	}
	s.settle(b)
	s.leave(b)
	return b.err
}
