package model

import (
	"fmt"

	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// summary makes one key of every block of positions: entry by entry a weighted mean of
// what the positions offer, where the weights are a softmax over them of what they ask
// for and of their place in the block.
type summary struct {
	dim, ratio int
	// overlap makes a key of two blocks: of the first half of what the positions of the
	// block before offer, and of the second half of what its own do.
	overlap bool
	kv      *Weight // [embd x width]
	gate    *Weight // [embd x width]
	place   *Weight // [width x ratio]
	norm    *Weight // [dim]

	turn    *rotary
	scratch *summaryScratch
}

// summaryScratch is the memory of a step, for the largest batch.
type summaryScratch struct {
	u, gate []float32 // [n x width] what the batch's positions offer and ask for
	key     []float32 // [dim]
	weights []float32 // [positions of a key]
	angles  []float32 // of one position
}

func (w *summaryScratch) bytes() int64 {
	return int64(len(w.u)+len(w.gate)+len(w.key)+len(w.weights)+len(w.angles)) * 4
}

// summary returns the one whose tensors' names begin with prefix.
func (l *loader) summary(prefix string, embd, dim, ratio int, overlap bool) *summary {
	c := &summary{dim: dim, ratio: ratio, overlap: overlap}
	c.kv, c.gate = l.matrix(prefix+"_kv", embd, c.width()), l.matrix(prefix+"_gate", embd, c.width())
	c.place, c.norm = l.numbers(prefix+"_ape.weight", c.width(), ratio), l.vector(prefix+"_norm.weight", dim)
	return c
}

// width returns how many numbers a position offers.
func (c *summary) width() int {
	if c.overlap {
		return 2 * c.dim
	}
	return c.dim
}

// open returns the memory of the positions that later keys need.
func (c *summary) open() layerSpec {
	rows := c.ratio - 1
	if c.overlap {
		rows += c.ratio
	}
	return recurrentSpec{rows: max(1, rows), channels: 2 * c.width()}
}

func (c *summary) prepare(s *stream, turn *rotary) (err error) {
	c.turn = turn
	type shape struct{ dim, width, ratio, angles int }
	c.scratch, err = share(s, shape{c.dim, c.width(), c.ratio, turn.Dims()}, func() (*summaryScratch, error) {
		return &summaryScratch{u: make([]float32, s.max*c.width()), gate: make([]float32, s.max*c.width()), key: make([]float32, c.dim),
			weights: make([]float32, 2*c.ratio), angles: make([]float32, turn.TableLen(1))}, nil
	})
	return err
}

// summarise gives put the key of each block that the batch completes, and keeps what
// later ones need.
func (c *summary) summarise(s *stream, open *recurrentLayer, put func(b int, key []float32) error) error {
	w, width, end := c.scratch, c.width(), s.pos+s.n
	for t := range s.n { // once for all: a position's place is the same for every key
		vec.Add(w.gate[t*width:][:width], c.place.F32[(s.pos+t)%c.ratio*width:][:width])
	}
	row := func(pos int) (u, gate []float32) {
		if pos < s.pos {
			r := open.row(pos)
			return r[:width], r[width:]
		}
		t := pos - s.pos
		return w.u[t*width:][:width], w.gate[t*width:][:width]
	}
	for b := s.pos / c.ratio; (b+1)*c.ratio <= end; b++ {
		first, n := b*c.ratio, c.ratio
		if c.overlap && b > 0 {
			first, n = first-c.ratio, 2*n
		}
		for i := range c.dim {
			weights := w.weights[:n]
			for j := range weights {
				_, gate := row(first + j)
				weights[j] = gate[c.half(first+j, b)+i]
			}
			vec.Softmax(weights)
			sum := float32(0)
			for j, x := range weights {
				u, _ := row(first + j)
				sum += float32(x * u[c.half(first+j, b)+i])
			}
			w.key[i] = sum
		}
		vec.RMSNormHeads(w.key, c.norm.F32, s.eps)
		c.turn.Table(w.angles, b*c.ratio, 1)
		c.turn.turnEnds(w.key, c.dim, w.angles)
		if err := put(b, w.key); err != nil {
			return err
		}
	}
	for pos := max(s.pos, end-open.rows); pos < end; pos++ {
		u, gate := row(pos)
		to := open.row(pos)
		copy(to[copy(to, u):], gate)
	}
	return nil
}

// half returns where in a position's numbers those begin that it offers to block b's
// key.
func (c *summary) half(pos, b int) int {
	if c.overlap && pos >= b*c.ratio {
		return c.dim
	}
	return 0
}

// summarySpec is the memory of the summaries: a cache with a key for every so many
// positions.
type summarySpec struct {
	attn.KVSpec
	ratio int
}

func (x summarySpec) open(mem []byte) (layerState, error) {
	kv, err := attn.NewKV(x.KVSpec, mem)
	if err != nil {
		return nil, fmt.Errorf("summaries of %d positions: %w", x.ratio, err)
	}
	return summaryLayer{kv, x.ratio}, nil
}

// summaryLayer is that memory. It goes back to any position.
type summaryLayer struct {
	*attn.KV
	ratio int
}

func (x summaryLayer) reaches(int) bool       { return true }
func (x summaryLayer) truncate(n int)         { x.Truncate(n / x.ratio) }
func (x summaryLayer) markBytes() int         { return 0 }
func (x summaryLayer) savedBytes(n int) int   { return x.SavedBytes(n / x.ratio) }
func (x summaryLayer) save(dst []byte)        { x.Save(dst) }
func (x summaryLayer) load(src []byte, n int) { x.Load(src, n/x.ratio) }
