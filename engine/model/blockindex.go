package model

import (
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// blockIndex chooses the keys of attention by blocks of neighbours: a block has one key,
// made of the mean of its tokens', and is seen whole or not at all. What follows the
// last whole block is always seen.
type blockIndex struct {
	indexShape           // top and every are those of blocks
	q, k         *Weight // [embd x heads*dim], [embd x dim]
	qNorm, kNorm *Weight // [dim]

	blocks *indexKeys
	open   *recurrentLayer // the last tokens' own keys
	*blockScratch
	chosen *indexScratch
}

// blockScratch is the memory of a step, for the largest batch.
type blockScratch struct {
	key    []float32 // [n x dim] the tokens' own keys
	mean   []float32 // [dim] of a block
	angles []float32 // of one position
	seen   []uint64  // [n x words] by key
	words  int       // of a token, in the batch
}

func (b *blockScratch) bytes() int64 {
	return int64(len(b.key)+len(b.mean)+len(b.angles)+2*len(b.seen)) * 4
}

// blockIndex returns that of a layer, for blocks of ratio positions.
func (l *loader) blockIndex(layer, embd, ratio int) *blockIndex {
	name, shape := l.names(layer), l.indexShape(ratio)
	shape.top /= ratio
	return &blockIndex{indexShape: shape, q: l.matrix(name("indexer.q_proj"), embd, shape.heads*shape.dim), k: l.matrix(name("indexer.k_proj"), embd, shape.dim),
		qNorm: l.vector(name("indexer.q_norm.weight"), shape.dim), kNorm: l.vector(name("indexer.k_norm.weight"), shape.dim)}
}

// specs returns the shapes of its memories.
func (x *blockIndex) specs(ctx int, kv attn.KVType) []layerSpec {
	return []layerSpec{indexSpec{dim: x.dim, every: x.every, ctx: ctx, half: kv != attn.KVF32}, recurrentSpec{rows: max(1, x.every-1), channels: x.dim}}
}

func (x *blockIndex) prepare(s *stream, turn *rotary) (err error) {
	if x.chosen, err = share(s, x.indexShape, func() (*indexScratch, error) {
		return newIndexScratch(x.indexShape, s.max, s.ctx, s.Pool.Workers()), nil
	}); err != nil {
		return err
	}
	type key struct{ dim, every int }
	x.blockScratch, err = share(s, key{x.dim, x.every}, func() (*blockScratch, error) {
		return &blockScratch{key: make([]float32, s.max*x.dim), mean: make([]float32, x.dim), angles: make([]float32, turn.TableLen(1)), seen: make([]uint64, s.max*((s.ctx+63)/64))}, nil
	})
	return err
}

// token turns token t's queries, by the row of its position's angles.
func (x *blockIndex) token(s *stream, turn *rotary, t int) {
	w := x.chosen
	queries := w.queries[t*x.heads*x.dim:][:x.heads*x.dim]
	vec.RMSNormHeads(queries, x.qNorm.F32, s.eps)
	turn.Apply(queries, x.dim, turn.row(t))
	weights := w.weights[t*x.heads:][:x.heads]
	for h := range weights {
		weights[h] = 1
	}
	w.prepare(t)
}

// choose makes the keys of the blocks that the batch completes, and fills seen.
func (x *blockIndex) choose(s *stream, turn *rotary) {
	end := s.pos + s.n
	own := func(pos int) []float32 {
		if pos < s.pos {
			return x.open.row(pos)
		}
		return x.key[(pos-s.pos)*x.dim:][:x.dim]
	}
	for b := s.pos / x.every; (b+1)*x.every <= end; b++ {
		first := b * x.every
		clear(x.mean)
		for i := range x.every {
			vec.Add(x.mean, own(first+i))
		}
		vec.Scale(x.mean, 1/float32(x.every))
		vec.RMSNorm(x.mean, x.mean, x.kNorm.F32, s.eps)
		turn.Table(x.angles, first, 1)
		turn.Apply(x.mean, x.dim, x.angles)
		x.blocks.put(b, x.mean)
	}
	for pos := max(s.pos, end-x.open.rows); pos < end; pos++ {
		copy(x.open.row(pos), own(pos))
	}
	x.blocks.advance(end)
	x.chosen.choose()
	x.words = (end + 63) / 64
	s.Pool.Run(s.n, (*blockSeen)(x))
}

// blockSeen turns a token's blocks into keys, a task of the pool.
type blockSeen blockIndex

// Do implements pool.Task.
func (x *blockSeen) Do(_, t int) {
	w := x.chosen
	seen, blocks := x.seen[t*x.words:][:x.words], w.seen[t*w.words:][:w.words]
	clear(seen)
	end := w.first + t + 1
	whole := end / x.every
	set := func(from, to int) {
		for j := from; j < to; j++ {
			seen[j/64] |= 1 << (j % 64)
		}
	}
	for b := range whole {
		if blocks[b/64]>>(b%64)&1 != 0 {
			set(b*x.every, (b+1)*x.every)
		}
	}
	set(whole*x.every, end)
}
