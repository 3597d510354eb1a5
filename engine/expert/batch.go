package expert

import (
	"sync"
	"sync/atomic"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
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

// Batch is the distinct experts of one layer's batch, in the order in which
// they should be computed. Workers take a stage that is Ready, say Computed
// when the last of its work is done, and Wait when there is nothing to take.
type Batch struct {
	layer int
	plan  policy.Plan
	items []item    // room for all experts of a layer
	n     int       // of them, in this batch
	owner *Streamer // nil when computed from a mapping

	seq      atomic.Uint32 // bumped at every piece of news
	inFlight atomic.Int32  // reads submitted and not done
	failed   atomic.Bool
	serial   bool

	mu       sync.Mutex
	news     sync.Cond
	parked   int
	err      error
	next     int // the first item that has no slot yet
	consumed int // items consumed
	started  int // items that had their data, or their reads submitted

	readingSince int64           // when inFlight last rose from zero
	lastEnded    int64           // when the last read ended, for the wake-up's latency
	wake         stats.Histogram // from a read's end until a parked worker ran again
}

// item is one expert of a batch.
type item struct {
	batch   *Batch
	reads   [MaxProjections]flashio.Request
	key     policy.Key
	expert  int32
	slot    int32                // -1: none yet
	late    bool                 // gives up its slot within this batch
	arrived bool                 // all bytes are in the slot; guarded by the batch's mu
	missing [stages]atomic.Int32 // projections that a stage still waits for
	made    atomic.Bool          // the first stage is computed
	data    [MaxProjections][]byte
}

// Len returns the number of experts.
func (b *Batch) Len() int { return b.n }

// Expert returns the id of the i-th expert.
func (b *Batch) Expert(i int) int32 { return b.items[i].expert }

// Data returns the bytes of a projection of the i-th expert; its stage must be
// Ready.
func (b *Batch) Data(i, projection int) []byte { return b.items[i].data[projection] }

// Ready reports whether all projections of a stage of the i-th expert are there.
// It says nothing of whether the second stage has its input.
func (b *Batch) Ready(i, stage int) bool {
	if b.serial && b.inFlight.Load() > 0 {
		return false
	}
	return b.items[i].missing[stage].Load() == 0
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
	b.mu.Lock()
	if b.parked > 0 {
		b.news.Broadcast()
	}
	b.mu.Unlock()
}

// Wait returns when there is news after seq.
func (b *Batch) Wait(seq uint32) {
	for start := clock.Now(); clock.Now()-start < spinNanos; {
		if b.seq.Load() != seq {
			return
		}
	}
	b.mu.Lock()
	b.parked++
	before := b.lastEnded
	for b.seq.Load() == seq {
		b.news.Wait()
	}
	b.parked--
	// What another worker announced says nothing of the way from drive to worker.
	if b.lastEnded != before {
		b.wake.Record(clock.Now() - b.lastEnded)
	}
	b.mu.Unlock()
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
	b.mu.Lock()
	b.consumed++
	if b.owner != nil && it.late {
		b.owner.freeSlot(it)
	}
	more := b.next < b.n
	if more && (!b.serial || b.consumed == b.started) {
		b.owner.submit(b)
	}
	last := b.consumed == b.n
	b.mu.Unlock()
	if more || last {
		b.Announce() // what can be waited for has changed
	}
}

// Release ends the batch: it waits for reads in flight, and takes back what a
// failed batch had promised. It returns the read's error.
func (b *Batch) Release() error {
	if b.owner == nil {
		return nil
	}
	for b.inFlight.Load() > 0 {
		seq := b.Seq()
		if b.inFlight.Load() > 0 {
			b.Wait(seq)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owner.settle(b)
	return b.err
}
