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

// Step is one distinct expert of a batch, in the order in which it is to be
// computed.
type Step struct {
	Key Key
	Hit bool
	// Evicted are the experts that give up their place for this one before it
	// is read. They may be earlier steps of the same plan, when a batch touches
	// more than the budget holds: then the read must wait until those have been
	// computed.
	Evicted []Key
}

// Plan is what a Directory decided for one batch. It is reused: its slices are
// valid until the next Visit with the same plan.
type Plan struct {
	Steps   []Step
	evicted []Key
}

// Directory knows which experts are resident and does the cache's accounting.
//
// One lookup is counted for each distinct expert of a (layer, batch). Room for
// a miss is made by evicting experts that the batch does not touch, in the
// policy's order; if there are none left, by the earliest steps of the batch
// itself. Evicting before a read what an engine with spare room would evict
// after the batch gives the same residents, since either way nothing that the
// batch touches is taken.
type Directory struct {
	shape    Shape
	policy   Policy
	budget   int64
	resident int64
	entries  int
	counters Counters

	isResident []bool
	wasRead    []bool
	batch      []uint64 // number of the batch that touched the key last
	batches    uint64
	touches    []Key
	pinned     func(Key) bool // bound once, so that a visit does not allocate
}

// NewDirectory returns an empty directory with a budget in logical bytes.
func NewDirectory(s Shape, budget int64, p Policy) *Directory {
	d := &Directory{shape: s, policy: p, budget: budget,
		isResident: make([]bool, s.Keys()), wasRead: make([]bool, s.Keys()), batch: make([]uint64, s.Keys())}
	d.pinned = func(k Key) bool { return d.batch[k] == d.batches }
	p.Reset()
	return d
}

// Visit looks up a layer's batch: ids is every touch, [tokens x k] token-major,
// duplicates included. The decisions go to p.
func (d *Directory) Visit(layer, tokens int, ids []int32, p *Plan) {
	d.batches++
	p.Steps, p.evicted = p.Steps[:0], p.evicted[:0]
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
		p.Steps = append(p.Steps, Step{Key: k, Hit: d.isResident[k]})
		if !d.isResident[k] {
			misses++
		}
	}
	d.counters.Hits += int64(len(p.Steps) - misses)
	d.policy.Visit(layer, tokens, d.touches)
	hitsFirst(p.Steps)

	oldest := 0 // the earliest step that may still be resident
	for i := len(p.Steps) - misses; i < len(p.Steps); i++ {
		k, from := p.Steps[i].Key, len(p.evicted)
		for d.resident+d.bytes(k) > d.budget {
			victim, ok := d.policy.Victim(d.pinned)
			for !ok && oldest < i {
				victim = p.Steps[oldest].Key
				ok = d.isResident[victim]
				oldest++
			}
			if !ok {
				break // one expert alone exceeds the budget; the opener refuses such a budget
			}
			d.remove(victim)
			d.counters.Evictions++
			p.evicted = append(p.evicted, victim)
		}
		// The capacity is cut so that a later append cannot write into it.
		p.Steps[i].Evicted = p.evicted[from:len(p.evicted):len(p.evicted)]
		d.add(k)
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
	d.resident += d.bytes(k)
	d.entries++
	d.policy.Add(k)
}

func (d *Directory) remove(k Key) {
	d.isResident[k] = false
	d.resident -= d.bytes(k)
	d.entries--
	d.policy.Remove(k)
}

// Resize changes the budget and returns the experts that had to go, in the
// policy's order. They count as evictions.
func (d *Directory) Resize(budget int64) []Key {
	d.budget = budget
	d.batches++ // nothing is pinned between batches
	var gone []Key
	for d.resident > budget {
		k, ok := d.policy.Victim(d.pinned)
		if !ok {
			break
		}
		d.remove(k)
		d.counters.Evictions++
		gone = append(gone, k)
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
	d.resident, d.entries, d.counters = 0, 0, Counters{}
	d.policy.Reset()
}

// IsResident reports whether k is in the cache.
func (d *Directory) IsResident(k Key) bool { return d.isResident[k] }

// Resident returns the logical bytes and the number of resident experts.
func (d *Directory) Resident() (bytes int64, experts int) { return d.resident, d.entries }

// Budget returns the budget in logical bytes.
func (d *Directory) Budget() int64 { return d.budget }

// Counters returns what was counted since the directory was last emptied.
func (d *Directory) Counters() Counters { return d.counters }

// Policy returns the policy in force.
func (d *Directory) Policy() Policy { return d.policy }
