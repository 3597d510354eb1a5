package expert

import (
	"sync/atomic"

	"bmoe/engine/expert/policy"
	"bmoe/profile"
)

// census notes of every expert where it is and what happened to it last, for screens. Its
// words are atomic, so that whoever looks waits for nobody and nobody waits for him.
// Used, read and gone are written by the goroutine that generates, ahead under the
// streamer's mu: of each word there is one writer at a time.
type census struct {
	shape  policy.Shape
	names  []string // of policies
	why    uint8    // the policy in force, as an ExpertCell says it
	token  int32    // tokens until and with those of the pass
	shared atomic.Int32
	cells  []censusCell // by key
}

// censusCell is an expert. The upper half of a word is the token of the event.
type censusCell struct {
	used  atomic.Uint64 // lower half: how often
	read  atomic.Uint64 // lower half: how often, times two; odd while it is resident
	gone  atomic.Uint64 // lower half: why, and in byKey who came instead; all ones: nobody
	ahead atomic.Uint64 // lower half: 1 while it has a slot and nobody has asked for it
}

const (
	byBits = 24
	byKey  = 1<<byBits - 1
)

func (c *census) init(s policy.Shape, p policy.Policy) {
	c.shape, c.cells, c.names = s, make([]censusCell, s.Keys()), policy.Names()
	c.follow(p)
}

// follow notes which policy gives experts up from now on.
func (c *census) follow(p policy.Policy) {
	c.why = profile.GonePolicy + uint8(len(c.names)) // a policy of no name that is known
	for i, name := range c.names {
		if name == p.Name() {
			c.why = profile.GonePolicy + uint8(i)
		}
	}
}

// pass begins a pass over n tokens.
func (c *census) pass(n int) {
	c.token += int32(n)
	c.shared.Store(c.token)
}

func (c *census) now() uint64 { return uint64(uint32(c.token)) << 32 }

// visit notes a layer's batch, of which the first steps are computed with.
func (c *census) visit(steps []policy.Step, wanted int) {
	now := c.now()
	for i := range steps {
		step := &steps[i]
		cell := &c.cells[step.Key]
		if i < wanted {
			cell.used.Store(now | uint64(uint32(cell.used.Load())+1))
		}
		if step.Hit {
			continue
		}
		if step.Evicted != policy.None {
			c.evicted(step.Evicted, c.why, step.Key)
		}
		cell.read.Store(now | uint64((uint32(cell.read.Load())+2)|1))
	}
}

// evicted notes that an expert is no longer in the cache, and for whom: policy.None if for
// nobody.
func (c *census) evicted(k policy.Key, why uint8, by policy.Key) {
	cell := &c.cells[k]
	cell.read.Store(cell.read.Load() &^ 1)
	cell.gone.Store(c.now() | uint64(why)<<byBits | uint64(by)&byKey)
}

// goneFor returns how many tokens ago an expert was given up that had been there.
func (c *census) goneFor(k policy.Key) (age int32, ok bool) {
	gone := c.cells[k].gone.Load()
	return c.token - int32(gone>>32), gone != 0 && uint8(gone>>byBits) != profile.GoneFailed
}

// early notes that an expert is read before it is asked for, or no longer counts as such.
func (c *census) early(k policy.Key, begins bool) {
	cell := &c.cells[k]
	if begins {
		cell.ahead.Store(c.now() | 1)
		return
	}
	cell.ahead.Store(cell.ahead.Load() &^ 1)
}

// empty forgets what happened; the count of tokens goes on.
func (c *census) empty() {
	for i := range c.cells {
		cell := &c.cells[i]
		cell.used.Store(0)
		cell.read.Store(0)
		cell.gone.Store(0)
		cell.ahead.Store(0)
	}
}

// Experts copies out where every expert is and what happened to it last. It may be called
// at any time from any goroutine.
func (s *Streamer) Experts(dst *profile.ExpertMap) {
	c := &s.census
	dst.Reset(len(c.shape.Bytes), c.shape.Experts)
	dst.Policies = c.names
	for i, b := range c.shape.Bytes {
		dst.Layers[i].Bytes = b
	}
	for i := range c.cells {
		from, to := &c.cells[i], &dst.Cells[i]
		used, read, gone, ahead := from.used.Load(), from.read.Load(), from.gone.Load(), from.ahead.Load()
		to.Used, to.Uses = int32(used>>32), int32(uint32(used))
		to.Read, to.Reads = int32(read>>32), int32(uint32(read)>>1)
		to.Gone, to.Why, to.By = int32(gone>>32), uint8(gone>>byBits), int32(gone&byKey)
		to.Guessed = int32(ahead >> 32)
		if to.By == byKey || to.Gone == 0 {
			to.By = -1
		}
		switch {
		case read&1 != 0:
			to.State = profile.Resident
		case ahead&1 != 0:
			to.State = profile.Ahead
		}
	}
	dst.Token = c.shared.Load() // last: no event is of a token to come
}
