package model

import (
	"math"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/pool"
	"bmoe/engine/quant"
)

// perLayer is a second embedding of each token, with a part for every layer: a row of
// a table, mixed with a projection of the first embedding.
type perLayer struct {
	layers, size int     // of a part
	table        *Weight // [layers*size x vocab]
	model        *Weight // [embd x layers*size]
	norm         *Weight // [size]
	inputs       []*Weight

	s       *stream
	scratch *perLayerScratch
}

// perLayerScratch is the memory of a step, for the largest batch.
type perLayerScratch struct {
	parts []float32 // [n x layers*size] what the layers take
	row   []float32 // [n x layers*size] the table's
	rows  []byte    // [n x layers*size] the same, as they stand in the table
	ids   []int64   // [n] their numbers
	gate  []float32 // [n x size] of one layer
	acts  *kernel.Acts
}

func (p *perLayerScratch) bytes() int64 {
	return int64(len(p.parts)+len(p.row)+len(p.gate)+2*len(p.ids))*4 + int64(len(p.rows)) + p.acts.Bytes()
}

type perLayerShape struct{ layers, size int }

func (l *loader) perLayerEmbedding(embd, layers, size, vocab int) *perLayer {
	p := &perLayer{layers: layers, size: size, table: l.weight("per_layer_token_embd.weight", layers*size, vocab),
		model: l.matrix("per_layer_model_proj", embd, layers*size), norm: l.vector("per_layer_proj_norm.weight", size)}
	p.table.Gathered = true // a token takes one row of a table that is larger than the rest of small models
	l.supported(p.table)
	p.inputs = []*Weight{p.model}
	return p
}

func (p *perLayer) prepare(s *stream) (err error) {
	p.s = s
	p.scratch, err = share(s, perLayerShape{p.layers, p.size}, func() (*perLayerScratch, error) {
		n := s.max * p.layers * p.size
		return &perLayerScratch{parts: make([]float32, n), row: make([]float32, n), rows: make([]byte, s.max*p.table.RowBytes()), ids: make([]int64, s.max), gate: make([]float32, s.max*p.size), acts: kernel.NewActs(s.max, p.size)}, nil
	})
	return err
}

// add makes the parts of all layers, before the first one.
func (p *perLayer) add(s *stream, _ layerState) error {
	w := p.scratch
	for t, id := range s.ids[:s.n] {
		w.ids[t] = int64(id)
	}
	prev := s.Pool.Enter(0, pool.Stall)
	err := s.Rows.Gather(w.rows, p.table.Range.Shard, p.table.Range.Offset, p.table.RowBytes(), w.ids[:s.n])
	s.Pool.Enter(0, prev)
	if err != nil {
		return err
	}
	s.bare(p.inputs)
	s.linear.run(s.Compute, s.acts, product{p.model, p.scratch.parts, p.layers * p.size})
	s.Pool.Run(s.n, (*perLayerMix)(p))
	return nil
}

// perLayerMix is a task of the pool, a token a part.
type perLayerMix perLayer

// Do implements pool.Task.
func (p *perLayerMix) Do(_, t int) {
	n := p.layers * p.size
	parts, row := p.scratch.parts[t*n:][:n], p.scratch.row[t*n:][:n]
	vec.Scale(parts, inverseRoot(p.s.embd))
	vec.RMSNormHeads(parts, p.norm.F32, p.s.eps)
	b := p.table.RowBytes()
	if err := quant.Dequantize(p.table.Type, row, p.scratch.rows[t*b:][:b]); err != nil {
		panic(err) // the loader refuses such types
	}
	vec.AddScaled(parts, row, float32(math.Sqrt(float64(p.size))))
	vec.Scale(parts, inverseRoot(2))
}

// layerEnd ends a layer: it adds what the layer makes of its part of the second
// embedding, and multiplies the residual by a number.
type layerEnd struct {
	layer    int
	parts    *perLayer // nil: none
	gate     *Weight   // [embd x size]
	proj     *Weight   // [size x embd]
	post     *Weight   // [embd] norm of what is added
	scale    *Weight   // [1] of the residual; nil: none
	inputs   []*Weight
	products []*Weight // proj

	s *stream
}

func (l *loader) layerEnd(layer, embd int, parts *perLayer) *layerEnd {
	name := l.names(layer)
	e := &layerEnd{layer: layer, parts: parts, scale: l.floats(name("layer_output_scale.weight"), 1)}
	if parts != nil {
		e.gate, e.proj = l.matrix(name("inp_gate"), embd, parts.size), l.matrix(name("proj"), parts.size, embd)
		e.post = l.vector(name("post_norm.weight"), embd)
		e.inputs, e.products = []*Weight{e.gate}, []*Weight{e.proj}
	}
	return e
}

func (e *layerEnd) prepare(s *stream) error {
	e.s = s
	return nil
}

func (e *layerEnd) add(s *stream, _ layerState) error {
	if e.parts != nil {
		w := e.parts.scratch
		s.bare(e.inputs)
		s.linear.run(s.Compute, s.acts, product{e.gate, w.gate, e.parts.size})
		w.acts.Reset(s.n, e.parts.size)
		s.Pool.Run(s.n, (*layerPart)(e))
		s.linear.run(s.Compute, w.acts, product{e.proj, s.y, s.embd})
		s.pending, s.post = true, e.post
	}
	if e.scale != nil {
		s.settle()
		s.Pool.Run(s.n, (*layerScale)(e))
	}
	return nil
}

// layerPart opens a token's part of the second embedding, a task of the pool.
type layerPart layerEnd

// Do implements pool.Task.
func (e *layerPart) Do(_, t int) {
	p, w := e.parts, e.parts.scratch
	gate := w.gate[t*p.size:][:p.size]
	vec.GeluMul(gate, gate, w.parts[(t*p.layers+e.layer)*p.size:][:p.size])
	prepare(w.acts, e.s.Numerics, w.gate, t, t+1, e.products...)
}

// layerScale scales a token's residual, a task of the pool.
type layerScale layerEnd

// Do implements pool.Task.
func (e *layerScale) Do(_, t int) { vec.Scale(e.s.x[t*e.s.embd:][:e.s.embd], e.scale.F32[0]) }
