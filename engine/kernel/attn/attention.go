// Package attn is attention over a KV cache, and that cache.
package attn

import (
	"fmt"
	"math"
	"sync/atomic"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/pool"
)

const (
	// attnSpan is how many positions one partial result covers when the keys of
	// a query are spread over workers. Every query is computed in such spans,
	// spread or not, so that its bits do not depend on it.
	attnSpan = 512
	// attnRows is how many rows (a query head of a token) a task has at most:
	// they share the loads of keys and values.
	attnRows = 32
	// attnTile is how many rows a kernel takes at once.
	attnTile = 4
)

var negInf = float32(math.Inf(-1))

// Spec is the shape of an attention step.
type Spec struct {
	Heads   int     // query heads, a multiple of KVHeads
	KVHeads int     // heads of the cache
	KeyDim  int     // entries of a query and of a key
	ValDim  int     // entries of a value
	Scale   float32 // of the scores, positive; usually 1/sqrt(KeyDim)
}

// Attn computes causal attention over a KV cache. It holds the scratch for one
// call, so one Attn serves all layers of its shape.
//
// For every query the scores of a block of 64 keys are computed at once, each
// one a sum over the entries in order; the block's weights relative to the
// largest score so far, and their sum, in fixed partial sums; then the values are
// added, each entry key after key. Blocks join in order into spans, and spans in
// order into the result, by rescaling to the larger maximum (Milakov and Gimelshein, arXiv 1805.02867). Nothing of this depends
// on the batch, the number of workers or the width of a vector.
//
// With a F16 or Q8_0 cache, queries and weights are rounded to half precision,
// as llama.cpp does. Then every product with a key or value is exact in
// float32, so a fused multiply-add gives the same bits as a product and a sum.
type Attn struct {
	Spec
	set   isa.Set // of the kernels
	group int     // query heads that share a KV head

	work    []attnWork // one per worker
	partial []float32  // results of spans, [KVHeads x rows x spans x (valStride+2)]
	left    []atomic.Int32

	// The call.
	kv      *KV
	out, q  []float32
	sinks   []float32
	seen    []uint64 // [n x words] which keys a query sees; nil: all up to its own
	words   int
	sums    []float32 // [n x Heads x 2] if wanted
	pos0    int
	span0   int // the first span that any query sees
	rows    int // rows of a KV head: tokens x group
	perTask int
	tasks   int // groups of rows of a KV head
	spans   int
	split   bool
}

// attnWork is one worker's scratch. A row is a query head of a token.
type attnWork struct {
	q     []float32 // [attnRows x KeyDim]
	s     []float32 // [attnRows x 64] scores, then weights
	w     []float32 // [attnRows x 64] weights times scales (Q8_0)
	acc   []float32 // [attnRows x valStride] weighted sum of the span's values
	total []float32 // [attnRows x valStride] of all spans so far

	m, l   [attnRows]float32 // maximum score and sum of weights of the span
	tm, tl [attnRows]float32 // of all spans so far
}

// New returns an Attn whose calls run on a pool of the given number of
// workers.
func New(s Spec, workers int) (*Attn, error) {
	if s.Heads < 1 || s.KVHeads < 1 || s.Heads%s.KVHeads != 0 {
		return nil, fmt.Errorf("attention with %d heads over %d KV heads: want a multiple", s.Heads, s.KVHeads)
	}
	if s.KeyDim < 1 || s.ValDim < 1 || s.KeyDim > 1<<16 || s.ValDim > 1<<16 {
		return nil, fmt.Errorf("attention with keys of %d and values of %d entries: out of range", s.KeyDim, s.ValDim)
	}
	if !(s.Scale > 0) || math.IsInf(float64(s.Scale), 0) {
		return nil, fmt.Errorf("attention with scale %v: want a positive number", s.Scale)
	}
	a := &Attn{Spec: s, set: isa.Best(), group: s.Heads / s.KVHeads, work: make([]attnWork, max(workers, 1))}
	stride := roundUp(s.ValDim, panel)
	for i := range a.work {
		w := &a.work[i]
		w.q = make([]float32, attnRows*s.KeyDim)
		w.s = make([]float32, attnRows*kvBlock)
		w.w = make([]float32, attnRows*kvBlock)
		w.acc = make([]float32, attnRows*stride)
		w.total = make([]float32, attnRows*stride)
	}
	return a, nil
}

