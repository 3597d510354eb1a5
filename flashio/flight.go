package flashio

import (
	"sync"
	"sync/atomic"
)

// Flight is a read that a lane has begun and not ended.
type Flight struct {
	Lane    int
	Request *Request // still the reader's: only what its owner filled in may be looked at
	Started int64    // clock.Now
}

// hand is what a lane has in hand.
type hand struct {
	request atomic.Pointer[Request]
	started atomic.Int64
}

func (h *hand) take(r *Request, now int64) {
	h.started.Store(now)
	h.request.Store(r)
}

func (h *hand) drop() { h.request.Store(nil) }

// InFlight appends the reads that are in flight. One that ends meanwhile may be among
// them.
func (c *core) InFlight(dst []Flight) []Flight {
	for i := range c.hands {
		if r := c.hands[i].request.Load(); r != nil {
			dst = append(dst, Flight{i, r, c.hands[i].started.Load()})
		}
	}
	return dst
}

// behind are the reads that nobody waits for any more, and what became of the lanes.
type behind struct {
	sync.Mutex
	changed sync.Cond
	some    atomic.Int32 // reads
	reads   map[*Request]bool
	alive   []bool // by lane
	stuck   []bool // by lane: the reader was closed while it was in such a read
}

func (b *behind) init(lanes int) {
	b.changed.L = b
	b.reads, b.alive, b.stuck = map[*Request]bool{}, make([]bool, lanes), make([]bool, lanes)
}

// Leave implements Reader.
func (c *core) Leave(r *Request) {
	b := &c.behind
	b.Lock()
	defer b.Unlock()
	for i := range c.hands {
		if c.hands[i].request.Load() == r && !b.reads[r] { // else it has ended
			b.reads[r] = true
			b.some.Add(1)
			b.changed.Broadcast()
		}
	}
}

// back is told that a lane has put down a read, and reports whether the reader was
// closed without that lane.
func (c *core) back(lane int, r *Request) (late bool) {
	b := &c.behind
	if b.some.Load() == 0 {
		return false
	}
	b.Lock()
	defer b.Unlock()
	if b.reads[r] {
		delete(b.reads, r)
		b.some.Add(-1)
	}
	return b.stuck[lane]
}

// lives notes that a lane has begun, or that it has ended.
func (c *core) lives(lane int, alive bool) {
	c.behind.Lock()
	c.behind.alive[lane] = alive
	c.behind.changed.Broadcast()
	c.behind.Unlock()
}

// await waits until every lane has ended, but for those in reads that nobody waits
// for.
func (c *core) await() {
	b := &c.behind
	b.Lock()
	defer b.Unlock()
	for {
		stuck, busy := make([]bool, len(b.alive)), false
		for i, alive := range b.alive {
			r := c.hands[i].request.Load()
			stuck[i] = alive && r != nil && b.reads[r]
			busy = busy || alive && !stuck[i]
		}
		if !busy {
			b.stuck = stuck // from now on each closes what it holds
			return
		}
		b.changed.Wait()
	}
}
