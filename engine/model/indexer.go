package model

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
)

// indexShape is the shape of an indexer, which chooses the keys that a token attends
// to. It has heads of its own, with one key for all of them: a key's score is the sum
// over the heads of what a head gives it, where that is positive, times the head's
// weight for the token.
type indexShape struct {
	heads, dim int
	top        int // keys that a token sees, at most
	every      int // positions that a key stands for; it is there once the last of them is
}

// indexScratch is the memory of a step, for the largest batch. What was chosen last
// stays in it, for layers that see what an earlier one has chosen.
type indexScratch struct {
	indexShape
	queries  []float32       // [n x heads*dim]
	weights  []float32       // [n x heads]
	acts     *kernel.Acts    // [n*heads], of queries
	scores   []float32       // [n x keys]
	mine     [][]float32     // by worker: products of a token's heads with some keys, then scores in order
	matrices []kernel.Matrix // by worker: some keys
	rows     []int32         // 0, 1, 2, ...: numbers of the queries
	seen     []uint64        // [n x words]
	keys     int             // that the scratch has room for
	words    int             // of a token, in the batch

	// the step in progress
	s     *stream
	cache *indexKeys
	first int // tokens before the batch
}

// indexPart is how many keys a part of the job scores.
const indexPart = 1024

func newIndexScratch(shape indexShape, n, ctx, workers int) *indexScratch {
	keys := ctx / shape.every
	x := &indexScratch{indexShape: shape, keys: keys, queries: make([]float32, n*shape.heads*shape.dim), weights: make([]float32, n*shape.heads),
		acts: kernel.NewActs(n*shape.heads, shape.dim), seen: make([]uint64, n*(keys/64+1)), rows: make([]int32, n*shape.heads)}
	for i := range x.rows {
		x.rows[i] = int32(i)
	}
	if keys > shape.top { // else everything is seen, and nothing scored
		x.scores = make([]float32, n*keys)
		for range workers {
			x.mine = append(x.mine, make([]float32, max(shape.heads*indexPart, keys)))
		}
		x.matrices = make([]kernel.Matrix, workers)
	}
	return x
}

func (x *indexScratch) bytes() int64 {
	n := int64(len(x.queries)+len(x.weights)+len(x.scores)+len(x.rows)+2*len(x.seen)) * 4
	for _, m := range x.mine {
		n += int64(len(m)) * 4
	}
	return n + x.acts.Bytes()
}

// visible returns how many keys the batch's token t may choose from.
func (x *indexScratch) visible(t int) int { return (x.first + t + 1) / x.every }

// begin starts a batch: queries are to be filled in.
func (x *indexScratch) begin(s *stream, cache *indexKeys) {
	x.s, x.cache, x.first = s, cache, s.pos
	x.words = (x.visible(s.n-1) + 63) / 64
	x.acts.Reset(s.n*x.heads, x.dim)
}

// prepare brings the queries of token t into the form that the keys want.
func (x *indexScratch) prepare(t int) {
	x.acts.Prepare(x.cache.form(x.s.Numerics), x.queries, x.dim, t*x.heads, (t+1)*x.heads)
}

// choose fills seen. The keys of the whole batch must be there.
func (x *indexScratch) choose() {
	if all := x.visible(x.s.n - 1); all > x.top {
		x.s.Pool.Run(x.s.n*((all+indexPart-1)/indexPart), (*indexScores)(x))
	}
	x.s.Pool.Run(x.s.n, (*indexChoice)(x))
}

// indexScores scores keys, a task of the pool with some keys of a token a part.
type indexScores indexScratch