// Reserve makes room to spread the keys of single tokens over the workers in
// contexts of up to ctx positions, so that Run allocates nothing. Without it
// such a Run works on whole contexts.
func (a *Attn) Reserve(ctx int) {
	spans := (ctx + attnSpan - 1) / attnSpan
	if spans < 2 || len(a.work) < 2 {
		return
	}
	a.partial = make([]float32, a.Heads*spans*(roundUp(a.ValDim, panel)+2))
	a.left = make([]atomic.Int32, a.Heads)
}

// Bytes returns the size of the scratch.
func (a *Attn) Bytes() int64 {
	n := len(a.partial)
	for i := range a.work {
		w := &a.work[i]
		n += len(w.q) + len(w.s) + len(w.w) + len(w.acc) + len(w.total)
	}
	return int64(n) * 4
}

// Run computes out [n x Heads x ValDim] for the queries q [n x Heads x KeyDim]
// of positions pos0 to pos0+n-1, whose keys and values are in kv already, on the
// workers of p. sinks, one for each of the heads if not nil, is a score that takes
// part in the softmax and has no value. n is at most the cache's Batch.
func (a *Attn) Run(p *pool.Pool, kv *KV, out, q, sinks []float32, n, pos0 int) {
	a.check(p, kv, sinks, n, pos0)
	a.run(p, kv, out, q, sinks, nil, nil, n, pos0)
}

// check panics if a call does not fit.
func (a *Attn) check(p *pool.Pool, kv *KV, sinks []float32, n, pos0 int) {
	if kv.Heads != a.KVHeads || kv.KeyDim != a.KeyDim || kv.ValDim != a.ValDim || pos0 < 0 || pos0+n > kv.Len() || p.Workers() > len(a.work) {
		panic(fmt.Sprintf("attn: attention of %d queries from position %d does not fit a cache of %d x (%d, %d) with %d positions, or %d workers",
			n, pos0, kv.Heads, kv.KeyDim, kv.ValDim, kv.Len(), p.Workers()))
	}
	if sinks != nil && len(sinks) != a.Heads || n > kv.Batch() || kv.from > kv.seenFrom(pos0) {
		panic(fmt.Sprintf("attn: attention of %d queries from position %d with %d sinks, of a cache that has positions from %d on", n, pos0, len(sinks), kv.from))
	}
}

// RunSums is Run without sinks, for results that are joined with others: sums receives
// what RunSome says.
func (a *Attn) RunSums(p *pool.Pool, kv *KV, out, q, sums []float32, n, pos0 int) {
	a.check(p, kv, nil, n, pos0)
	a.run(p, kv, out, q, nil, nil, sums, n, pos0)
}

// RunSome is Run for queries that see any of the keys in the cache, which need not be
// those before them. seen [n x words] has a bit for every key, 64 keys a word. A query
// that sees none gets zeros. sums, if not nil, receives for every row of out the largest
// score and the sum of weights relative to it, so that Merge can join the results over two
// caches.
func (a *Attn) RunSome(p *pool.Pool, kv *KV, out, q, sinks []float32, seen []uint64, sums []float32, n int) {
	if kv.Heads != a.KVHeads || kv.KeyDim != a.KeyDim || kv.ValDim != a.ValDim || p.Workers() > len(a.work) || sinks != nil && len(sinks) != a.Heads ||
		n > 0 && len(seen)/n*kvBlock < kv.Len() || kv.Window > 0 && !kv.Whole {
		panic(fmt.Sprintf("attn: attention of %d queries to some keys does not fit a cache of %d x (%d, %d) with %d positions, or %d workers",
			n, kv.Heads, kv.KeyDim, kv.ValDim, kv.Len(), p.Workers()))
	}
	if kv.Len() == 0 {
		clear(out[:n*a.Heads*a.ValDim])
		for i := range n * a.Heads {
			if sums != nil {
				sums[2*i], sums[2*i+1] = negInf, 0
			}
		}
		return
	}
	a.run(p, kv, out, q, sinks, seen, sums, n, 0)
}

