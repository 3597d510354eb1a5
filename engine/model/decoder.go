package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// decoder is the Arch of every family: an embedding, layers of blocks that add to
// one residual stream, a norm and a head. A family says which blocks.
type decoder struct {
	info Info
	eps  float32
	// Factors on the embedding, on what blocks add to the residual, and on the
	// logits; 0: none.
	embdScale, blockScale, logitScale float32
	// softCap bounds the logits: cap * tanh(logit / cap); 0: it does not.
	softCap float32
	embd    *Weight
	streams int // of the residual; 0: one
	mixers  []mixer
	outNorm entry
	out     *Weight
	outs    []*Weight // out
	layers  [][]step
	specs   []remembering // the blocks with a memory, in order
	lastMoE *moe          // of the layers so far
	stream  *stream
	capped  []float32 // the logits that are being capped
}

// step is a block in its layer.
type step struct {
	block
	memory int    // index in the state's views; -1: it has none
	guest  bool   // it reads another block's memory
	op     string // its kind of block, as a trace calls it
}

// decoder reads what all families have in common and returns a model without
// layers.
func (l *loader) decoder() *decoder { return l.decoderWithNorm("output_norm.weight") }

// decoderWithNorm is decoder for families whose last norm has another name.
func (l *loader) decoderWithNorm(norm string) *decoder {
	d := l.bareDecoder()
	d.outNorm.norm = l.vector(norm, d.info.Embd)
	return d
}

// bareDecoder is decoder for families that have something else than a norm at the end.
func (l *loader) bareDecoder() *decoder {
	embd := l.key("embedding_length")
	vocab := l.rowsOf("token_embd.weight")
	d := &decoder{eps: l.epsilon("attention.layer_norm_rms_epsilon")}
	d.info = Info{Arch: l.arch(), Layers: l.layers(), Embd: embd, Vocab: vocab, Context: l.keyOr("context_length", 4096)}
	d.embd = l.matrix("token_embd", embd, vocab)
	head := "output"
	if !l.has("output.weight") {
		head = "token_embd" // tied: a second object over the embedding's bytes
	}
	d.out = l.matrix(head, embd, vocab)
	d.outs = []*Weight{d.out}
	l.model = d
	return d
}

// add appends a layer of the given blocks, in the order in which they add to the
// stream.
func (d *decoder) add(blocks ...block) {
	var steps []step
	var streamed []expert.Projection
	for _, b := range blocks {
		s := step{block: b, memory: -1, op: strings.TrimPrefix(fmt.Sprintf("%T", b), "*model.")}
		if a, ok := b.(*attention); ok && a.from != nil {
			s.guest = true
			s.memory = slices.IndexFunc(d.specs, func(r remembering) bool { return r == remembering(a.from) })
		} else if r, ok := b.(remembering); ok {
			s.memory = len(d.specs)
			d.specs = append(d.specs, r)
		}
		if m, ok := b.(*moe); ok {
			m.layer = len(d.layers)
			if d.lastMoE != nil {
				d.lastMoE.next = m
			}
			d.lastMoE = m
			d.info.Experts.Experts, d.info.Experts.Used = m.route.experts, m.route.used
			streamed = m.w.projections
		}
		steps = append(steps, s)
	}
	d.layers = append(d.layers, steps)
	d.info.Experts.Layers = append(d.info.Experts.Layers, streamed)
}

// Info implements Arch.
func (d *decoder) Info() Info { return d.info }

