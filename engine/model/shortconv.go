package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
)

// shortConv is a mixer that remembers a few tokens: a convolution between two gates.
type shortConv struct {
	taps, embd int
	entry      entry
	in, out    *Weight // [embd x 3*embd]: the gates before and behind, then the input; [embd x embd]
	conv       convolution
	inputs     []*Weight
	outputs    []*Weight

	s       *stream
	mem     *recurrentLayer
	scratch *shortConvScratch
}

// shortConvShape is what these blocks must have in common to share scratch.
type shortConvShape struct{ taps int }

// shortConvScratch is the memory of a step, for the largest batch.
type shortConvScratch struct {
	in   []float32 // [n x 3*embd]
	out  []float32 // [n x embd]
	acts *kernel.Acts
	mine [][]float32 // by worker
}

func (w *shortConvScratch) bytes() int64 {
	n := len(w.in) + len(w.out)
	for _, m := range w.mine {
		n += len(m)
	}
	return int64(n)*4 + w.acts.Bytes()
}

// shortConvPart is how many channels a part of the work has.
const shortConvPart = 128

// shortConv returns the block of a layer.
func (l *loader) shortConv(layer, embd int) *shortConv {
	name := l.names(layer)
	c := &shortConv{taps: l.key("shortconv.l_cache"), embd: embd, entry: l.entry(layer, "attn_norm", embd),
		in: l.matrix(name("shortconv.in_proj"), embd, 3*embd), out: l.matrix(name("shortconv.out_proj"), embd, embd)}
	c.conv = l.convolution(c.taps, embd, name("shortconv.conv.weight"))
	c.inputs, c.outputs = []*Weight{c.in}, []*Weight{c.out}
	return c
}

func (c *shortConv) memory(int, attn.KVType) layerSpec {
	return recurrentSpec{rows: c.conv.rows(), channels: c.embd}
}

func (c *shortConv) prepare(s *stream) (err error) {
	c.s = s
	if err := c.conv.prepare(s); err != nil {
		return err
	}
	c.scratch, err = share(s, shortConvShape{c.taps}, func() (*shortConvScratch, error) {
		w := &shortConvScratch{in: make([]float32, s.max*3*c.embd), out: make([]float32, s.max*c.embd), acts: kernel.NewActs(s.max, c.embd)}
		for range s.Pool.Workers() {
			w.mine = append(w.mine, make([]float32, c.conv.room(shortConvPart)))
		}
		return w, nil
	})
	return err
}

func (c *shortConv) add(s *stream, mem layerState) error {
	c.mem = mem.(*recurrentLayer)
	w := c.scratch
	s.in(c.entry, c.inputs)
	s.linear.run(s.Compute, s.acts, product{c.in, w.in, 3 * c.embd})
	s.Pool.Run((c.embd+shortConvPart-1)/shortConvPart, (*shortConvMix)(c))
	w.acts.Reset(s.n, c.embd)
	s.Pool.Run(s.n, (*shortConvOut)(c))
	s.linear.run(s.Compute, w.acts, product{c.out, s.y, s.embd})
	s.pending = true
	return nil
}

// shortConvMix mixes some channels over the batch's tokens, a task of the pool.
type shortConvMix shortConv

// Do implements pool.Task.
func (c *shortConvMix) Do(worker, part int) {
	w, n, e := c.scratch, c.s.n, c.embd
	c0 := part * shortConvPart
	c1 := min(c0+shortConvPart, e)
	for t := range n {
		row := w.in[t*3*e:][:3*e]
		before, u := row[c0:c1], row[2*e+c0:2*e+c1]
		for i, x := range before {
			u[i] *= x
		}
	}
	c.conv.run(w.in[2*e:], 3*e, n, c.s.pos, c.mem, c0, c1, w.mine[worker])
	for t := range n {
		row := w.in[t*3*e:][:3*e]
		behind, u, out := row[e+c0:e+c1], row[2*e+c0:2*e+c1], w.out[t*e:][c0:c1]
		for i, x := range behind {
			out[i] = x * u[i]
		}
	}
}

// shortConvOut prepares the output for its projection, a task of the pool with a
// token a part.
type shortConvOut shortConv

// Do implements pool.Task.
func (c *shortConvOut) Do(_, t int) {
	prepare(c.scratch.acts, c.s.Numerics, c.scratch.out, t, t+1, c.outputs...)
}
