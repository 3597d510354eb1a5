package policy

// Counters is what a Directory has counted since it was last emptied. Bytes
// are logical expert bytes.
type Counters struct {
	Lookups   int64 // distinct experts of each (layer, batch)
	Hits      int64
	Evictions int64
	Rereads   int64 // misses of experts that had been resident before
	ReadBytes int64 // of all misses
}

// None is no key: a step for which nobody is evicted.
const None Key = -1

// Step is one distinct expert of a batch, in the order in which it is to be
// computed.
type Step struct {
	Key Key
	Hit bool
	// Evicted is the expert that gives up its slot for this one before it is
	// read, or None. It may be an earlier step of the same plan, when a batch
	// touches more than the pool holds: then the read must wait until that one
	// has been computed.
	Evicted Key
}

// Plan is what a Directory decided for one batch. It is reused: its steps are
// valid until the next Visit with the same plan.
type Plan struct{ Steps []Step }

// Directory knows which experts are resident and does the cache's accounting.
//
// One lookup is counted for each distinct expert of a (layer, batch). A miss
// takes a free slot of its layer's pool or, if there is none, the slot of an
// expert of the pool that the batch does not touch, in the policy's order; if
// all are touched, of the batch's earliest step. Every policy is held to this:
// it is told of the batch, then victims are chosen, then the reads begin, and
// what the batch touches stays. Evicting before a read what an engine with spare
// room would evict after the batch gives the same residents. No policy reads an
// expert without keeping it: that takes slots of its own, and on recorded routes
// they cost more hits than they save (docs/streaming.md).
type Directory struct {
	shape    Shape
	policy   Policy
	budget   int64
	pools    Pools
	used     []int // slots taken, by pool
	counters Counters

	isResident []bool
	wasRead    []bool
	batch      []uint64 // number of the batch that touched the key last
	batches    uint64
	touches    []Key
	pool       int            // that a victim is wanted of
	inPool     func(int) bool // bound once, so that a visit does not allocate
	keep       func(Key) bool
}

// NewDirectory returns an empty directory with a budget in slot bytes.
func NewDirectory(s Shape, budget int64, p Policy) *Directory {
	d := &Directory{shape: s, policy: p, budget: budget, pools: s.Pools(budget),
		isResident: make([]bool, s.Keys()), wasRead: make([]bool, s.Keys()), batch: make([]uint64, s.Keys())}
	d.used = make([]int, len(d.pools.Slots))
	d.inPool = func(layer int) bool { return d.pools.Of[layer] == d.pool }
	d.keep = func(k Key) bool { return d.batch[k] == d.batches }
	p.Reset()
	d.tellBudget()
	return d
}

// tellBudget tells a policy that wants to know of the budget.
func (d *Directory) tellBudget() {
	if b, ok := d.policy.(Budgeted); ok {
		b.SetBudget(d.budget)
	}
}

// SetPolicy goes on with another policy, which takes the residents over and knows
// nothing of the past.
func (d *Directory) SetPolicy(p Policy) {
	d.policy = p
	p.Reset()
	d.tellBudget()
	for k, resident := range d.isResident {
		if resident {
			p.Add(Key(k))
		}
	}
}

func (d *Directory) poolOf(k Key) int { return d.pools.Of[d.shape.Layer(k)] }

