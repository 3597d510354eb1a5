package model

import "bmoe/engine/kernel"

// dense is the weights of a gated feed-forward network.
type dense struct {
	gate, up, down *Weight
}

// ffn is a feed-forward network that every token goes through.
type ffn struct {
	dense
	ff     int
	act    kernel.Activation
	norm   *Weight
	inputs []*Weight

	s       *stream
	scratch *ffnScratch
}

// ffnShape is what ffn blocks must have in common to share scratch.
type ffnShape struct{ ff int }

// ffnScratch is the memory of a step, for the largest batch.
type ffnScratch struct {
	hidden   []float32 // [n x ff]
	acts     *kernel.Acts
	gate, up kernel.Gated
	rows     int // of a part
}

func (f *ffnScratch) bytes() int64 { return int64(len(f.hidden))*4 + f.acts.Bytes() }

// dense returns the weights whose tensors' names end in ending.
func (l *loader) dense(layer, embd, ff int, ending string) dense {
	name := l.names(layer)
	return dense{gate: l.matrix(name("ffn_gate"+ending), embd, ff), up: l.matrix(name("ffn_up"+ending), embd, ff), down: l.matrix(name("ffn_down"+ending), ff, embd)}
}

// ffn returns the block of a layer; input is the name of its norm's tensor.
func (l *loader) ffn(layer, embd, ff int, input string, act kernel.Activation) *ffn {
	f := &ffn{dense: l.dense(layer, embd, ff, ""), ff: ff, act: act, norm: l.vector(l.names(layer)(input+".weight"), embd)}
	f.inputs = []*Weight{f.gate, f.up}
	return f
}

func (f *ffn) prepare(s *stream) (err error) {
	f.s = s
	f.scratch, err = share(s, ffnShape{f.ff}, func() (*ffnScratch, error) {
		return &ffnScratch{hidden: make([]float32, s.max*f.ff), acts: kernel.NewActs(s.max, f.ff)}, nil
	})
	return err
}

func (f *ffn) add(s *stream, _ layerState) error {
	w := f.scratch
	s.in(f.norm, f.inputs)
	w.gate, w.up = f.gate.gated(s.Numerics), f.up.gated(s.Numerics)
	rowBytes := w.gate.RowBytes() + w.up.RowBytes()
	w.rows = rowsPerPart(rowBytes, rowBytes*f.ff, s.Pool.Workers())
	s.Pool.Run((f.ff+w.rows-1)/w.rows, (*ffnHidden)(f))
	w.acts.Reset(s.n, f.ff)
	s.Pool.Run(s.n, (*ffnOut)(f))
	s.linear.run(s.Compute, w.acts, product{f.down, s.y, s.embd})
	s.pending = true
	return nil
}

// ffnHidden is a task of the pool, a part a chunk of rows.
type ffnHidden ffn

// Do implements pool.Task.
func (f *ffnHidden) Do(_, i int) {
	w := f.scratch
	r0 := i * w.rows
	kernel.GateUp(w.hidden, f.ff, &w.gate, &w.up, f.act, r0, min(r0+w.rows, f.ff), f.s.acts, nil)
}

// ffnOut prepares the hidden values for the down matrix, a task of the pool with a
// token a part.
type ffnOut ffn

// Do implements pool.Task.
func (f *ffnOut) Do(_, t int) {
	w := f.scratch
	w.acts.Prepare(formOf(f.down, f.s.Numerics), w.hidden, f.ff, t, t+1)
}
