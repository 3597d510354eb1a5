package model

import (
	"fmt"
	"math"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// compressedShape is the shape of attention to the latest tokens and to summaries of
// all before, which blocks must have in common to share scratch.
type compressedShape struct {
	heads, dim, rope  int // of a head, and its last entries that are turned
	qRank             int // of the vector that queries are made of
	window            int // positions that a token sees
	ratio             int // positions of a block that has a summary; 0: none
	groups, groupRank int // of heads whose outputs are made short together
	// Blocks that are chosen by an indexer overlap: half of a summary is of the block
	// before.
	index indexShape // its top is 0 where every summary is seen
}

// compressed is DeepSeek-V4's attention. One key serves all heads, and is their value,
// too; so what heads take from it is turned back. Beside the latest keys a token sees
// a key for every whole block of positions, or for those that an indexer chooses.
type compressed struct {
	compressedShape
	turn            *rotary
	entry           entry
	qa, qaNorm, qb  *Weight // [embd x qRank], [qRank], [qRank x heads*dim]
	kv, kvNorm      *Weight // [embd x dim], [dim]
	sinks           *Weight // [heads]
	oa, ob          *Weight // [dim*heads/groups x groupRank*groups], [groupRank*groups x embd]
	sum             *summary
	indexSum        *summary
	indexQ, indexW  *Weight // [qRank x heads*dim], [embd x heads] of the indexer
	inputs          []*Weight
	queries         []*Weight // of the vector of rank qRank
	groupIn, groupW []*Weight // of the heads' outputs, and of the groups'

	s       *stream
	scratch *compressedScratch
	chosen  *indexScratch
}

// compressedScratch is the memory of a step, for the largest batch.
type compressedScratch struct {
	qa         []float32 // [n x qRank]
	q          []float32 // [n x heads*dim]
	kv         []float32 // [n x dim]
	out, more  []float32 // [n x heads*dim] of the latest keys, and of the summaries
	sums, sumM []float32 // [n x heads x 2]
	back       []float32 // [n x rope] angles, turned back
	short      []float32 // [n x groups*groupRank]
	ones       []float32 // [dim]
	seen       []uint64  // [n x words] where every summary is seen
	words      int

	qaActs, groupActs, shortActs *kernel.Acts
	attn                         *attn.Attn
	byGroup                      byHead
}

func (w *compressedScratch) bytes() int64 {
	n := len(w.qa) + len(w.q) + len(w.kv) + len(w.out) + len(w.more) + len(w.sums) + len(w.sumM) + len(w.back) + len(w.short) + len(w.ones) + 2*len(w.seen) + len(w.byGroup.rows)
	return int64(n)*4 + w.qaActs.Bytes() + w.groupActs.Bytes() + w.shortActs.Bytes() + w.attn.Bytes()
}

// compressedShape reads the shape that the layers of a model have in common.
func (l *loader) compressedShape(layers int) compressedShape {
	a := compressedShape{heads: l.allLayers("attention.head_count", layers, 0), dim: l.key("attention.key_length"), rope: l.key("rope.dimension_count"),
		qRank: l.key("attention.q_lora_rank"), window: l.key("attention.sliding_window"), groups: l.key("attention.output_group_count"), groupRank: l.key("attention.output_lora_rank")}
	if l.allLayers("attention.head_count_kv", layers, 1) != 1 || l.keyOr("attention.value_length", a.dim) != a.dim {
		l.fail(fmt.Errorf("%sattention.head_count_kv and value_length: one key that is the value, too, is known", l.prefix))
	}
	if a.rope > a.dim {
		l.fail(fmt.Errorf("%srope.dimension_count is %d, and heads have %d entries", l.prefix, a.rope, a.dim))
		a.rope = a.dim
	}
	if a.heads%a.groups != 0 {
		l.fail(fmt.Errorf("%d heads cannot be in %d groups of one size (%sattention.head_count, attention.output_group_count)", a.heads, a.groups, l.prefix))
		a.groups = 1
	}
	return a
}

// compressed returns the block of a layer with blocks of ratio positions.
func (l *loader) compressed(layer, embd int, shape compressedShape, turn *rotary) *compressed {
	name := l.names(layer)
	a := &compressed{compressedShape: shape, turn: turn, entry: l.entry(layer, "attn_norm", embd)}
	a.qa, a.qaNorm = l.matrix(name("attn_q_a"), embd, a.qRank), l.vector(name("attn_q_a_norm.weight"), a.qRank)
	a.qb = l.matrix(name("attn_q_b"), a.qRank, a.heads*a.dim)
	a.kv, a.kvNorm = l.matrix(name("attn_kv"), embd, a.dim), l.vector(name("attn_kv_a_norm.weight"), a.dim)
	a.sinks = l.vector(name("attn_sinks.weight"), a.heads)
	a.oa = l.matrix(name("attn_output_a"), a.dim*a.heads/a.groups, a.groups*a.groupRank)
	a.ob = l.matrix(name("attn_output_b"), a.groups*a.groupRank, embd)
	a.inputs, a.queries, a.groupIn, a.groupW = []*Weight{a.qa, a.kv}, []*Weight{a.qb}, []*Weight{a.oa}, []*Weight{a.ob}
	if a.ratio > 0 {
		a.sum = l.summary(name("attn_compressor"), embd, a.dim, a.ratio, a.index.top > 0)
		a.inputs = append(a.inputs, a.sum.kv, a.sum.gate)
	}
	if a.index.top > 0 {
		a.indexQ, a.indexW = l.matrix(name("indexer.attn_q_b"), a.qRank, a.index.heads*a.index.dim), l.matrix(name("indexer.proj"), embd, a.index.heads)
		a.indexSum = l.summary(name("indexer_compressor"), embd, a.index.dim, a.ratio, true)
		a.inputs, a.queries = append(a.inputs, a.indexW, a.indexSum.kv, a.indexSum.gate), append(a.queries, a.indexQ)
	}
	return a
}

func (a *compressed) memory(ctx int, kv attn.KVType) layerSpec {
	latest := kvSpec{attn.KVSpec{Heads: 1, KeyDim: a.dim, ValDim: a.dim, Ctx: ctx, Type: kv}}
	if a.window < ctx {
		latest.Window = a.window
	}
	if a.ratio == 0 {
		return latest
	}
	list := []layerSpec{latest, summarySpec{attn.KVSpec{Heads: 1, KeyDim: a.dim, ValDim: a.dim, Ctx: ctx/a.ratio + 1, Type: kv}, a.ratio}, a.sum.open()}
	if a.index.top > 0 {
		list = append(list, indexSpec{dim: a.index.dim, every: a.ratio, ctx: ctx, half: kv != attn.KVF32}, a.indexSum.open())
	}
	return partSpecs{list: list}
}

func (a *compressed) prepare(s *stream) (err error) {
	a.s = s
	if err := a.turn.prepare(s); err != nil {
		return err
	}
	shape := a.compressedShape
	shape.ratio = min(shape.ratio, 1) // scratch is the same, whatever the blocks' length
	shape.index = indexShape{}
	a.scratch, err = share(s, shape, func() (*compressedScratch, error) {
		n, wide := s.max, a.heads*a.dim
		w := &compressedScratch{qa: make([]float32, n*a.qRank), q: make([]float32, n*wide), kv: make([]float32, n*a.dim), out: make([]float32, n*wide),
			back: make([]float32, a.turn.TableLen(n)), short: make([]float32, n*a.groups*a.groupRank), ones: make([]float32, a.dim),
			qaActs: kernel.NewActs(n, a.qRank), groupActs: kernel.NewActs(n*a.groups, wide/a.groups), shortActs: kernel.NewActs(n, a.groups*a.groupRank)}
		for i := range w.ones {
			w.ones[i] = 1
		}
		if a.ratio > 0 {
			w.more, w.sums, w.sumM = make([]float32, n*wide), make([]float32, 2*n*a.heads), make([]float32, 2*n*a.heads)
			w.seen = make([]uint64, n*(s.ctx/64+1))
		}
		w.byGroup.reserve(n, a.groups, s.Pool.Workers())
		var err error
		w.attn, err = attn.New(attn.Spec{Heads: a.heads, KVHeads: 1, KeyDim: a.dim, ValDim: a.dim, Scale: inverseRoot(a.dim)}, s.Pool.Workers())
		if err != nil {
			return nil, err
		}
		w.attn.Reserve(s.ctx)
		return w, nil
	})
	if err != nil || a.ratio == 0 {
		return err
	}
	if err := a.sum.prepare(s, a.turn); err != nil {
		return err
	}
	if a.index.top == 0 {
		return nil
	}
	if a.chosen, err = share(s, a.index, func() (*indexScratch, error) { return newIndexScratch(a.index, s.max, s.ctx, s.Pool.Workers()), nil }); err != nil {
		return err
	}
	return a.indexSum.prepare(s, a.turn)
}

func (a *compressed) add(s *stream, mem layerState) error {
	w := a.scratch
	var p *parts
	if a.ratio > 0 {
		p = mem.(*parts)
		mem = p.list[0]
	}
	latest := mem.(kvLayer).KV
	s.in(a.entry, a.inputs)
	products, n := [4]product{{a.qa, w.qa, a.qRank}, {a.kv, w.kv, a.dim}}, 2
	if a.ratio > 0 {
		products[2], products[3], n = product{a.sum.kv, a.sum.scratch.u, a.sum.width()}, product{a.sum.gate, a.sum.scratch.gate, a.sum.width()}, 4
	}
	s.linear.run(s.Compute, s.acts, products[:n]...)
	queries, n := [2]product{{a.qb, w.q, a.heads * a.dim}}, 1
	if a.index.top > 0 {
		x := a.indexSum
		s.linear.run(s.Compute, s.acts, product{a.indexW, a.chosen.weights, a.index.heads}, product{x.kv, x.scratch.u, x.width()}, product{x.gate, x.scratch.gate, x.width()})
		queries[1], n = product{a.indexQ, a.chosen.queries, a.index.heads * a.index.dim}, 2
		a.chosen.begin(s, p.list[3].(*indexKeys))
	}
	w.qaActs.Reset(s.n, a.qRank)
	s.Pool.Run(s.n, (*compressedQuery)(a))
	s.linear.run(s.Compute, w.qaActs, queries[:n]...)
	a.turn.turnTo(s.pos, s.n)
	s.Pool.Run(s.n, (*compressedTurn)(a))
	if a.ratio == 0 {
		if err := a.latest(latest, a.sinks.F32, nil); err != nil {
			return err
		}
	} else if err := a.both(latest, p); err != nil {
		return err
	}
	w.groupActs.Reset(s.n*a.groups, a.heads*a.dim/a.groups)
	s.Pool.Run(s.n, (*compressedOut)(a))
	w.byGroup.run(s.Compute, w.groupActs, a.oa, a.groupRank, w.short, a.groupRank)
	w.shortActs.Reset(s.n, a.groups*a.groupRank)
	s.Pool.Run(s.n, (*compressedShort)(a))
	s.linear.run(s.Compute, w.shortActs, product{a.ob, s.y, s.embd})
	s.pending, s.post = true, nil
	return nil
}

// latest stores the batch's keys and computes attention to the latest ones.
func (a *compressed) latest(kv *attn.KV, sinks, sums []float32) error {
	s, w, wide := a.s, a.scratch, a.heads*a.dim
	for t0 := 0; t0 < s.n; t0 += kv.Batch() {
		n := min(kv.Batch(), s.n-t0)
		for t := t0; t < t0+n; t++ {
			if err := kv.Append(s.pos+t, w.kv[t*a.dim:][:a.dim], w.kv[t*a.dim:][:a.dim]); err != nil {
				return err
			}
		}
		if sums != nil {
			w.attn.RunSums(s.Pool, kv, w.out[t0*wide:], w.q[t0*wide:], sums[2*t0*a.heads:], n, s.pos+t0)
		} else {
			w.attn.Run(s.Pool, kv, w.out[t0*wide:], w.q[t0*wide:], sinks, n, s.pos+t0)
		}
	}
	return nil
}

// both computes attention to the latest keys and to the summaries.
func (a *compressed) both(latest *attn.KV, p *parts) error {
	s, w := a.s, a.scratch
	blocks := p.list[1].(summaryLayer)
	err := a.sum.summarise(s, p.list[2].(*recurrentLayer), func(b int, key []float32) error { return blocks.Append(b, key, key) })
	if err != nil {
		return err
	}
	seen := w.seen
	if a.index.top > 0 {
		keys := p.list[3].(*indexKeys)
		if err := a.indexSum.summarise(s, p.list[4].(*recurrentLayer), func(b int, key []float32) error { keys.put(b, key); return nil }); err != nil {
			return err
		}
		keys.advance(s.pos + s.n)
		a.chosen.choose()
		w.words, seen = a.chosen.words, a.chosen.seen
	} else {
		w.words = ((s.pos+s.n)/a.ratio + 63) / 64
		s.Pool.Run(s.n, (*compressedAll)(a))
	}
	if err := a.latest(latest, nil, w.sums); err != nil {
		return err
	}
	w.attn.RunSome(s.Pool, blocks.KV, w.more, w.q, nil, seen[:s.n*w.words], w.sumM, s.n)
	s.Pool.Run(s.n, (*compressedMerge)(a))
	return nil
}

// compressedQuery norms what queries are made of, a task of the pool with a token a
// part.
type compressedQuery compressed

// Do implements pool.Task.
func (a *compressedQuery) Do(_, t int) {
	w := a.scratch
	vec.RMSNormHeads(w.qa[t*a.qRank:][:a.qRank], a.qaNorm.F32, a.s.eps)
	prepare(w.qaActs, a.s.Numerics, w.qa, t, t+1, a.queries...)
}

// turnEnds turns the last entries of each vector of x, of dim entries, by a position's
// angles.
func (r *rotary) turnEnds(x []float32, dim int, row []float32) {
	for from := dim - r.Dims(); from < len(x); from += dim {
		r.Apply(x[from:][:r.Dims()], r.Dims(), row)
	}
}

// compressedTurn norms and turns a token's queries and key, a task of the pool.
type compressedTurn compressed

// Do implements pool.Task.
func (a *compressedTurn) Do(_, t int) {
	w, row, wide := a.scratch, a.turn.row(t), a.heads*a.dim
	q, k := w.q[t*wide:][:wide], w.kv[t*a.dim:][:a.dim]
	vec.RMSNormHeads(q, w.ones, a.s.eps)
	a.turn.turnEnds(q, a.dim, row)
	vec.RMSNormHeads(k, a.kvNorm.F32, a.s.eps)
	a.turn.turnEnds(k, a.dim, row)
	back := w.back[t*len(row):][:len(row)]
	copy(back, row)
	vec.Scale(back[len(row)/2:], -1) // the sines
	if a.index.top > 0 {
		x := a.chosen
		a.turn.turnEnds(x.queries[t*x.heads*x.dim:][:x.heads*x.dim], x.dim, row)
		vec.Scale(x.weights[t*x.heads:][:x.heads], float32(1/math.Sqrt(float64(x.heads*x.dim))))
		x.prepare(t)
	}
}

// compressedAll marks every summary that is there for a token, a task of the pool.
type compressedAll compressed

// Do implements pool.Task.
func (a *compressedAll) Do(_, t int) {
	seen := a.scratch.seen[t*a.scratch.words:][:a.scratch.words]
	clear(seen)
	for b := range (a.s.pos + t + 1) / a.ratio {
		seen[b/64] |= 1 << (b % 64)
	}
}

// compressedMerge joins what a token has from the latest keys and from the summaries, a
// task of the pool.
type compressedMerge compressed

// Do implements pool.Task.
func (a *compressedMerge) Do(_, t int) {
	w := a.scratch
	for h := range a.heads {
		at := t*a.heads + h
		attn.Merge(w.out[at*a.dim:][:a.dim], w.sums[2*at:][:2], w.more[at*a.dim:][:a.dim], w.sumM[2*at:][:2], a.sinks.F32[h])
	}
}

// compressedOut turns a token's outputs back, since values were turned as keys, a task
// of the pool.
type compressedOut compressed

// Do implements pool.Task.
func (a *compressedOut) Do(_, t int) {
	w, wide, angles := a.scratch, a.heads*a.dim, a.turn.Dims()
	a.turn.turnEnds(w.out[t*wide:][:wide], a.dim, w.back[t*angles:][:angles])
	prepare(w.groupActs, a.s.Numerics, w.out, t*a.groups, (t+1)*a.groups, a.groupIn...)
}

// compressedShort prepares the groups' outputs, a task of the pool.
type compressedShort compressed

// Do implements pool.Task.
func (a *compressedShort) Do(_, t int) {
	prepare(a.scratch.shortActs, a.s.Numerics, a.scratch.short, t, t+1, a.groupW...)
}
