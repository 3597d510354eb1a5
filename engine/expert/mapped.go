package expert

// Mapped is the Source for --moe-stream=false: every expert is always ready, in
// the model file's mapping, and whatever is not in the page cache is faulted in
// by the worker that computes it.
type Mapped struct {
	layout Layout
	shards [][]byte // the files' mappings
	slots  []slot   // views of the mapping, by place in the batch
	batch  Batch
	seen   []bool // by expert; cleared after each batch
}

// NewMapped returns a source over the mappings of a model's shards.
func NewMapped(l Layout, shards [][]byte) *Mapped {
	m := &Mapped{layout: l, shards: shards, slots: make([]slot, l.Experts), seen: make([]bool, l.Experts)}
	m.batch.init(l.Experts)
	m.batch.whole = true
	for i := range m.slots {
		m.batch.items[i].slot.Store(&m.slots[i])
	}
	return m
}

// Acquire implements Source. Experts come in order of first touch.
func (m *Mapped) Acquire(layer, _ int, ids []int32) *Batch {
	b, n := &m.batch, 0
	for _, id := range ids {
		if m.seen[id] {
			continue
		}
		m.seen[id] = true
		b.items[n].expert = id
		b.items[n].made.Store(false)
		for p, proj := range m.layout.Layers[layer] {
			m.slots[n].data[p] = m.shards[proj.File][proj.Offset+int64(id)*proj.Bytes:][:proj.Bytes]
		}
		n++
	}
	b.begin(layer, n)
	for i := range n {
		m.seen[b.items[i].expert] = false
	}
	return b
}