func (a *Attn) run(p *pool.Pool, kv *KV, out, q, sinks []float32, seen []uint64, sums []float32, n, pos0 int) {
	if n == 0 {
		return
	}
	a.seen, a.sums = seen, sums
	a.kv, a.out, a.q, a.sinks, a.pos0 = kv, out[:n*a.Heads*a.ValDim], q[:n*a.Heads*a.KeyDim], sinks, pos0
	a.rows = n * a.group
	a.span0 = kv.seenFrom(pos0) / attnSpan
	a.spans = (pos0+n+attnSpan-1)/attnSpan - a.span0
	if seen != nil {
		a.words, a.span0, a.spans = len(seen)/n, 0, (kv.Len()+attnSpan-1)/attnSpan
	}
	a.plan(p.Workers())
	if a.split {
		for i := range a.KVHeads * a.tasks {
			a.left[i].Store(int32(a.spans))
		}
		p.Run(a.KVHeads*a.tasks*a.spans, a)
	} else {
		p.Run(a.KVHeads*a.tasks, a)
	}
	a.kv, a.out, a.q, a.sinks, a.seen, a.sums = nil, nil, nil, nil, nil, nil
}

// plan decides how the work is cut. It may depend on anything: the results do
// not.
func (a *Attn) plan(workers int) {
	want := 4 * workers // tasks, so that a slow worker does not hold the others
	if workers == 1 {
		want = 1
	}
	a.perTask = min(attnRows, a.rows)
	a.tasks = (a.rows + a.perTask - 1) / a.perTask
	a.split = a.KVHeads*a.tasks < want && a.spans > 1 &&
		len(a.partial) >= a.KVHeads*a.rows*a.spans*(roundUp(a.ValDim, panel)+2)
	n := a.KVHeads
	if a.split {
		n *= a.spans
	}
	for n*a.tasks < want && a.perTask > attnTile {
		// Fewer rows share a load, but all workers have some.
		a.perTask = roundUp(a.perTask/2, attnTile)
		a.tasks = (a.rows + a.perTask - 1) / a.perTask
	}
	if a.split && a.KVHeads*a.tasks > len(a.left) {
		a.split = false
	}
}

// Do implements pool.Task.
func (a *Attn) Do(worker, i int) {
	w := &a.work[worker]
	span0, span1 := 0, a.spans
	if a.split {
		span0 = i % a.spans
		span1 = span0 + 1
		i /= a.spans
	}
	head, r0 := i/a.tasks, i%a.tasks*a.perTask
	rows := min(a.perTask, a.rows-r0)
	a.load(w, head, r0, rows)
	for r := range rows {
		w.tm[r], w.tl[r] = negInf, 0
	}
	stride := a.kv.valStride()
	clear(w.total[:rows*stride])
	for s := span0; s < span1; s++ {
		a.span(w, head, r0, rows, a.span0+s)
		if a.split {
			a.save(w, head, r0, rows, s)
		} else {
			for r := range rows {
				join(&w.tm[r], &w.tl[r], w.total[r*stride:][:stride], w.m[r], w.l[r], w.acc[r*stride:][:stride])
			}
		}
	}
	if a.split {
		if a.left[i].Add(-1) != 0 {
			return
		}
		// This was the last span to finish: all partial results are there.
		for r := range rows {
			for s := range a.spans {
				at := a.saved(head, r0+r, s)
				join(&w.tm[r], &w.tl[r], w.total[r*stride:][:stride], at[0], at[1], at[2:])
			}
		}
	}
	for r := range rows {
		inv := 1 / w.tl[r]
		if a.sinks != nil {
			inv = sunk(w.tm[r], w.tl[r], a.sinks[head*a.group+(r0+r)%a.group])
		}
		at := a.at(head, r0+r)
		out := a.out[at*a.ValDim:][:a.ValDim]
		if a.sums != nil {
			a.sums[2*at], a.sums[2*at+1] = w.tm[r], w.tl[r]
		}
		if a.seen != nil && w.tl[r] == 0 { // it sees nothing
			clear(out)
			continue
		}
		for i, v := range w.total[r*stride:][:a.ValDim] {
			out[i] = v * inv
		}
	}
}