// Do implements pool.Task.
func (x *indexScores) Do(worker, i int) {
	all := (*indexScratch)(x).visible(x.s.n - 1)
	parts := (all + indexPart - 1) / indexPart
	t, from := i/parts, i%parts*indexPart
	to := min(from+indexPart, (*indexScratch)(x).visible(t))
	if from >= to || (*indexScratch)(x).visible(t) <= x.top {
		return
	}
	// The products lie [heads x indexPart]: MatMul's rows are the keys.
	products, keys := x.mine[worker], &x.matrices[worker]
	*keys = x.cache.matrix(from, to)
	kernel.MatMul(products, indexPart, keys, 0, to-from, x.acts, x.cache.form(x.s.Numerics), x.rows[t*x.heads:][:x.heads])
	scores := x.scores[t*x.keys+from:][:to-from]
	clear(scores)
	for h, w := range x.weights[t*x.heads:][:x.heads] {
		for j, p := range products[h*indexPart:][:to-from] {
			scores[j] += float32(w * max(p, 0))
		}
	}
}

// indexChoice chooses a token's keys, a task of the pool.
type indexChoice indexScratch

// Do implements pool.Task.
func (x *indexChoice) Do(worker, t int) {
	seen, n := x.seen[t*x.words:][:x.words], (*indexScratch)(x).visible(t)
	clear(seen)
	if n <= x.top {
		for j := range n {
			seen[j/64] |= 1 << (j % 64)
		}
		return
	}
	scores := x.scores[t*x.keys:][:n]
	order := x.mine[worker][:n]
	copy(order, scores)
	least := nthLargest(order, x.top-1)
	left := x.top
	for j, s := range scores {
		if s > least {
			seen[j/64] |= 1 << (j % 64)
			left--
		}
	}
	for j, s := range scores { // of equal ones the first
		if s == least && left > 0 {
			seen[j/64] |= 1 << (j % 64)
			left--
		}
	}
}

// nthLargest returns the number that n others are not smaller than, and reorders x.
func nthLargest(x []float32, n int) float32 {
	lo, hi := 0, len(x)-1
	for lo < hi {
		pivot := x[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for i < hi && x[i] > pivot {
				i++
			}
			for j > lo && x[j] < pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return x[n]
		}
	}
	return x[lo]
}

// indexSpec is the memory of an indexer: a key for every so many positions.
type indexSpec struct {
	dim, every, ctx int
	half            bool // in half precision
}

func (x indexSpec) rowBytes() int {
	if x.half {
		return 2 * x.dim
	}
	return 4 * x.dim
}

// Bytes implements layerSpec.
func (x indexSpec) Bytes() (int64, error) {
	n := int64(x.ctx/x.every) + 1
	if x.dim > 1<<16 || n > 1<<31 {
		return 0, fmt.Errorf("an indexer's %d keys of %d entries are out of range", n, x.dim)
	}
	return n * int64(x.rowBytes()), nil
}

func (x indexSpec) open(mem []byte) (layerState, error) {
	return &indexKeys{indexSpec: x, mem: mem}, nil
}

// indexKeys is an indexer's keys. It goes back to any position.
type indexKeys struct {
	indexSpec
	mem []byte
	n   int // positions
}

func (x *indexKeys) reaches(int) bool         { return true }
func (x *indexKeys) truncate(n int)           { x.n = min(n, x.n) }
func (x *indexKeys) markBytes() int           { return 0 }
func (x *indexKeys) savedBytes(n int) int     { return n / x.every * x.rowBytes() }
func (x *indexKeys) save(dst []byte)          { copy(dst, x.mem) }
func (x *indexKeys) load(src []byte, n int)   { copy(x.mem, src); x.n = n }
func (x *indexKeys) advance(n int)            { x.n = n }
func (x *indexKeys) put(i int, key []float32) { x.write(x.mem[i*x.rowBytes():][:x.rowBytes()], key) }

func (x *indexKeys) write(to []byte, key []float32) {
	if x.half {
		vec.ToHalf(unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(to))), len(key)), key)
		return
	}
	copy(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(to))), len(key)), key)
}

// matrix returns keys from to to-1 as the rows of a matrix.
func (x *indexKeys) matrix(from, to int) kernel.Matrix {
	t := quant.F32
	if x.half {
		t = quant.F16
	}
	return kernel.Matrix{Type: t, Cols: x.dim, Rows: to - from, Data: x.mem[from*x.rowBytes() : to*x.rowBytes()]}
}