// Visit looks up a layer's batch: ids is every touch, [tokens x k] token-major,
// duplicates included. The decisions go to p.
func (d *Directory) Visit(layer, tokens int, ids []int32, p *Plan) {
	d.batches++
	p.Steps = p.Steps[:0]
	d.touches = d.touches[:0]
	misses := 0
	for _, id := range ids {
		k := d.shape.Key(layer, id)
		d.touches = append(d.touches, k)
		if d.batch[k] == d.batches {
			continue
		}
		d.batch[k] = d.batches
		d.counters.Lookups++
		p.Steps = append(p.Steps, Step{Key: k, Hit: d.isResident[k], Evicted: None})
		if !d.isResident[k] {
			misses++
		}
	}
	d.counters.Hits += int64(len(p.Steps) - misses)
	d.policy.Visit(layer, tokens, d.touches)
	hitsFirst(p.Steps)

	d.pool = d.pools.Of[layer]
	oldest := 0 // the earliest step that may still be resident
	for i := len(p.Steps) - misses; i < len(p.Steps); i++ {
		step := &p.Steps[i]
		if d.used[d.pool] == d.pools.Slots[d.pool] {
			victim, ok := d.policy.Victim(d.inPool, d.keep)
			for !ok && oldest < i {
				victim = p.Steps[oldest].Key
				ok = d.isResident[victim]
				oldest++
			}
			if !ok {
				// A pool without a slot: the opener refuses such a budget.
				panic("policy: no slot can hold the expert")
			}
			d.remove(victim)
			d.counters.Evictions++
			step.Evicted = victim
		}
		d.add(step.Key)
	}
}

// hitsFirst moves hits before misses and keeps the order among each: what is
// there is computed while the rest is read.
func hitsFirst(steps []Step) {
	n := 0
	for i, s := range steps {
		if s.Hit {
			copy(steps[n+1:i+1], steps[n:i])
			steps[n] = s
			n++
		}
	}
}

func (d *Directory) bytes(k Key) int64 { return d.shape.Bytes[d.shape.Layer(k)] }

func (d *Directory) add(k Key) {
	d.counters.ReadBytes += d.bytes(k)
	if d.wasRead[k] {
		d.counters.Rereads++
	}
	d.wasRead[k], d.isResident[k] = true, true
	d.used[d.poolOf(k)]++
	d.policy.Add(k)
}

func (d *Directory) remove(k Key) {
	d.isResident[k] = false
	d.used[d.poolOf(k)]--
	d.policy.Remove(k)
}

// Resize changes the budget and returns the experts that had to go: of each
// pool those that the policy would give up next. They count as evictions.
func (d *Directory) Resize(budget int64) []Key {
	d.budget = budget
	d.pools = d.shape.Pools(budget)
	d.tellBudget()
	clear(d.used)
	for k, resident := range d.isResident {
		if resident {
			d.used[d.poolOf(Key(k))]++
		}
	}
	d.batches++ // nothing is pinned between batches
	var gone []Key
	for d.pool = range d.pools.Slots {
		for d.used[d.pool] > d.pools.Slots[d.pool] {
			k, ok := d.policy.Victim(d.inPool, d.keep)
			if !ok {
				break
			}
			d.remove(k)
			d.counters.Evictions++
			gone = append(gone, k)
		}
	}
	return gone
}

// Forget drops one resident expert whose read failed: its bytes were never there.
func (d *Directory) Forget(k Key) {
	if d.isResident[k] {
		d.remove(k)
	}
}

// Empty forgets all residents and counters.
func (d *Directory) Empty() {
	clear(d.isResident)
	clear(d.wasRead)
	clear(d.used)
	d.counters = Counters{}
	d.policy.Reset()
}

// Resident returns the slot bytes and the number of resident experts.
func (d *Directory) Resident() (bytes int64, experts int) {
	for i, n := range d.used {
		bytes += int64(n) * d.pools.Bytes[i]
		experts += n
	}
	return bytes, experts
}

// Budget returns the budget in slot bytes.
func (d *Directory) Budget() int64 { return d.budget }

// Pools returns how the budget is cut into slots. The slices are the
// directory's own.
func (d *Directory) Pools() Pools { return d.pools }

// Counters returns what was counted since the directory was last emptied.
func (d *Directory) Counters() Counters { return d.counters }

// Policy returns the policy in force.
func (d *Directory) Policy() Policy { return d.policy }

// IsResident reports whether k is in the cache.
func (d *Directory) IsResident(k Key) bool { return d.isResident[k] }
