package model

import (
	"fmt"
	"slices"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// attentionSpec is the shape of an attention block and its switches. What a file
// says by the presence of a tensor (a bias, a scale, fused q, k and v) needs none.
type attentionSpec struct {
	attentionShape
	rope    *rotary // nil: positions are not told apart
	window  int     // positions that a token sees, its own included; 0: all
	qkNorms qkNorms
	sinks   bool // each head has a score that takes weight and gives no value
	gate    outputGate
	vNorms  bool       // each head's value is normed, without weights
	post    string     // name of the norm of what the block adds; "": none
	from    *attention // an earlier block whose keys and values it takes; nil: it has its own
	lent    bool       // later blocks take its keys and values
}

// outputGate says what each head's output is multiplied by; its zero value is nothing.
type outputGate uint8

const (
	// queryGate is the sigmoid of as many rows of the query's matrix, which follow each
	// head's query.
	queryGate outputGate = iota + 1
	// softplusGate is the softplus of a product with a matrix of its own, which has a row
	// a head or a row an entry.
	softplusGate
)

// qkNorms says what of queries and keys is normed.
type qkNorms uint8

const (
	noNorms   qkNorms = iota
	headNorms         // each head on its own
	wideNorms         // all heads of a token together
)

// attentionShape is what blocks must have in common to share scratch.
type attentionShape struct {
	heads, kvHeads int
	keyDim, valDim int
	scale          float32 // of the scores
}

// attention is softmax attention over the layer's keys and values.
type attention struct {
	attentionSpec
	entry        entry
	q, k, v, o   *Weight
	qNorm, kNorm *Weight     // [keyDim] or, wide, [heads*keyDim] and [kvHeads*keyDim]
	sinkScores   *Weight     // [heads]
	vNorm        []float32   // [valDim] ones, where values are normed
	postNorm     *Weight     // [embd]; nil: none
	index        *blockIndex // which keys a token sees; nil: all
	gateRows     *Weight     // of a softplus gate: [embd x heads] or [embd x heads*valDim]
	inputs       []*Weight   // q, k and v
	outputs      []*Weight   // o

	s       *stream
	scratch *attentionScratch
}

// attentionScratch is the memory of a step, for the largest batch.
type attentionScratch struct {
	q, k, v, out []float32    // [n x heads*keyDim], [n x kvHeads*keyDim], [n x kvHeads*valDim], [n x heads*valDim]
	gates        []float32    // [n x gateWidth]
	acts         *kernel.Acts // of out
	attn         *attn.Attn
}

func (a *attentionScratch) bytes() int64 {
	return int64(len(a.q)+len(a.k)+len(a.v)+len(a.out)+len(a.gates))*4 + a.acts.Bytes() + a.attn.Bytes()
}

// attentionShape reads the shape that the layers of a model have in common.
func (l *loader) attentionShape(embd, layers int) attentionShape {
	l.allLayers("attention.head_count", layers, 0)
	if l.file.Meta.Has(l.prefix + "attention.head_count_kv") {
		l.allLayers("attention.head_count_kv", layers, 0)
	}
	return l.attentionShapes(embd, layers)[0]
}

// attentionShapes reads the shape of each layer. One without heads of keys has no
// attention.
func (l *loader) attentionShapes(embd, layers int) []attentionShape {
	list := make([]attentionShape, layers)
	heads := l.perLayer("attention.head_count", layers, 0)
	kvHeads := heads
	if l.file.Meta.Has(l.prefix + "attention.head_count_kv") {
		kvHeads = l.perLayer("attention.head_count_kv", layers, 0)
	}
	for i := range list {
		a := &list[i]
		a.heads, a.kvHeads = max(1, heads[i]), kvHeads[i]
		a.keyDim = l.keyOr("attention.key_length", max(1, embd/a.heads))
		a.valDim = l.keyOr("attention.value_length", a.keyDim)
		if a.kvHeads > 0 && a.heads%a.kvHeads != 0 {
			l.fail(fmt.Errorf("%d heads cannot share %d key/value heads evenly (%sattention.head_count, %[3]sattention.head_count_kv)", a.heads, a.kvHeads, l.prefix))
		}
		a.scale = inverseRoot(a.keyDim)
	}
	return list
}

// attention returns the block of a layer.
func (l *loader) attention(layer, embd int, spec attentionSpec) *attention {
	name := l.names(layer)
	qRows, kRows, vRows := spec.heads*spec.keyDim, spec.kvHeads*spec.keyDim, spec.kvHeads*spec.valDim
	if spec.gate == queryGate {
		if spec.keyDim != spec.valDim {
			l.fail(fmt.Errorf("heads with keys of %d entries cannot gate values of %d (%sattention.key_length, value_length)", spec.keyDim, spec.valDim, l.prefix))
		}
		qRows *= 2
	}
	a := &attention{attentionSpec: spec, entry: l.entry(layer, "attn_norm", embd)}
	var qkv []*Weight
	switch {
	case spec.from != nil:
		qkv = []*Weight{l.matrix(name("attn_q"), embd, qRows)}
		l.leave(name("attn_k.weight"), name("attn_v.weight"), name("attn_k_norm.weight")) // some files have them all the same
	case spec.vNorms && !l.has(name("attn_v.weight")) && !l.has(name("attn_qkv.weight")):
		if kRows != vRows {
			l.fail(fmt.Errorf("tensor %s is missing, and keys of %d entries make no values of %d", name("attn_v.weight"), kRows, vRows))
		}
		qkv = []*Weight{l.matrix(name("attn_q"), embd, qRows), l.matrix(name("attn_k"), embd, kRows)}
		a.k = qkv[1]
	default:
		qkv = l.matrices(name("attn_qkv"), embd, []string{name("attn_q"), name("attn_k"), name("attn_v")}, qRows, kRows, vRows)
		a.k, a.v = qkv[1], qkv[2]
	}
	a.q = qkv[0]
	a.o = l.matrix(name("attn_output"), spec.heads*spec.valDim, embd)
	a.inputs, a.outputs = qkv, []*Weight{a.o}
	switch spec.qkNorms {
	case headNorms:
		a.qNorm = l.vector(name("attn_q_norm.weight"), spec.keyDim)
		if spec.from == nil {
			a.kNorm = l.vector(name("attn_k_norm.weight"), spec.keyDim)
		}
	case wideNorms:
		a.qNorm, a.kNorm = l.vector(name("attn_q_norm.weight"), qRows), l.vector(name("attn_k_norm.weight"), kRows)
	}
	if spec.gate == softplusGate {
		rows := spec.heads
		if t, ok := l.file.Tensor(name("attn_gate.weight")); ok && len(t.Dims) == 2 && t.Dims[1] != int64(rows) {
			rows *= spec.valDim
		}
		a.gateRows = l.matrix(name("attn_gate"), embd, rows)
		a.inputs = append(a.inputs, a.gateRows)
	}
	if spec.vNorms {
		a.vNorm = slices.Repeat([]float32{1}, spec.valDim)
	}
	if spec.post != "" {
		a.postNorm = l.vector(name(spec.post+".weight"), embd)
	}
	if spec.sinks {
		a.sinkScores = l.vector(name("attn_sinks.weight"), spec.heads)
	}
	return a
}

// gateWidth returns the length of a token's gates as they come out of their product:
// those of queries with each head's query before them.
func (a *attention) gateWidth() int {
	switch a.gate {
	case queryGate:
		return 2 * a.heads * a.keyDim
	case softplusGate:
		return a.gateRows.Rows
	}
	return 0
}

func (a *attention) memory(ctx int, kv attn.KVType) layerSpec {
	spec := attn.KVSpec{Heads: a.kvHeads, KeyDim: a.keyDim, ValDim: a.valDim, Ctx: ctx, Type: kv}
	if a.window < ctx { // else every position of the context is in the window
		// Who takes the keys comes when the whole batch is there.
		spec.Window, spec.Whole = a.window, a.lent
	}
	if a.index != nil {
		return partSpecs{list: append([]layerSpec{kvSpec{spec}}, a.index.specs(ctx, kv)...)}
	}
	return kvSpec{spec}
}

// chooseBy has an index choose the keys that a token sees. The block must have a
// rotation, and no window.
func (a *attention) chooseBy(x *blockIndex) {
	a.index = x
	a.inputs = append(a.inputs, x.q, x.k)
}

func (a *attention) prepare(s *stream) (err error) {
	a.s = s
	if a.rope != nil {
		if err := a.rope.prepare(s); err != nil {
			return err
		}
	}
	type key struct {
		attentionShape
		gates int
	}
	a.scratch, err = share(s, key{a.attentionShape, a.gateWidth()}, func() (*attentionScratch, error) {
		attn, err := attn.New(attn.Spec{Heads: a.heads, KVHeads: a.kvHeads, KeyDim: a.keyDim, ValDim: a.valDim, Scale: a.scale}, s.Pool.Workers())
		if err != nil {
			return nil, err
		}
		attn.Reserve(s.ctx)
		n := s.max
		w := &attentionScratch{attn: attn, acts: kernel.NewActs(n, a.heads*a.valDim),
			q: make([]float32, n*a.heads*a.keyDim), k: make([]float32, n*a.kvHeads*a.keyDim),
			v: make([]float32, n*a.kvHeads*a.valDim), out: make([]float32, n*a.heads*a.valDim), gates: make([]float32, n*a.gateWidth())}
		return w, nil
	})
	if err == nil && a.index != nil {
		err = a.index.prepare(s, a.rope)
	}
	return err
}

func (a *attention) add(s *stream, mem layerState) error {
	if p, ok := mem.(*parts); ok {
		mem, a.index.blocks, a.index.open = p.list[0], p.list[1].(*indexKeys), p.list[2].(*recurrentLayer)
	}
	kv := mem.(kvLayer).KV
	qd, kd, vd, od := a.heads*a.keyDim, a.kvHeads*a.keyDim, a.kvHeads*a.valDim, a.heads*a.valDim
	w := a.scratch
	s.in(a.entry, a.inputs)
	var room [mostProducts]product
	products := append(room[:0], product{a.q, w.q, qd})
	if a.gate == queryGate {
		products[0] = product{a.q, w.gates, 2 * qd}
	}
	if a.k != nil {
		products = append(products, product{a.k, w.k, kd})
	}
	if a.v != nil {
		products = append(products, product{a.v, w.v, vd})
	}
	if a.gate == softplusGate {
		products = append(products, product{a.gateRows, w.gates, a.gateRows.Rows})
	}
	if x := a.index; x != nil {
		x.chosen.begin(s, x.blocks)
		products = append(products, product{x.q, x.chosen.queries, x.heads * x.dim}, product{x.k, x.key, x.dim})
	}
	s.linear.run(s.Compute, s.acts, products...)
	if a.rope != nil {
		a.rope.turnTo(s.pos, s.n)
	}
	s.Pool.Run(s.n, (*attentionTurn)(a))
	if a.index != nil {
		a.index.choose(s, a.rope)
	}
	var sinks []float32
	if a.sinkScores != nil {
		sinks = a.sinkScores.F32
	}
	// In a window's ring later keys take the place of earlier ones, so a part of the
	// batch is computed before the next is stored.
	for t0 := 0; t0 < s.n; t0 += kv.Batch() {
		n := min(kv.Batch(), s.n-t0)
		for t := t0; t < t0+n && a.k != nil; t++ {
			if err := kv.Append(s.pos+t, w.k[t*kd:][:kd], w.v[t*vd:][:vd]); err != nil {
				return err
			}
		}
		if a.index != nil {
			w.attn.RunSome(s.Pool, kv, w.out, w.q, sinks, a.index.seen[:n*a.index.words], nil, n)
		} else {
			w.attn.Run(s.Pool, kv, w.out[t0*od:], w.q[t0*qd:], sinks, n, s.pos+t0)
		}
	}
	w.acts.Reset(s.n, od)
	s.Pool.Run(s.n, (*attentionOut)(a))
	s.linear.run(s.Compute, w.acts, product{a.o, s.y, s.embd})
	s.pending, s.post = true, a.postNorm
	return nil
}

// attentionTurn norms and rotates queries and keys, a task of the pool with a
// token a part.
type attentionTurn attention

// Do implements pool.Task.
func (a *attentionTurn) Do(_, t int) {
	q := a.scratch.q[t*a.heads*a.keyDim:][:a.heads*a.keyDim]
	k := a.scratch.k[t*a.kvHeads*a.keyDim:][:a.kvHeads*a.keyDim]
	if a.gate == queryGate {
		for h := range a.heads {
			copy(q[h*a.keyDim:][:a.keyDim], a.scratch.gates[(t*a.heads+h)*2*a.keyDim:])
		}
	}
	if a.qkNorms != noNorms { // a wide norm is that of one head as long as the row
		vec.RMSNormHeads(q, a.qNorm.F32, a.s.eps)
	}
	if a.k != nil {
		a.normKV(t, k)
	}
	if a.rope == nil {
		return
	}
	row := a.rope.row(t)
	if a.index != nil {
		a.index.token(a.s, a.rope, t)
	}
	a.rope.Apply(q, a.keyDim, row)
	if a.k != nil {
		a.rope.Apply(k, a.keyDim, row)
	}
}

// normKV norms the keys and values of token t.
func (a *attentionTurn) normKV(t int, k []float32) {
	if a.vNorms {
		v := a.scratch.v[t*a.kvHeads*a.valDim:][:a.kvHeads*a.valDim]
		if a.v == nil {
			copy(v, k)
		}
		vec.RMSNormHeads(v, a.vNorm, a.s.eps)
	}
	if a.qkNorms != noNorms {
		vec.RMSNormHeads(k, a.kNorm.F32, a.s.eps)
	}
}

// attentionOut gates attention's output and prepares it for its projection, a task of the pool
// with a token a part.
type attentionOut attention

// Do implements pool.Task.
func (a *attentionOut) Do(_, t int) {
	switch a.gate {
	case queryGate:
		for h := range a.heads {
			out := a.scratch.out[(t*a.heads+h)*a.valDim:][:a.valDim]
			vec.SigmoidMul(out, a.scratch.gates[((t*a.heads+h)*2+1)*a.keyDim:][:a.valDim], out)
		}
	case softplusGate:
		gates := a.scratch.gates[t*a.gateRows.Rows:][:a.gateRows.Rows]
		each := a.heads * a.valDim / len(gates) // entries that one gate is for
		out := a.scratch.out[t*a.heads*a.valDim:]
		for i, g := range gates {
			vec.Scale(out[i*each:][:each], vec.Softplus32(g))
		}
	}
	prepare(a.scratch.acts, a.s.Numerics, a.scratch.out, t, t+1, a.outputs...)
}
