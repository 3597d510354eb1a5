package model

import (
	"fmt"
	"math"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// latentShape is the shape of multi-head latent attention, which blocks must have in
// common to share scratch. A head's key is made of two parts: one of the latent
// vector that all heads of a token share, and one that is turned by the position and
// is the same for all of them. Values are made of the latent vector alone.
type latentShape struct {
	heads      int
	qRank      int // entries of the vector that queries are made of; 0: of the input itself
	rank       int // of the latent vector
	nope, rope int // entries of a head's key: of the latent vector, and turned
	valDim     int
	scale      float32 // of the scores
	// expanded layers remember each head's key and value instead of the latent vector.
	// Files from before 2025 have both in one matrix, which can be multiplied by from
	// one side only.
	expanded bool
	gated    bool // each head's output is multiplied by the sigmoid of a product with the input
}

func (a *latentShape) keyDim() int { return a.nope + a.rope }

// latent is attention over latent vectors (DeepSeek-V2, arXiv 2405.04434, section
// 2.1). The cache holds one vector a token, so keys are not made: what would make
// them is applied to the queries, and what would make values to what is attended to.
type latent struct {
	latentShape
	turn        *rotary
	entry       entry
	qa, qaNorm  *Weight // [embd x qRank], [qRank]; nil: queries come from the input
	q           *Weight // [qRank or embd x heads*keyDim]
	kva, kvNorm *Weight // [embd x rank+rope], [rank]
	kb, vb      *Weight // [nope x rank x heads], [rank x valDim x heads]
	kvb         *Weight // expanded: [rank x heads*(nope+valDim)]
	o           *Weight
	gate        *Weight // [embd x heads]; nil: none

	inputs, queries, keys, values, outputs []*Weight // of the steps' activations

	// Where a token sees some keys only: shape of the choice, and who makes it. A layer
	// without an indexer takes the last choice made.
	choice *indexShape
	index  *indexer

	s       *stream
	scratch *latentScratch
	chosen  *indexScratch
}

// latentScratch is the memory of a step, for the largest batch.
type latentScratch struct {
	qa      []float32 // [n x qRank]
	q       []float32 // [n x heads*keyDim]
	kva     []float32 // [n x rank+rope]
	kv      []float32 // expanded: [n x heads*(nope+valDim)]
	k, v    []float32 // expanded: [n x heads*keyDim], [n x heads*valDim]
	query   []float32 // [n x heads x rank+rope], what the cache's keys are met with
	seen    []float32 // [n x heads x rank]
	out     []float32 // [n x heads*valDim]
	gate    []float32 // [n x heads] where they are gated
	qaActs  *kernel.Acts
	kvActs  *kernel.Acts // expanded: of the latent vectors
	headIn  *kernel.Acts // [n*heads], of queries
	headOut *kernel.Acts // [n*heads], of what was attended to
	acts    *kernel.Acts // of out
	attn    *attn.Attn
	byHead  byHead
}

func (w *latentScratch) bytes() int64 {
	n := len(w.qa) + len(w.q) + len(w.kva) + len(w.kv) + len(w.k) + len(w.v) + len(w.query) + len(w.seen) + len(w.out) + len(w.gate) + len(w.byHead.rows)
	b := int64(n)*4 + w.acts.Bytes() + w.attn.Bytes()
	for _, a := range []*kernel.Acts{w.qaActs, w.kvActs, w.headIn, w.headOut} {
		if a != nil {
			b += a.Bytes()
		}
	}
	return b
}

// latentShape reads the shape that the layers of a model have in common.
func (l *loader) latentShape(layers int) latentShape {
	a := latentShape{heads: l.allLayers("attention.head_count", layers, 0), qRank: l.some("attention.q_lora_rank"),
		rank: l.key("attention.kv_lora_rank"), rope: l.key("rope.dimension_count")}
	// Files from before the latent cache give the heads' own lengths here.
	a.valDim = l.keyOr("attention.value_length_mla", l.keyOr("attention.value_length", a.rank))
	keyDim := l.keyOr("attention.key_length_mla", l.keyOr("attention.key_length", a.rank+a.rope))
	if a.nope = keyDim - a.rope; a.nope < 1 {
		l.fail(fmt.Errorf("%srope.dimension_count is %d, but a head's key has %d entries: nothing is left of them", l.prefix, a.rope, keyDim))
		a.nope = 1
	}
	a.scale = float32(1 / math.Sqrt(float64(a.keyDim())))
	a.expanded = l.has("blk.0.attn_kv_b.weight")
	return a
}

// latentRope returns the rotation, and how much YaRN sharpens the scores: here it
// multiplies them instead of cosines and sines.
func (l *loader) latentRope(a latentShape) (r *rotary, sharper float32) {
	r = l.rope(vec.RopeNorm, a.rope)
	if r.spec.Scaling != vec.RopeYarn {
		return r, 1
	}
	logFactor := math.Log(r.spec.Factor)
	m := 1 + 0.1*logFactor
	if key := "rope.scaling.yarn_log_multiplier"; l.file.Meta.Has(l.prefix + key) {
		m = 1 + l.floatOr(key, 0.1)*logFactor
		r.spec.Magnitude = 1
	}
	return r, float32(m * m)
}

// latent returns the block of a layer.
func (l *loader) latent(layer, embd int, shape latentShape, turn *rotary) *latent {
	name := l.names(layer)
	a := &latent{latentShape: shape, turn: turn, entry: l.entry(layer, "attn_norm", embd)}
	if a.qRank > 0 && l.has(name("attn_q_a.weight")) {
		a.qa, a.qaNorm = l.matrix(name("attn_q_a"), embd, a.qRank), l.vector(name("attn_q_a_norm.weight"), a.qRank)
		a.q = l.matrix(name("attn_q_b"), a.qRank, a.heads*a.keyDim())
		a.inputs = append(a.inputs, a.qa)
		a.queries = []*Weight{a.q}
	} else {
		a.q = l.matrix(name("attn_q"), embd, a.heads*a.keyDim())
		a.inputs = append(a.inputs, a.q)
	}
	a.kva, a.kvNorm = l.matrix(name("attn_kv_a_mqa"), embd, a.rank+a.rope), l.vector(name("attn_kv_a_norm.weight"), a.rank)
	a.inputs = append(a.inputs, a.kva)
	if a.gated {
		a.gate = l.matrix(name("attn_gate"), embd, a.heads)
		a.inputs = append(a.inputs, a.gate)
	}
	if a.expanded {
		a.kvb = l.matrix(name("attn_kv_b"), a.rank, a.heads*(a.nope+a.valDim))
		a.keys = []*Weight{a.kvb}
	} else {
		a.kb = l.perHead(name("attn_k_b"), a.nope, a.rank, a.heads)
		a.vb = l.perHead(name("attn_v_b"), a.rank, a.valDim, a.heads)
		a.keys, a.values = []*Weight{a.kb}, []*Weight{a.vb}
	}
	a.o = l.matrix(name("attn_output"), a.heads*a.valDim, embd)
	a.outputs = []*Weight{a.o}
	return a
}

// perHead returns a matrix of each head in one tensor, and its scale.
func (l *loader) perHead(stem string, cols, rows, heads int) *Weight {
	w := l.weight(stem+".weight", cols, rows, heads)
	l.supported(w)
	w.scale = l.floats(stem+".scale", 1)
	return w
}

// sparse makes the block one that sees the keys of a choice; chooseBy has it choose.
func (a *latent) sparse(shape indexShape) { a.choice = &shape }

func (a *latent) chooseBy(x *indexer) {
	a.index = x
	a.queries = append(a.queries, x.q)
	a.inputs = append(a.inputs, x.k, x.weights)
}

func (a *latent) memory(ctx int, kv attn.KVType) layerSpec {
	spec := a.keysSpec(ctx, kv)
	if a.index == nil {
		return spec
	}
	return partSpecs{list: []layerSpec{spec, a.index.spec(ctx, kv)}}
}

func (a *latent) keysSpec(ctx int, kv attn.KVType) layerSpec {
	if a.expanded {
		return kvSpec{attn.KVSpec{Heads: a.heads, KeyDim: a.keyDim(), ValDim: a.valDim, Ctx: ctx, Type: kv}}
	}
	return kvSpec{attn.KVSpec{Heads: 1, KeyDim: a.rank + a.rope, ValDim: a.rank, Ctx: ctx, Type: kv}}
}

func (a *latent) prepare(s *stream) (err error) {
	a.s = s
	if err := a.turn.prepare(s); err != nil {
		return err
	}
	a.scratch, err = share(s, a.latentShape, func() (*latentScratch, error) {
		n, heads := s.max, a.heads
		w := &latentScratch{qa: make([]float32, n*a.qRank), q: make([]float32, n*heads*a.keyDim()), kva: make([]float32, n*(a.rank+a.rope)),
			out: make([]float32, n*heads*a.valDim), acts: kernel.NewActs(n, heads*a.valDim)}
		if a.gated {
			w.gate = make([]float32, n*heads)
		}
		if a.qRank > 0 {
			w.qaActs = kernel.NewActs(n, a.qRank)
		}
		spec := attn.Spec{Heads: heads, KVHeads: 1, KeyDim: a.rank + a.rope, ValDim: a.rank, Scale: a.scale}
		if a.expanded {
			spec = attn.Spec{Heads: heads, KVHeads: heads, KeyDim: a.keyDim(), ValDim: a.valDim, Scale: a.scale}
			w.kv, w.k, w.v = make([]float32, n*heads*(a.nope+a.valDim)), make([]float32, n*heads*a.keyDim()), make([]float32, n*heads*a.valDim)
			w.kvActs = kernel.NewActs(n, a.rank)
		} else {
			w.query, w.seen = make([]float32, n*heads*(a.rank+a.rope)), make([]float32, n*heads*a.rank)
			w.headIn, w.headOut = kernel.NewActs(n*heads, a.nope), kernel.NewActs(n*heads, a.rank)
			w.byHead.reserve(n, heads, s.Pool.Workers())
		}
		var err error
		if w.attn, err = attn.New(spec, s.Pool.Workers()); err != nil {
			return nil, err
		}
		w.attn.Reserve(s.ctx)
		return w, nil
	})
	if err != nil || a.choice == nil {
		return err
	}
	shape := *a.choice
	w, err := share(s, shape, func() (*indexScratch, error) { return newIndexScratch(shape, s.max, s.ctx, s.Pool.Workers()), nil })
	a.chosen = w
	if a.index != nil {
		a.index.prepare(s, w)
	}
	return err
}

func (a *latent) add(s *stream, mem layerState) error {
	w := a.scratch
	if p, ok := mem.(*parts); ok {
		mem, a.index.keys = p.list[0], p.list[1].(*indexKeys)
	}
	kv := mem.(kvLayer).KV
	s.in(a.entry, a.inputs)
	products, n := [mostProducts]product{{}, {a.kva, w.kva, a.rank + a.rope}}, 2
	if a.gated {
		products[2], n = product{a.gate, w.gate, a.heads}, 3
	}
	if a.qa != nil {
		products[0] = product{a.qa, w.qa, a.qRank}
		if a.index != nil {
			products[n] = product{a.index.k, a.index.key, a.index.dim}
			products[n+1] = product{a.index.weights, a.chosen.weights, a.index.heads}
			n += 2
		}
		s.linear.run(s.Compute, s.acts, products[:n]...)
		w.qaActs.Reset(s.n, a.qRank)
		s.Pool.Run(s.n, (*latentQuery)(a))
		if a.index != nil {
			s.linear.run(s.Compute, w.qaActs, product{a.q, w.q, a.heads * a.keyDim()}, product{a.index.q, a.chosen.queries, a.index.heads * a.index.dim})
		} else {
			s.linear.run(s.Compute, w.qaActs, product{a.q, w.q, a.heads * a.keyDim()})
		}
	} else {
		products[0] = product{a.q, w.q, a.heads * a.keyDim()}
		s.linear.run(s.Compute, s.acts, products[:n]...)
	}
	a.turn.turnTo(s.pos, s.n)
	if a.expanded {
		w.kvActs.Reset(s.n, a.rank)
	} else {
		w.headIn.Reset(s.n*a.heads, a.nope)
	}
	if a.index != nil {
		a.chosen.begin(s, a.index.keys)
	}
	s.Pool.Run(s.n, (*latentTurn)(a))
	if a.index != nil {
		a.index.keys.advance(s.pos + s.n)
		a.chosen.choose()
	}
	if err := a.attend(kv); err != nil {
		return err
	}
	w.acts.Reset(s.n, a.heads*a.valDim)
	s.Pool.Run(s.n, (*latentOut)(a))
	s.linear.run(s.Compute, w.acts, product{a.o, s.y, s.embd})
	s.pending = true
	return nil
}

// attend computes the heads' outputs into out.
func (a *latent) attend(kv *attn.KV) error {
	w, s := a.scratch, a.s
	if a.expanded {
		s.linear.run(s.Compute, w.kvActs, product{a.kvb, w.kv, a.heads * (a.nope + a.valDim)})
		s.Pool.Run(s.n, (*latentExpand)(a))
		kd, vd := a.heads*a.keyDim(), a.heads*a.valDim
		for t := range s.n {
			if err := kv.Append(s.pos+t, w.k[t*kd:][:kd], w.v[t*vd:][:vd]); err != nil {
				return err
			}
		}
		a.look(kv, w.out, w.q)
		return nil
	}
	width := a.rank + a.rope
	for t := range s.n {
		row := w.kva[t*width:][:width]
		if err := kv.Append(s.pos+t, row, row[:a.rank]); err != nil {
			return err
		}
	}
	w.byHead.run(s.Compute, w.headIn, a.kb, a.rank, w.query, width)
	a.look(kv, w.seen, w.query)
	w.headOut.Reset(s.n*a.heads, a.rank)
	s.Pool.Run(s.n, (*latentSeen)(a))
	w.byHead.run(s.Compute, w.headOut, a.vb, a.valDim, w.out, a.valDim)
	return nil
}

// look computes attention to all keys, or to those of the choice.
func (a *latent) look(kv *attn.KV, out, q []float32) {
	s := a.s
	if a.choice == nil {
		a.scratch.attn.Run(s.Pool, kv, out, q, nil, s.n, s.pos)
		return
	}
	a.scratch.attn.RunSome(s.Pool, kv, out, q, nil, a.chosen.seen[:s.n*a.chosen.words], nil, s.n)
}

// latentQuery norms what queries are made of, a task of the pool with a token a part.
type latentQuery latent

// Do implements pool.Task.
func (a *latentQuery) Do(_, t int) {
	w := a.scratch
	vec.RMSNormHeads(w.qa[t*a.qRank:][:a.qRank], a.qaNorm.F32, a.s.eps)
	prepare(w.qaActs, a.s.Numerics, w.qa, t, t+1, a.queries...)
}

// latentTurn norms the latent vector and turns the parts that a position turns, a
// task of the pool with a token a part.
type latentTurn latent

// Do implements pool.Task.
func (a *latentTurn) Do(_, t int) {
	w, width, keyDim := a.scratch, a.rank+a.rope, a.nope+a.rope
	row := a.turn.row(t)
	if a.index != nil {
		a.index.token(a.s, a.turn, t)
	}
	kva := w.kva[t*width:][:width]
	vec.RMSNormHeads(kva[:a.rank], a.kvNorm.F32, a.s.eps)
	a.turn.Apply(kva[a.rank:], a.rope, row)
	for h := range a.heads {
		q := w.q[(t*a.heads+h)*keyDim:][:keyDim]
		a.turn.Apply(q[a.nope:], a.rope, row)
		if !a.expanded {
			copy(w.query[(t*a.heads+h)*width+a.rank:][:a.rope], q[a.nope:])
		}
	}
	if a.expanded {
		w.kvActs.Prepare(formOf(a.kvb, a.s.Numerics), w.kva, width, t, t+1)
		return
	}
	w.headIn.Prepare(formOf(a.kb, a.s.Numerics), w.q, keyDim, t*a.heads, (t+1)*a.heads)
}

// latentExpand lays out the heads' keys and values, a task of the pool with a token
// a part.
type latentExpand latent

// Do implements pool.Task.
func (a *latentExpand) Do(_, t int) {
	w, width, keyDim := a.scratch, a.rank+a.rope, a.nope+a.rope
	for h := range a.heads {
		from := w.kv[(t*a.heads+h)*(a.nope+a.valDim):][:a.nope+a.valDim]
		k := w.k[(t*a.heads+h)*keyDim:][:keyDim]
		copy(k, from[:a.nope])
		copy(k[a.nope:], w.kva[t*width+a.rank:][:a.rope])
		copy(w.v[(t*a.heads+h)*a.valDim:][:a.valDim], from[a.nope:])
	}
}

// latentSeen prepares what a token's heads have attended to, a task of the pool.
type latentSeen latent

// Do implements pool.Task.
func (a *latentSeen) Do(_, t int) {
	w := a.scratch
	w.headOut.Prepare(formOf(a.vb, a.s.Numerics), w.seen, a.rank, t*a.heads, (t+1)*a.heads)
}

// latentOut gates the heads' outputs and prepares them for their projection, a task of
// the pool with a token a part.
type latentOut latent

// Do implements pool.Task.
func (a *latentOut) Do(_, t int) {
	if a.gated {
		for h, x := range a.scratch.gate[t*a.heads:][:a.heads] {
			vec.Scale(a.scratch.out[(t*a.heads+h)*a.valDim:][:a.valDim], vec.Sigmoid32(x))
		}
	}
	prepare(a.scratch.acts, a.s.Numerics, a.scratch.out, t, t+1, a.outputs...)
}

// byHead multiplies the vector of each head by a matrix of its own: the vectors are
// [tokens x heads], and so are the results.
type byHead struct {
	heads, max int
	rows       []int32         // [heads x max]: the numbers of each head's vectors
	mine       []kernel.Matrix // by worker: a head's

	// the step in progress
	c     *Compute
	acts  *kernel.Acts
	w     *Weight
	form  kernel.Form
	size  int // rows of a head's matrix
	part  int // of them, in a part of the job
	parts int // of a head
	dst   []float32
	width int // of a head's result in dst
}

func (b *byHead) reserve(n, heads, workers int) {
	b.mine = make([]kernel.Matrix, workers)
	b.heads, b.max, b.rows = heads, n, make([]int32, n*heads)
	for h := range heads {
		for t := range n {
			b.rows[h*n+t] = int32(t*heads + h)
		}
	}
}

// run computes size rows of w for each head into dst, width apart.
func (b *byHead) run(c *Compute, acts *kernel.Acts, w *Weight, size int, dst []float32, width int) {
	b.c, b.acts, b.w, b.form, b.size, b.dst, b.width = c, acts, w, formOf(w, c.Numerics), size, dst, width
	b.part = rowsPerPart(w.RowBytes(), w.RowBytes()*w.Rows, c.Pool.Workers())
	b.parts = (size + b.part - 1) / b.part
	c.Pool.Run(b.heads*b.parts, b)
}

// Do implements pool.Task.
func (b *byHead) Do(worker, i int) {
	h, r0 := i/b.parts, i%b.parts*b.part
	r1 := min(r0+b.part, b.size)
	m := &b.mine[worker]
	*m = b.w.Slice(h*b.size, b.size)
	dst, stride := b.dst[h*b.width:], b.heads*b.width
	n := b.acts.Len() / b.heads
	kernel.MatMul(dst, stride, m, r0, r1, b.acts, b.form, b.rows[h*b.max:][:n])
	b.w.affine().ApplyAll(dst, stride, n, r0, r1)
}
