package expert

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/units"
)

// slot is memory for one expert, and the reads that fill it. The reads are the
// slot's and not a batch's: they may have begun before any batch asked.
//
//	          take: a key,                   the last read
//	          reads submitted                has arrived
//	┌──────┐                  ┌─────────┐                  ┌───────┐
//	│ free │ ───────────────▶ │ reading │ ───────────────▶ │ ready │
//	└──────┘                  └─────────┘                  └───────┘
//	   ▲    a read failed or was   │      evicted, and no      │
//	   │    taken back, and none   │      user computes        │
//	   │    is on its way          ▼      from it              │
//	   └───────────────────────────┴───────────────────────────┘
//
// What is on its way belongs to its read: a slot is neither computed from nor
// given away before the read is over. Readiness is finer than the state: each
// stage is ready when its own projections are there.
//
// A slot that is read ahead has no user. The batch that demands its expert
// becomes the user, and what still waits in the reader's queue is promoted.
// Until then it may be taken back, and the directory does not know of it.
type slot struct {
	streamer *Streamer
	mem      []byte
	pool     *pool
	index    int // in the pool

	// missing is how many projections each stage waits for. It is read by
	// workers; the rest is guarded by the streamer's mu while reads are pending.
	missing [stages]atomic.Int32
	data    [MaxProjections][]byte // the expert's bytes, inside mem

	key     policy.Key // policy.None when free
	reads   [MaxProjections]flashio.Request
	flying  [MaxProjections]bool // submitted and not over
	there   [MaxProjections]bool // arrived
	pending int                  // reads that are flying
	ahead   bool                 // read before it was asked for, and not asked for since
	place   int                  // among those of the pool that were
	origin  Origin               // who guessed
	useless bool                 // of what is read ahead: free as soon as no read is pending
	link    int32                // of the pass's misses; -1: none is written down
	user    *item                // of the open batch, for which the slot was filled
	lost    bool                 // given up to reads that do not return
}

// arrived reports whether the whole expert is there.
func (s *slot) arrived() bool {
	return s.missing[StageIn].Load() == 0 && s.missing[StageOut].Load() == 0
}

// pool is the slots of one size, in address space of their own of which as much
// is committed as the budget gives it.
type pool struct {
	memory    *flashio.Range
	slotBytes int
	slots     []*slot
	committed int     // bytes
	free      []*slot // taken from the end
	aheads    []*slot // that are being or were read ahead, in no order
	maxAhead  int     // slots that may be
	lost      int     // slots that are given up to reads
	spare     int     // slots that were lost and have come back: one more each than there should be
}

// size is how much memory n slots take, in whole pages.
func (p *pool) size(n int) int {
	page := os.Getpagesize()
	return (n*p.slotBytes + page - 1) / page * page
}

// grow commits memory for n slots and touches its pages: a fresh page costs a
// quarter of the read rate (docs/architecture.md, Memory).
func (p *pool) grow(n int, s *Streamer) error {
	from, size := p.committed, p.size(n)-p.committed
	if err := p.memory.Commit(from, size); err != nil {
		return fmt.Errorf("commit %d MiB for %d expert slots: %w; choose a smaller {cache}", units.MiBDown(int64(size)), n-len(p.slots), err)
	}
	p.memory.Touch(from, size, runtime.NumCPU())
	p.committed += size
	first := len(p.slots)
	for i := first; i < n; i++ {
		p.slots = append(p.slots, &slot{streamer: s, pool: p, index: i, key: policy.None,
			mem: p.memory.Bytes()[i*p.slotBytes:][:p.slotBytes]})
	}
	for i := n - 1; i >= first; i-- {
		p.free = append(p.free, p.slots[i])
	}
	return nil
}

// shrink hands back the memory of all slots but the first n; those beyond them
// are neither in use nor in the list of free ones.
func (p *pool) shrink(n int) error {
	clear(p.slots[n:])
	p.slots, p.spare = p.slots[:n], 0
	size := p.committed - p.size(n)
	p.committed -= size
	if err := p.memory.Decommit(p.committed, size); err != nil {
		return fmt.Errorf("hand back %d MiB of expert slots: %w", units.MiBDown(int64(size)), err)
	}
	return nil
}