func (x *indexKeys) form(num kernel.Numerics) kernel.Form {
	if x.half && num == kernel.Fast {
		return kernel.FormF16
	}
	return kernel.FormF32
}

// indexer chooses the keys of latent attention (DeepSeek-V3.2): it reads what queries
// are made of, and makes a key of its own of each token.
type indexer struct {
	indexShape
	q            *Weight // [qRank x heads*dim]
	k            *Weight // [embd x dim]
	kNorm, kBias *Weight // [dim]
	weights      *Weight // [embd x heads]

	scratch *indexScratch
	key     []float32 // [n x dim]
	keys    *indexKeys
}

// indexer returns that of a layer.
func (l *loader) indexer(layer, embd, qRank int, shape indexShape) *indexer {
	name := l.names(layer)
	return &indexer{indexShape: shape, q: l.matrix(name("indexer.attn_q_b"), qRank, shape.heads*shape.dim), k: l.matrix(name("indexer.attn_k"), embd, shape.dim),
		kNorm: l.vector(name("indexer.k_norm.weight"), shape.dim), kBias: l.vector(name("indexer.k_norm.bias"), shape.dim),
		weights: l.matrix(name("indexer.proj"), embd, shape.heads)}
}

// indexShape reads the shape that the indexers of a model have in common.
func (l *loader) indexShape(every int) indexShape {
	return indexShape{heads: l.key("attention.indexer.head_count"), dim: l.key("attention.indexer.key_length"), top: l.key("attention.indexer.top_k"), every: every}
}

func (x *indexer) spec(ctx int, kv attn.KVType) layerSpec {
	return indexSpec{dim: x.dim, every: x.every, ctx: ctx, half: kv != attn.KVF32}
}

// indexKeyScratch is the keys of the largest batch before they are stored.
type indexKeyScratch struct{ key []float32 }

func (k *indexKeyScratch) bytes() int64 { return int64(len(k.key)) * 4 }

func (x *indexer) prepare(s *stream, w *indexScratch) {
	x.scratch = w
	type shape struct{ dim int }
	k, _ := share(s, shape{x.dim}, func() (*indexKeyScratch, error) { return &indexKeyScratch{make([]float32, s.max*x.dim)}, nil })
	x.key = k.key
}

// token turns token t's queries and key, by the row of its position's angles, scales
// its weights, and stores the key.
func (x *indexer) token(s *stream, turn *rotary, t int) {
	w, row := x.scratch, turn.row(t)
	turn.Apply(w.queries[t*x.heads*x.dim:][:x.heads*x.dim], x.dim, row)
	key := x.key[t*x.dim:][:x.dim]
	vec.LayerNorm(key, x.kNorm.F32, x.kBias.F32, layerNormEps)
	turn.Apply(key, x.dim, row)
	vec.Scale(w.weights[t*x.heads:][:x.heads], float32(1/math.Sqrt(float64(x.heads*x.dim))))
	w.prepare(t)
	x.keys.put(s.pos+t, key)
}

// layerNormEps keeps a key of equal entries from being divided by 0.
const layerNormEps = 1e-6

// indexedLayers returns which layers have an indexer; the others see what the last one
// before them has chosen. A file that does not say has one in every layer, or with a
// context of a million in the first two and every fourth.
func (l *loader) indexedLayers(layers int) []bool {
	list := make([]bool, layers)
	if l.file.Meta.Has(l.prefix + "attention.indexer.types") {
		for i, kind := range l.perLayer("attention.indexer.types", layers, 0) {
			list[i] = kind == 1
		}
	} else {
		few := l.keyOr("context_length", 0) >= 1<<20
		for i := range list {
			list[i] = !few || i < 2 || (i-2)%4 == 0
		}
	}
	if !slices.Contains(list[:min(1, layers)], true) {
		l.fail(fmt.Errorf("%sattention.indexer.types gives the first layer no indexer, and none comes before it", l.prefix))
	}
	return list
}
