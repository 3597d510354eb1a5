package model

import (
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// sinkhornShape is the shape of the mixers of a residual of several streams, and how
// they are made.
type sinkhornShape struct {
	streams, embd int
	rounds        int // in which the matrix between streams is balanced
	epsilon       float32
}

// mostStreams bounds the streams.
const mostStreams = 16

// sinkhorn mixes streams (manifold-constrained hyper-connections, arXiv 2512.24880): a
// block's input is a weighted sum of the streams, normed; its output is added to each
// with another weight; and the streams are mixed among each other by a matrix whose
// rows and columns sum to one. All weights come from what the streams hold.
type sinkhorn struct {
	sinkhornShape
	fn, base, scale *Weight // [streams*embd x outputs], [outputs], [3], or of the last mixer [1]
	norm            *Weight // [embd] of the block's input
	last            bool    // nothing is given back
	wide            []*Weight

	s       *stream
	scratch *sinkhornScratch

	// the step in progress
	first  int
	inputs []*Weight
}

// sinkhornScratch is the memory of a step, for the largest batch.
type sinkhornScratch struct {
	normed []float32    // [n x streams*embd], then what the streams become
	raw    []float32    // [n x outputs]
	post   []float32    // [n x streams]
	matrix []float32    // [n x streams x streams] from stream to stream
	ones   []float32    // [streams*embd]
	acts   *kernel.Acts // of normed
}

func (w *sinkhornScratch) bytes() int64 {
	return int64(len(w.normed)+len(w.raw)+len(w.post)+len(w.matrix)+len(w.ones))*4 + w.acts.Bytes()
}

// outputs returns how many numbers the mixer makes of a token's streams.
func (h *sinkhorn) outputs() int {
	if h.last {
		return h.streams
	}
	return (2 + h.streams) * h.streams
}

// sinkhornShape reads the shape that the mixers of a model have in common.
func (l *loader) sinkhornShape(embd int) sinkhornShape {
	h := sinkhornShape{streams: l.key("hyper_connection.count"), embd: embd, rounds: l.key("hyper_connection.sinkhorn_iterations"),
		epsilon: l.epsilon("hyper_connection.epsilon")}
	if h.streams > mostStreams || h.rounds > 1000 {
		l.fail(fmt.Errorf("%shyper_connection.count is %d and %[1]shyper_connection.sinkhorn_iterations %[3]d: at most %d and 1000 are known",
			l.prefix, h.streams, h.rounds, mostStreams))
		h.streams = 1
	}
	return h
}

// sinkhorn returns the mixer whose tensors' names begin with prefix, and the norm of
// what it makes; last says that it gives nothing back.
func (l *loader) sinkhorn(prefix, norm string, shape sinkhornShape, last bool) *sinkhorn {
	h := &sinkhorn{sinkhornShape: shape, last: last, norm: l.vector(norm, shape.embd)}
	scales := 3
	if last {
		scales = 1
	}
	h.fn = l.matrix(prefix+"_fn", shape.streams*shape.embd, h.outputs())
	h.base, h.scale = l.vector(prefix+"_base.weight", h.outputs()), l.vector(prefix+"_scale.weight", scales)
	h.wide = []*Weight{h.fn}
	return h
}

func (h *sinkhorn) prepare(s *stream) (err error) {
	h.s = s
	h.scratch, err = share(s, h.sinkhornShape, func() (*sinkhornScratch, error) {
		n, all, k := s.max, h.streams*h.embd, h.streams
		w := &sinkhornScratch{normed: make([]float32, n*all), raw: make([]float32, n*(2+k)*k), post: make([]float32, n*k), matrix: make([]float32, n*k*k),
			ones: make([]float32, all), acts: kernel.NewActs(n, all)}
		for i := range w.ones {
			w.ones[i] = 1
		}
		return w, nil
	})
	return err
}

func (h *sinkhorn) mix(s *stream, first int, inputs []*Weight) {
	w, n := h.scratch, s.n-first
	h.first, h.inputs = first, inputs
	w.acts.Reset(n, h.streams*h.embd)
	s.Pool.Run(n, (*sinkhornNorm)(h))
	s.linear.run(s.Compute, w.acts, product{h.fn, w.raw, h.outputs()})
	s.acts.Reset(n, s.embd)
	s.Pool.Run(n, (*sinkhornOut)(h))
}

// sinkhornNorm norms a token's streams as one vector, a task of the pool.
type sinkhornNorm sinkhorn

// Do implements pool.Task.
func (h *sinkhornNorm) Do(_, t int) {
	w, all := h.scratch, h.streams*h.embd
	vec.RMSNorm(w.normed[t*all:][:all], h.s.x[(h.first+t)*all:][:all], w.ones, h.s.eps)
	prepare(w.acts, h.s.Numerics, w.normed, t, t+1, h.wide...)
}

// sinkhornOut makes a token's weights and its input of the block, a task of the pool.
type sinkhornOut sinkhorn

// Do implements pool.Task.
func (h *sinkhornOut) Do(_, t int) {
	w, s, k := h.scratch, h.s, h.streams
	outputs := (*sinkhorn)(h).outputs()
	raw, base, scale := w.raw[t*outputs:][:outputs], h.base.F32, h.scale.F32
	y := s.y[t*s.embd:][:s.embd]
	clear(y)
	for i := range k {
		pre := vec.Sigmoid32(float32(raw[i]*scale[0])+base[i]) + h.epsilon
		vec.AddScaled(y, s.x[((h.first+t)*k+i)*h.embd:][:h.embd], pre)
	}
	vec.RMSNormHeads(y, h.norm.F32, s.eps)
	prepare(s.acts, s.Numerics, s.y, t, t+1, h.inputs...)
	if h.last {
		return
	}
	post, matrix := w.post[t*k:][:k], w.matrix[t*k*k:][:k*k]
	for i := range k {
		post[i] = 2 * vec.Sigmoid32(float32(raw[k+i]*scale[1])+base[k+i])
	}
	for i := range matrix {
		matrix[i] = float32(raw[2*k+i]*scale[2]) + base[2*k+i]
	}
	balance(matrix, k, h.rounds, h.epsilon)
}

// balance makes rows and columns of a matrix of logits, [k x k], sum to about one: a
// softmax of each row, then columns and rows are divided by their sums in turns, the
// columns last (Sinkhorn and Knopp, 1967).
func balance(m []float32, k, rounds int, epsilon float32) {
	for i := range k {
		row := m[i*k:][:k]
		vec.Softmax(row)
		for j := range row {
			row[j] += epsilon
		}
	}
	for round := range rounds {
		for i := 0; i < k && round > 0; i++ {
			row := m[i*k:][:k]
			sum := float32(0)
			for _, x := range row {
				sum += x
			}
			for j := range row {
				row[j] /= sum + epsilon
			}
		}
		for j := range k {
			sum := float32(0)
			for i := range k {
				sum += m[i*k+j]
			}
			for i := range k {
				m[i*k+j] /= sum + epsilon
			}
		}
	}
}

func (h *sinkhorn) give(s *stream, t int, y []float32) {
	w, k, all := h.scratch, h.streams, h.streams*h.embd
	x, out := s.x[t*all:][:all], w.normed[t*all:][:all]
	for to := range k {
		row := out[to*h.embd:][:h.embd]
		copy(row, y)
		vec.Scale(row, w.post[t*k+to])
		for from := range k {
			vec.AddScaled(row, x[from*h.embd:][:h.embd], w.matrix[(t*k+from)*k+to])
		}
	}
	copy(x, out)
}
