package expert

// Mapped is the Source for --moe-stream=false: every expert is always ready, in
// the model file's mapping, and whatever is not in the page cache is faulted in
// by the worker that computes it.
type Mapped struct {
	layout Layout
	shards [][]byte // the files' mappings
	batch  Batch
	seen   []bool // by expert; cleared after each batch
}

// NewMapped returns a source over the mappings of a model's shards.
func NewMapped(l Layout, shards [][]byte) *Mapped {
	m := &Mapped{layout: l, shards: shards, seen: make([]bool, l.Experts)}
	m.batch.items = make([]item, l.Experts)
	m.batch.news.L = &m.batch.mu
	return m
}

// Acquire implements Source. Experts come in order of first touch.
func (m *Mapped) Acquire(layer, _ int, ids []int32) *Batch {
	b := &m.batch
	b.layer, b.n, b.consumed = layer, 0, 0
	for _, id := range ids {
		if m.seen[id] {
			continue
		}
		m.seen[id] = true
		it := &b.items[b.n]
		b.n++
		it.expert = id
		for p, proj := range m.layout.Layers[layer] {
			it.data[p] = m.shards[proj.File][proj.Offset+int64(id)*proj.Bytes:][:proj.Bytes]
		}
	}
	for i := range b.n {
		m.seen[b.items[i].expert] = false
	}
	b.next = b.n // none waits for a slot
	return b
}