// NewState implements Arch.
func (d *decoder) NewState(n int, kv attn.KVType) (State, error) {
	var specs []layerSpec
	for _, b := range d.specs {
		specs = append(specs, b.memory(n, kv))
	}
	st, err := newState(n, specs)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Prepare implements Arch.
func (d *decoder) Prepare(c *Compute, n, ctx int) error {
	s := newStream(c, d, n, ctx)
	for _, steps := range d.layers {
		for _, b := range steps {
			if err := b.prepare(s); err != nil {
				return err
			}
		}
	}
	for _, m := range d.mixers {
		if err := m.prepare(s); err != nil {
			return err
		}
	}
	d.stream = s
	return nil
}

// Scratch implements Arch.
func (d *decoder) Scratch() int64 { return d.stream.bytes() }

// Forward implements Arch.
func (d *decoder) Forward(ctx context.Context, st State, ids []int32, logits []float32) error {
	mem, ok := st.(*state)
	if !ok {
		return fmt.Errorf("a state of another kind: %T", st)
	}
	pos, err := mem.begin(len(ids))
	if err != nil {
		return err
	}
	s := d.stream
	s.n, s.pos, s.ids, s.pending, s.mixer = len(ids), pos, ids, false, nil
	s.Pool.Run(s.n, (*decoderEmbed)(d))
	s.stepped(-1, "embed")
	for i, steps := range d.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, b := range steps {
			if err := b.run(s, mem); err != nil {
				return err
			}
			s.stepped(i, b.op)
		}
		s.layered(i)
	}
	d.head(logits)
	s.stepped(-1, "head")
	mem.commit(s.n) // last: a fault in the head's weights leaves the state dirty too
	return nil
}

// run adds the block to the stream. Where its memory is to be marked in the middle of
// the batch it goes up to there, has it saved, and goes on: a batch that ended there
// would have the layers' experts read and multiplied twice.
func (b step) run(s *stream, mem *state) error {
	if b.memory < 0 {
		return b.add(s, nil)
	}
	view := mem.views[b.memory]
	if b.guest || !mem.cuts(b.memory) {
		return b.add(s, view)
	}
	s.settle() // what mixers keep of a batch they keep for the whole of it
	whole := *s
	defer func() { s.n, s.pos, s.ids, s.x, s.y = whole.n, whole.pos, whole.ids, whole.x, whole.y }()
	for from, i := 0, 0; from < whole.n; i++ {
		to := whole.n
		if i < len(mem.taking) {
			to = mem.taking[i].n - whole.pos
		}
		s.n, s.pos, s.ids = to-from, whole.pos+from, whole.ids[from:to]
		s.x, s.y = whole.x[from*s.width():], whole.y[from*s.embd:]
		if err := b.add(s, view); err != nil {
			return err
		}
		s.settle()
		if i < len(mem.taking) {
			mem.take(b.memory, mem.taking[i])
		}
		from = to
	}
	return nil
}

// decoderEmbed looks tokens up, a task of the pool with a token a part.
type decoderEmbed decoder

// Do implements pool.Task.
func (d *decoderEmbed) Do(_, t int) {
	s := d.stream
	all := s.x[t*s.width():][:s.width()]
	x := all[:s.embd]
	kernel.Row(x, &d.embd.Matrix, int(s.ids[t]))
	if d.embdScale != 0 {
		vec.Scale(x, d.embdScale)
	}
	for i := 1; i < s.streams; i++ {
		copy(all[i*s.embd:], x)
	}
}

// head computes the logits that are wanted: of every position, or of the last.
func (d *decoder) head(logits []float32) {
	if logits == nil {
		return
	}
	s := d.stream
	s.settle()
	first := 0
	if len(logits) < s.n*d.info.Vocab {
		first = s.n - 1
	}
	if m := d.outNorm.mixer; m != nil {
		m.mix(s, first, d.outs)
	} else {
		s.acts.Reset(s.n-first, s.embd)
		for t := first; t < s.n; t++ {
			vec.RMSNorm(s.y[(t-first)*s.embd:][:s.embd], s.x[t*s.embd:][:s.embd], d.outNorm.norm.F32, s.eps)
		}
		prepare(s.acts, s.Numerics, s.y, 0, s.n-first, d.outs...)
	}
	s.linear.run(s.Compute, s.acts, product{d.out, logits, d.info.Vocab})
	if d.logitScale != 0 {
		vec.Scale(logits[:(s.n-first)*d.info.Vocab], d.logitScale)
	}
	if d.softCap != 0 {
		d.capped = logits[:(s.n-first)*d.info.Vocab]
		s.Pool.Run((len(d.capped)+capPart-1)/capPart, (*decoderCap)(d))
	}
}

// capPart is how many logits a part of the job that caps them has.
const capPart = 8192

// decoderCap caps the logits, a task of the pool.
type decoderCap decoder

// Do implements pool.Task.
func (d *decoderCap) Do(_, i int) {
	vec.SoftCap(d.capped[i*capPart:min((i+1)*capPart, len(d.capped))], d.softCap)
}
