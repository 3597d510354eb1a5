package policy

// Curve tells, of the lookups that it has seen, how many would have hit with
// another budget under least-recently-used: the miss-ratio curve, by exact stack
// distances (Mattson et al., Evaluation techniques for storage hierarchies, 1970).
// An expert is resident exactly if fewer distinct experts of its pool than the pool
// has slots were touched after it, so one count a lookup answers for every budget.
//
// It differs from a cache only where a prompt's batch touches more of a pool than
// the pool holds: who of the batch stays is then settled by the order of computing,
// and here by the order of touches.
type Curve struct {
	shape Shape
	of    []int // by layer: its pool, as long as no pools are shared; -1
	pools []curvePool

	place   []int32  // by key: where its last touch stands in its pool's order, from 1; 0: never
	batch   []uint64 // by key: number of the batch that touched it last
	batches uint64

	points []point
	// Logical bytes of all lookups, hits or not.
	bytes   int64
	lookups int64
}

// curvePool is the touches of one pool in order, the latest of each expert. A
// Fenwick tree counts those between two places.
type curvePool struct {
	tree  []int32 // from 1
	keys  []Key   // by place; None where an expert was touched again since
	next  int     // the place of the next touch
	there int     // experts that have one

	// By distance, the number of distinct experts touched in between.
	lookups []int64
	bytes   []int64
}

// point is a budget that is asked about.
type point struct {
	budget int64
	slots  []int // by pool; nil where pools share slots, of which a curve knows nothing
}

// Point is what a budget would have given.
type Point struct {
	Budget        int64 // slot bytes
	Lookups, Hits int64
	ReadBytes     int64 // logical, of the misses
	Known         bool  // false: the budget is so small that experts of several sizes would share slots
}

// touchesPerKey is how many places a pool's order has for each of its experts:
// when they are used up, the order is closed up again.
const touchesPerKey = 4

// NewCurve returns a curve that has seen nothing.
func NewCurve(s Shape) *Curve {
	all := s.Pools(s.Total())
	c := &Curve{shape: s, of: all.Of, place: make([]int32, s.Keys()), batch: make([]uint64, s.Keys())}
	for _, n := range all.Cap {
		places := max(n*touchesPerKey, 1)
		c.pools = append(c.pools, curvePool{tree: make([]int32, places+1), keys: make([]Key, places+1), next: 1,
			lookups: make([]int64, n), bytes: make([]int64, n)})
	}
	return c
}

// Ask sets the budgets that Read tells of, in slot bytes, what is kept for reading
// ahead included.
func (c *Curve) Ask(budgets []int64) {
	c.points = c.points[:0]
	for _, b := range budgets {
		p, shared := c.shape.Pools(b-c.shape.Reserve(b)), false
		for l, of := range p.Of {
			shared = shared || of != c.of[l]
		}
		if shared {
			p.Slots = nil
		}
		c.points = append(c.points, point{b, p.Slots})
	}
}

// Visit takes a layer's batch as a Directory does. Only lookups that are counted
// are told of by Read.
func (c *Curve) Visit(layer int, ids []int32, count bool) {
	p := &c.pools[c.of[layer]]
	if count {
		c.batches++
		size := c.shape.Bytes[layer]
		for _, id := range ids {
			k := c.shape.Key(layer, id)
			if c.batch[k] == c.batches {
				continue
			}
			c.batch[k] = c.batches
			c.lookups++
			c.bytes += size
			if at := c.place[k]; at > 0 {
				d := p.there - p.sum(int(at))
				p.lookups[d]++
				p.bytes[d] += size
			}
		}
	}
	for _, id := range ids {
		k := c.shape.Key(layer, id)
		if p.next == len(p.keys) {
			c.close(p)
		}
		if at := int(c.place[k]); at > 0 {
			p.add(at, -1)
			p.keys[at] = None
		} else {
			p.there++
		}
		c.place[k] = int32(p.next)
		p.keys[p.next] = k
		p.add(p.next, 1)
		p.next++
	}
}

// close gives the touches of a pool the first places, in their order.
func (c *Curve) close(p *curvePool) {
	to := 1
	for _, k := range p.keys[1:p.next] {
		if k != None {
			c.place[k] = int32(to)
			p.keys[to] = k
			to++
		}
	}
	p.next = to
	for i := range p.tree {
		p.tree[i] = 0
	}
	for i := 1; i < to; i++ {
		p.add(i, 1)
	}
}

func (p *curvePool) add(at int, n int32) {
	for ; at < len(p.tree); at += at & -at {
		p.tree[at] += n
	}
}

// sum returns how many experts have a place up to at.
func (p *curvePool) sum(at int) int {
	n := 0
	for ; at > 0; at -= at & -at {
		n += int(p.tree[at])
	}
	return n
}

// Forget drops what was counted; the order of touches stays, as residents do.
func (c *Curve) Forget() {
	c.lookups, c.bytes = 0, 0
	for i := range c.pools {
		clear(c.pools[i].lookups)
		clear(c.pools[i].bytes)
	}
}

// Empty drops the order too, as for an empty cache.
func (c *Curve) Empty() {
	c.Forget()
	clear(c.place)
	for i := range c.pools {
		p := &c.pools[i]
		clear(p.tree)
		p.next, p.there = 1, 0
	}
}

// Read fills dst with what the budgets of Ask would have given, in their order,
// and returns how many it filled.
func (c *Curve) Read(dst []Point) int {
	n := min(len(dst), len(c.points))
	for i, ask := range c.points[:n] {
		pt := Point{Budget: ask.budget, Lookups: c.lookups, ReadBytes: c.bytes, Known: ask.slots != nil}
		if pt.Known {
			for j := range c.pools {
				p := &c.pools[j]
				for d := range min(ask.slots[j], len(p.lookups)) {
					pt.Hits += p.lookups[d]
					pt.ReadBytes -= p.bytes[d]
				}
			}
		}
		dst[i] = pt
	}
	return n
}
