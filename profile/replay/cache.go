package replay

// Counters is what a cache has counted.
type Counters struct {
	Lookups   int64 `json:"lookups"` // distinct experts of each batch
	Hits      int64 `json:"hits"`
	Evictions int64 `json:"evictions"`
	Rereads   int64 `json:"rereads"` // misses of experts that had been there before
	ReadBytes int64 `json:"read_bytes"`
}

// sub returns what was counted since.
func (c Counters) sub(since Counters) Counters {
	return Counters{c.Lookups - since.Lookups, c.Hits - since.Hits, c.Evictions - since.Evictions, c.Rereads - since.Rereads, c.ReadBytes - since.ReadBytes}
}

func (c Counters) add(o Counters) Counters { return c.sub(Counters{}.sub(o)) }

// HitPct returns the hit rate in per cent; 0 of no lookups.
func (c Counters) HitPct() float64 {
	if c.Lookups == 0 {
		return 0
	}
	return 100 * float64(c.Hits) / float64(c.Lookups)
}

// cache is a cache by the rule of the recording engine: bytes count, whatever the
// sizes; room is made after a batch, and never by what the batch touched.
type cache struct {
	sizes    []int64 // by key
	budget   int64
	experts  int  // of a layer
	split    bool // every layer has its own part of the budget
	orders   []order
	ranks    []*ranking // one, or one a layer
	used     []int64    // likewise
	resident []bool
	was      []bool
	batch    []int // by key: number of the batch that touched it last
	n        int
	counters Counters
}

func newCache(sizes []int64, experts int, budget int64, split bool, newOrder func() order) *cache {
	c := &cache{sizes: sizes, budget: budget, experts: experts, split: split,
		resident: make([]bool, len(sizes)), was: make([]bool, len(sizes)), batch: make([]int, len(sizes))}
	parts := 1
	if split {
		parts = len(sizes) / experts
	}
	for range parts {
		c.ranks = append(c.ranks, newRanking(len(sizes)))
		c.orders = append(c.orders, newOrder())
	}
	c.used = make([]int64, parts)
	return c
}

func (c *cache) part(k Key) int {
	if c.split {
		return int(k) / c.experts
	}
	return 0
}

func (c *cache) visit(b *Batch) {
	c.n++
	for _, k := range b.Touches {
		part, first := c.part(k), c.batch[k] != c.n
		c.batch[k] = c.n
		if first {
			c.counters.Lookups++
			if c.resident[k] {
				c.counters.Hits++
			} else {
				c.read(k, part)
			}
		}
		c.orders[part].touched(c.ranks[part], k, first)
	}
	c.shrink(c.part(b.Touches[0]), func(k Key) bool { return c.batch[k] == c.n })
}

func (c *cache) read(k Key, part int) {
	c.counters.ReadBytes += c.sizes[k]
	if c.was[k] {
		c.counters.Rereads++
	}
	c.was[k], c.resident[k] = true, true
	c.used[part] += c.sizes[k]
	c.ranks[part].add(k)
}

// shrink makes a part of the cache fit.
func (c *cache) shrink(part int, pinned func(Key) bool) {
	limit := c.budget / int64(len(c.ranks))
	for c.used[part] > limit {
		k, ok := c.ranks[part].victim(pinned)
		if !ok {
			return
		}
		c.ranks[part].remove(k)
		c.resident[k] = false
		c.used[part] -= c.sizes[k]
		c.counters.Evictions++
	}
}

func (c *cache) resize(budget int64) {
	c.budget = budget
	for part := range c.ranks {
		c.shrink(part, func(Key) bool { return false })
	}
}

// empty forgets all but the counters.
func (c *cache) empty() {
	for part := range c.ranks {
		c.ranks[part] = newRanking(len(c.sizes))
	}
	clear(c.used)
	clear(c.resident)
	clear(c.was)
}

func (c *cache) counted() Counters { return c.counters }