// sunk returns the factor on a sum of values of maximum score m and weights l when
// a sink takes part: as 1/l is without.
func sunk(m, l, sink float32) float32 {
	top := max(m, sink)
	keep := vec.Exp32(m - top)
	return keep / (float32(l*keep) + vec.Exp32(sink-top))
}

// at returns the place of a row of a KV head among all query heads of the batch.
func (a *Attn) at(head, row int) int {
	return row/a.group*a.Heads + head*a.group + row%a.group
}

// saved returns the partial result of a row and span: maximum, sum, values.
func (a *Attn) saved(head, row, span int) []float32 {
	n := a.kv.valStride() + 2
	return a.partial[((head*a.rows+row)*a.spans+span)*n:][:n]
}

func (a *Attn) save(w *attnWork, head, r0, rows, span int) {
	stride := a.kv.valStride()
	for r := range rows {
		at := a.saved(head, r0+r, span)
		at[0], at[1] = w.m[r], w.l[r]
		copy(at[2:], w.acc[r*stride:][:stride])
	}
}

// load fetches the rows' queries, rounded as the cache's type wants.
func (a *Attn) load(w *attnWork, head, r0, rows int) {
	for r := range rows {
		q := a.q[a.at(head, r0+r)*a.KeyDim:][:a.KeyDim]
		to := w.q[r*a.KeyDim:][:a.KeyDim]
		if a.kv.Type == KVF32 {
			copy(to, q)
			continue
		}
		vec.RoundHalf(to, q)
	}
}

// join adds the result of a span to the total of the spans before it.
func join(tm, tl *float32, total []float32, m, l float32, acc []float32) {
	top := *tm
	if m > top {
		top = m
	}
	a, b := vec.Exp32(*tm-top), vec.Exp32(m-top)
	if m == negInf { // the row sees nothing of the span
		return
	}
	*tm = top
	*tl = float32(*tl*a) + float32(l*b)
	vec.Blend(total, acc, a, b)
}

// span computes the rows' results over one span into w.m, w.l and w.acc.
func (a *Attn) span(w *attnWork, head, r0, rows, span int) {
	kv := a.kv
	stride := kv.valStride()
	clear(w.acc[:rows*stride])
	for r := range rows {
		w.m[r], w.l[r] = negInf, 0
	}
	last := a.pos0 + (r0+rows-1)/a.group // the last row's position
	first := kv.seenFrom(a.pos0+r0/a.group) / kvBlock
	if a.seen != nil {
		first, last = 0, kv.n-1
	}
	for b := max(first, span*(attnSpan/kvBlock)); b < (span+1)*(attnSpan/kvBlock) && b*kvBlock <= last; b++ {
		base := b * kvBlock
		if a.seen != nil && !a.anySees(r0, rows, b) {
			continue
		}
		block := kv.block(head, b)
		a.scores(w, block, rows)
		for r := range rows {
			s := (*[kvBlock]float32)(w.s[r*kvBlock:])
			if a.seen != nil {
				word := a.seen[(r0+r)/a.group*a.words+b]
				if word == 0 {
					clear(s[:])
					continue
				}
				for j := range s {
					if word>>j&1 == 0 {
						s[j] = negInf
					}
				}
				a.soften(w, r, s)
				continue
			}
			pos := a.pos0 + (r0+r)/a.group
			from, to := max(kv.seenFrom(pos)-base, 0), min(pos+1-base, kvBlock) // keys of the block that the row sees
			if from >= to {
				clear(s[:])
				continue
			}
			for j := range from {
				s[j] = negInf
			}
			for j := to; j < kvBlock; j++ {
				s[j] = negInf
			}
			a.soften(w, r, s)
		}
		a.values(w, block, rows, min(kvBlock, last+1-base))
	}
}

