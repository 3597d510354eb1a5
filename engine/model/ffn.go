package model

import "bmoe/engine/kernel"

// dense is the weights of a feed-forward network.
type dense struct {
	gate, up, down *Weight // gate is nil if it is not gated
}

// inputs returns the matrices that take the network's input.
func (d *dense) inputs() []*Weight {
	if d.gate == nil {
		return []*Weight{d.up}
	}
	return []*Weight{d.gate, d.up}
}

// ffn is a feed-forward network that every token goes through.
type ffn struct {
	dense
	ff     int
	act    kernel.Activation
	entry  entry
	post   *Weight // norm of what the block adds; nil: none
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

// dense returns the weights whose tensors' names end in ending, for the activation.
func (l *loader) dense(layer, embd, ff int, ending string, act kernel.Activation) dense {
	name := l.names(layer)
	d := dense{down: l.matrix(name("ffn_down"+ending), ff, embd)}
	if t, ok := l.file.Tensor(name("ffn_up" + ending + ".weight")); ok && act.Gated() && len(t.Dims) == 2 && t.Dims[1] == int64(2*ff) {
		both := l.matrices(name("ffn_up"+ending), embd, []string{name("ffn_gate" + ending), name("ffn_up_only" + ending)}, ff, ff)
		d.gate, d.up = both[0], both[1]
		return d
	}
	d.up = l.matrix(name("ffn_up"+ending), embd, ff)
	if act.Gated() {
		d.gate = l.matrix(name("ffn_gate"+ending), embd, ff)
	}
	return d
}

// ffn returns the block of a layer; input is the name of its norm's tensor.
func (l *loader) ffn(layer, embd, ff int, input string, act kernel.Activation) *ffn {
	f := &ffn{dense: l.dense(layer, embd, ff, "", act), ff: ff, act: act, entry: l.entry(layer, input, embd)}
	f.inputs = f.dense.inputs()
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
	s.in(f.entry, f.inputs)
	w.up = f.up.gated(s.Numerics)
	rowBytes := w.up.RowBytes()
	if f.gate != nil {
		w.gate = f.gate.gated(s.Numerics)
		rowBytes += w.gate.RowBytes()
	}
	w.rows = rowsPerPart(rowBytes, rowBytes*f.ff, s.Pool.Workers())
	s.Pool.Run((f.ff+w.rows-1)/w.rows, (*ffnHidden)(f))
	w.acts.Reset(s.n, f.ff)
	s.Pool.Run(s.n, (*ffnOut)(f))
	s.linear.run(s.Compute, w.acts, product{f.down, s.y, s.embd})
	s.pending, s.post = true, f.post
	return nil
}

// ffnHidden is a task of the pool, a part a chunk of rows.
type ffnHidden ffn

// Do implements pool.Task.
func (f *ffnHidden) Do(_, i int) {
	w := f.scratch
	r0 := i * w.rows
	gate := &w.gate
	if f.gate == nil {
		gate = nil
	}
	kernel.GateUp(w.hidden, f.ff, gate, &w.up, f.act, r0, min(r0+w.rows, f.ff), f.s.acts, nil)
}

// ffnOut prepares the hidden values for the down matrix, a task of the pool with a
// token a part.
type ffnOut ffn

// Do implements pool.Task.
func (f *ffnOut) Do(_, t int) {
	w := f.scratch
	w.acts.Prepare(formOf(f.down, f.s.Numerics), w.hidden, f.ff, t, t+1)
}
