package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// hyperShape is the shape of the streams' mixers.
type hyperShape struct {
	streams, embd, rank int
}

// hyper is a mixer of low rank: each stream is normed, gated entry by entry by what all
// of them say, and their mean is the block's input. The block's output is added to each
// stream with a weight that all of them say, too.
type hyper struct {
	hyperShape
	norm     *Weight // [streams*embd]
	down, up *Weight // [streams*embd x rank], [rank x streams*embd]
	inject   *Weight // [streams*embd x streams]; nil: nothing is given back
	wide     []*Weight
	low      []*Weight

	s       *stream
	scratch *hyperScratch

	// the step in progress
	first  int
	inputs []*Weight
}

// hyperScratch is the memory of a step, for the largest batch.
type hyperScratch struct {
	normed, gate []float32    // [n x streams*embd]
	low          []float32    // [n x rank]
	inject       []float32    // [n x streams]
	acts         *kernel.Acts // of normed
	lowActs      *kernel.Acts
}

func (w *hyperScratch) bytes() int64 {
	return int64(len(w.normed)+len(w.gate)+len(w.low)+len(w.inject))*4 + w.acts.Bytes() + w.lowActs.Bytes()
}

// hyper returns the mixer whose tensors' names begin with prefix; gives says that it
// gives a block's output back.
func (l *loader) hyper(prefix string, shape hyperShape, gives bool) *hyper {
	all := shape.streams * shape.embd
	h := &hyper{hyperShape: shape, norm: l.vector(prefix+"_norm.weight", all), down: l.matrix(prefix+"_down", all, shape.rank),
		up: l.matrix(prefix+"_up", shape.rank, all)}
	h.wide, h.low = []*Weight{h.down}, []*Weight{h.up}
	if gives {
		h.inject = l.matrix(prefix+"_inject", all, shape.streams)
		h.wide = append(h.wide, h.inject)
	}
	return h
}

func (h *hyper) prepare(s *stream) (err error) {
	h.s = s
	h.scratch, err = share(s, h.hyperShape, func() (*hyperScratch, error) {
		n, all := s.max, h.streams*h.embd
		return &hyperScratch{normed: make([]float32, n*all), gate: make([]float32, n*all), low: make([]float32, n*h.rank), inject: make([]float32, n*h.streams),
			acts: kernel.NewActs(n, all), lowActs: kernel.NewActs(n, h.rank)}, nil
	})
	return err
}

func (h *hyper) mix(s *stream, first int, inputs []*Weight) {
	w, all, n := h.scratch, h.streams*h.embd, s.n-first
	h.first, h.inputs = first, inputs
	w.acts.Reset(n, all)
	s.Pool.Run(n, (*hyperNorm)(h))
	if h.inject != nil {
		s.linear.run(s.Compute, w.acts, product{h.down, w.low, h.rank}, product{h.inject, w.inject, h.streams})
	} else {
		s.linear.run(s.Compute, w.acts, product{h.down, w.low, h.rank})
	}
	w.lowActs.Reset(n, h.rank)
	s.Pool.Run(n, (*hyperLow)(h))
	s.linear.run(s.Compute, w.lowActs, product{h.up, w.gate, all})
	s.acts.Reset(n, s.embd)
	s.Pool.Run(n, (*hyperOut)(h))
}

func (h *hyper) give(s *stream, t int, y []float32) {
	for i, a := range h.scratch.inject[t*h.streams:][:h.streams] {
		vec.AddScaled(s.x[(t*h.streams+i)*h.embd:][:h.embd], y, a)
	}
}

// normStreams norms each stream of a row on its own.
func normStreams(dst, x, w []float32, embd int, eps float32) {
	for i := 0; i < len(x); i += embd {
		vec.RMSNorm(dst[i:][:embd], x[i:][:embd], w[i:][:embd], eps)
	}
}

// hyperNorm norms a token's streams, a task of the pool.
type hyperNorm hyper

// Do implements pool.Task.
func (h *hyperNorm) Do(_, t int) {
	w, all := h.scratch, h.streams*h.embd
	normStreams(w.normed[t*all:][:all], h.s.x[(h.first+t)*all:][:all], h.norm.F32, h.embd, h.s.eps)
	prepare(w.acts, h.s.Numerics, w.normed, t, t+1, h.wide...)
}

// hyperLow works on a token's vector of low rank, a task of the pool.
type hyperLow hyper

// Do implements pool.Task.
func (h *hyperLow) Do(_, t int) {
	w := h.scratch
	low, part := w.low[t*h.rank:][:h.rank], 1/float32(h.streams)
	vec.Scale(low, part)
	vec.Silu(low)
	prepare(w.lowActs, h.s.Numerics, w.low, t, t+1, h.low...)
	if h.inject != nil {
		inject := w.inject[t*h.streams:][:h.streams]
		for i, x := range inject {
			inject[i] = 2 * vec.Sigmoid32(x*part)
		}
	}
}

// hyperOut makes a token's input of the block, a task of the pool.
type hyperOut hyper

// Do implements pool.Task.
func (h *hyperOut) Do(_, t int) {
	w, s, all := h.scratch, h.s, h.streams*h.embd
	gated := w.gate[t*all:][:all]
	vec.SigmoidMul(gated, gated, w.normed[t*all:][:all])
	y := s.y[t*s.embd:][:s.embd]
	copy(y, gated)
	for i := h.embd; i < all; i += h.embd {
		vec.Add(y, gated[i:][:h.embd])
	}
	vec.Scale(y, 1/float32(h.streams))
	prepare(s.acts, s.Numerics, s.y, t, t+1, h.inputs...)
}