// soften turns a row's scores of a block into weights relative to the largest so far.
func (a *Attn) soften(w *attnWork, r int, s *[kvBlock]float32) {
	m, l := vec.SoftmaxBlock(s, a.Scale, w.m[r], a.kv.Type != KVF32)
	if m != w.m[r] {
		// What was summed before is relative to the old maximum.
		f := vec.Exp32(w.m[r] - m)
		w.m[r] = m
		w.l[r] *= f
		stride := a.kv.valStride()
		vec.Rescale(w.acc[r*stride:][:stride], f)
	}
	w.l[r] += l
}

// anySees reports whether any of the rows sees a key of block b.
func (a *Attn) anySees(r0, rows, b int) bool {
	for t := r0 / a.group; t <= (r0+rows-1)/a.group; t++ {
		if a.seen[t*a.words+b] != 0 {
			return true
		}
	}
	return false
}

// Merge joins the results of one row over two caches, out and more with their sums
// [2], into out, with a sink's score if that is not -Inf.
func Merge(out, sum, more, moreSum []float32, sink float32) {
	top := max(sum[0], moreSum[0], sink)
	a, b := sum[1]*vec.Exp32(sum[0]-top), moreSum[1]*vec.Exp32(moreSum[0]-top)
	inv := 1 / (float32(a+b) + vec.Exp32(sink-top))
	vec.Blend(out, more, a*inv, b*inv)
}

// scores computes the unscaled products of all rows with the block's keys.
func (a *Attn) scores(w *attnWork, block []byte, rows int) {
	kv := a.kv
	d := kv.KeyDim
	clear(w.s[:rows*kvBlock])
	t := tile{set: a.set, m: rows, n: kvBlock, depth: d, ldd: kvBlock, lda: d, ldb: d * panel}
	switch kv.Type {
	case KVF32:
		t.f32(w.s, w.q, view[float32](block[:kv.kBytes]))
	case KVF16:
		t.f16(w.s, w.q, view[uint16](block[:kv.kBytes]))
	case KVQ8_0:
		keys, scales := view[int8](block[:kv.kBytes]), view[float32](block[kv.kBytes:kv.vOff])
		for g := 0; g*kvGroup < d; g++ {
			t.depth = min(kvGroup, d-g*kvGroup)
			clear(w.w[:rows*kvBlock])
			t.i8(w.w, w.q[g*kvGroup:], keys[g*kvGroup*panel:])
			sc := scales[g*kvBlock:][:kvBlock]
			for r := range rows {
				vec.AddProducts(w.s[r*kvBlock:][:kvBlock], w.w[r*kvBlock:][:kvBlock], sc)
			}
		}
	}
}

// values adds the block's first depth values, weighted by w.s, to w.acc.
func (a *Attn) values(w *attnWork, block []byte, rows, depth int) {
	kv := a.kv
	n := kv.valStride()
	t := tile{set: a.set, m: rows, n: n, depth: depth, ldd: n, lda: kvBlock, ldb: kvBlock * panel}
	switch kv.Type {
	case KVF32:
		t.f32(w.acc, w.s, view[float32](block[kv.vOff:]))
	case KVF16:
		t.f16(w.acc, w.s, view[uint16](block[kv.vOff:]))
	case KVQ8_0:
		vals, scales := view[int8](block[kv.vOff:kv.vsOff]), view[float32](block[kv.vsOff:])
		for g := 0; g*kvGroup < n; g++ {
			sc := scales[g*kvBlock:][:kvBlock] // of keys beyond depth it is garbage, and so is the product
			for r := range rows {
				vec.Products16(w.w[r*kvBlock:][:kvBlock], w.s[r*kvBlock:][:kvBlock], sc)
			}
			t.n = min(kvGroup, n-g*kvGroup)
			t.i8(w.acc[g*kvGroup:], w.w, vals[g*kvGroup*kvBlock:])
		}
	}
}
