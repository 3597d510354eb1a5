package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// A block is one part of a layer: attention, a feed-forward network, experts. It
// norms the residual stream, computes, and adds what it made. Its weights and
// switches are its own; its scratch it shares with the other blocks of its shape.
type block interface {
	// prepare takes the scratch that the block needs for the stream's largest batch.
	prepare(s *stream) error
	// add computes the block for the stream's batch. mem is what the layer
	// remembers, for blocks that are remembering.
	add(s *stream, mem layerState) error
}

// remembering is a block with a memory of the sequence.
type remembering interface {
	block
	// memory returns the shape of the block's memory of ctx positions.
	memory(ctx int, kv attn.KVType) layerSpec
}

// stream is what flows through the layers: a batch of tokens, their residual, and
// the scratch of all blocks, which run one after the other.
type stream struct {
	*Compute
	embd     int
	eps      float32
	scale    float32 // of what blocks add to the residual; 0: none
	max, ctx int     // the largest batch, the longest context
	streams  int     // of the residual: blocks read one vector of them, by a mixer, if there are several

	// the batch
	n, pos int     // tokens, and the position of the first
	ids    []int32 // of the tokens

	x       []float32    // [n x streams*embd] the residual
	y       []float32    // [n x embd] a block's normed input, then its output
	acts    *kernel.Acts // y, as an input, in the forms that the block's matrices want
	pending bool         // y holds an output that x lacks
	post    *Weight      // norm of that output; nil: none
	mixer   mixer        // that y came through, and takes it back; nil: there is one stream
	linear  linear
	shared  map[any]scratch

	// the step in progress
	norm   *Weight
	inputs []*Weight
}

// scratch is memory that blocks of one shape share.
type scratch interface{ bytes() int64 }

// newStream allocates the stream of a model for batches of up to n tokens.
func newStream(c *Compute, d *decoder, n, ctx int) *stream {
	embd := d.info.Embd
	return &stream{Compute: c, embd: embd, eps: d.eps, scale: d.blockScale, max: n, ctx: ctx, shared: map[any]scratch{},
		streams: max(1, d.streams), x: make([]float32, n*embd*max(1, d.streams)), y: make([]float32, n*embd), acts: kernel.NewActs(n, embd)}
}

// share returns the scratch for a shape, made when a block first asks for it. Each
// kind of block has a type of its own for its shapes.
func share[S comparable, T scratch](s *stream, shape S, make func() (T, error)) (T, error) {
	if have, ok := s.shared[shape]; ok {
		return have.(T), nil
	}
	t, err := make()
	if err == nil {
		s.shared[shape] = t
	}
	return t, err
}

// bytes returns the memory of the stream and of all blocks' scratch.
func (s *stream) bytes() int64 {
	if s == nil {
		return 0
	}
	n := int64(len(s.x)+len(s.y))*4 + s.acts.Bytes()
	for _, t := range s.shared {
		n += t.bytes()
	}
	return n
}

// mixer is how blocks take part in a residual of several streams: it makes their input
// of all of them, and gives each its share of their output.
type mixer interface {
	prepare(s *stream) error
	// mix makes y, and acts in the forms that inputs want, of the tokens from first on,
	// which become the first ones there.
	mix(s *stream, first int, inputs []*Weight)
	// give adds a block's output for token t to the streams.
	give(s *stream, t int, y []float32)
}

// entry is what a block reads the residual through: a norm, or a mixer.
type entry struct {
	norm  *Weight
	mixer mixer
}

// entry returns that of a layer's block: the norm of that name, unless the family
// mixes streams.
func (l *loader) entry(layer int, norm string, embd int) entry {
	if l.mixers != nil {
		m := l.mixers(layer, norm)
		l.model.mixers = append(l.model.mixers, m)
		return entry{mixer: m}
	}
	return entry{norm: l.vector(l.names(layer)(norm+".weight"), embd)}
}

// in adds what is pending to the residual and norms or mixes it. y, and acts in the
// forms that inputs want, are then the input of a block.
func (s *stream) in(through entry, inputs []*Weight) {
	if through.mixer != nil {
		s.settle()
		through.mixer.mix(s, 0, inputs)
		s.mixer = through.mixer
		return
	}
	s.norm, s.inputs = through.norm, inputs
	s.acts.Reset(s.n, s.embd)
	s.Pool.Run(s.n, (*streamIn)(s))
	s.pending = false
}

// streamIn is a task of the pool, a token a part.
type streamIn stream

// Do implements pool.Task.
func (s *streamIn) Do(_, t int) {
	x, y := s.x[t*s.embd:][:s.embd], s.y[t*s.embd:][:s.embd]
	if s.pending {
		(*stream)(s).give(t, y)
	}
	vec.RMSNorm(y, x, s.norm.F32, s.eps)
	prepare(s.acts, s.Numerics, s.y, t, t+1, s.inputs...)
}

// bare adds what is pending to the residual, which is then the input of a block as
// it is.
func (s *stream) bare(inputs []*Weight) {
	s.settle()
	s.inputs = inputs
	s.acts.Reset(s.n, s.embd)
	s.Pool.Run(s.n, (*streamBare)(s))
}

// streamBare is a task of the pool, a token a part.
type streamBare stream

// Do implements pool.Task.
func (s *streamBare) Do(_, t int) { prepare(s.acts, s.Numerics, s.x, t, t+1, s.inputs...) }

// width returns the length of a token's residual.
func (s *stream) width() int { return s.streams * s.embd }

// settle adds what is pending to the residual, for whoever reads that.
func (s *stream) settle() {
	if s.pending {
		s.Pool.Run(s.n, (*streamSettle)(s))
		s.pending = false
	}
}

// streamSettle is a task of the pool, a token a part.
type streamSettle stream

// Do implements pool.Task.
func (s *streamSettle) Do(_, t int) {
	(*stream)(s).give(t, s.y[t*s.embd:][:s.embd])
}

// give adds what a block has computed for token t to the residual.
func (s *stream) give(t int, y []float32) {
	if s.mixer != nil {
		s.mixer.give(s, t, y)
		return
	}
	x := s.x[t*s.embd:][:s.embd]
	if s.post != nil {
		vec.RMSNormHeads(y, s.post.F32, s.eps)
	}
	if s.scale != 0 {
		vec.AddScaled(x, y, s.scale)
		return
	}
	vec.Add(x, y)
}
