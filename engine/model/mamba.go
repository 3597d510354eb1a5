package model

import (
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// mambaShape is the shape of a Mamba-2 block; blocks that have it in common share
// scratch.
type mambaShape struct {
	heads, dim    int // dim: entries of a head
	groups, state int // heads of a group share what they write by and read by, each of state entries
	taps          int // of the convolution
}

// inner returns the length of what the heads work on.
func (m mambaShape) inner() int { return m.heads * m.dim }

// channels returns how many the convolution has: the heads' inputs, and what each
// group writes and reads by.
func (m mambaShape) channels() int { return m.inner() + 2*m.groups*m.state }

// mamba is a Mamba-2 block: each head keeps a matrix that fades, takes the token's
// input in, and is read.
type mamba struct {
	mambaShape
	entry    entry
	in, out  *Weight // [embd x inner+channels+heads]: output gate, convolution, steps
	conv     convolution
	dt, a, d *Weight // [heads] the step's bias, the rate of fading, which is negative, and what of the input passes by
	outNorm  *Weight // [inner], each group on its own
	inputs   []*Weight
	outputs  []*Weight

	s       *stream
	mem     *recurrentLayer
	scratch *mambaScratch
}

// mambaScratch is the memory of a step, for the largest batch.
type mambaScratch struct {
	in          []float32 // [n x inner+channels+heads]
	out         []float32 // [n x inner]
	step, decay []float32 // [n x heads]
	acts        *kernel.Acts
	mine        [][]float32 // by worker
}

func (w *mambaScratch) bytes() int64 {
	n := len(w.in) + len(w.out) + len(w.step) + len(w.decay)
	for _, m := range w.mine {
		n += len(m)
	}
	return int64(n)*4 + w.acts.Bytes()
}

// mambaPart is how many channels of the convolution a part of the work has.
const mambaPart = 128

// mambaShape reads the shape that all Mamba layers have.
func (l *loader) mambaShape() mambaShape {
	m := mambaShape{heads: l.key("ssm.time_step_rank"), groups: l.key("ssm.group_count"), state: l.key("ssm.state_size"), taps: l.key("ssm.conv_kernel")}
	inner := l.key("ssm.inner_size")
	m.dim = max(1, inner/m.heads)
	if l.err == nil && (inner%m.heads != 0 || m.heads%m.groups != 0) {
		l.fail(fmt.Errorf("%d entries cannot be split evenly into %d heads in %d groups (%sssm.inner_size, time_step_rank, group_count)", inner, m.heads, m.groups, l.prefix))
	}
	return m
}

// mamba returns the block of a layer.
func (l *loader) mamba(layer, embd int, shape mambaShape) *mamba {
	name := l.names(layer)
	m := &mamba{mambaShape: shape, entry: l.entry(layer, "attn_norm", embd)}
	m.in = l.matrix(name("ssm_in"), embd, m.inner()+m.channels()+m.heads)
	m.conv = l.convolution(m.taps, m.channels(), name("ssm_conv1d.weight"))
	m.conv.bias = l.floats(name("ssm_conv1d.bias"), m.channels())
	m.dt = l.vector(name("ssm_dt.bias"), m.heads)
	m.a, m.d = l.numbers(name("ssm_a"), 1, m.heads), l.numbers(name("ssm_d"), 1, m.heads)
	m.outNorm = l.numbers(name("ssm_norm.weight"), m.inner()/m.groups, m.groups)
	m.out = l.matrix(name("ssm_out"), m.inner(), embd)
	m.inputs, m.outputs = []*Weight{m.in}, []*Weight{m.out}
	return m
}

// The matrix of a head is kept as [state x dim], so that what is read from it are sums
// down its columns.
func (m *mamba) memory(int, attn.KVType) layerSpec {
	return recurrentSpec{rows: m.conv.rows(), channels: m.channels(), heads: m.heads, keys: m.state, vals: m.dim}
}

func (m *mamba) prepare(s *stream) (err error) {
	m.s = s
	if err := m.conv.prepare(s); err != nil {
		return err
	}
	m.scratch, err = share(s, m.mambaShape, func() (*mambaScratch, error) {
		n := s.max
		w := &mambaScratch{in: make([]float32, n*m.in.Rows), out: make([]float32, n*m.inner()), step: make([]float32, n*m.heads),
			decay: make([]float32, n*m.heads), acts: kernel.NewActs(n, m.inner())}
		for range s.Pool.Workers() {
			w.mine = append(w.mine, make([]float32, m.conv.room(mambaPart)))
		}
		return w, nil
	})
	return err
}

func (m *mamba) add(s *stream, mem layerState) error {
	m.mem = mem.(*recurrentLayer)
	w := m.scratch
	s.in(m.entry, m.inputs)
	s.linear.run(s.Compute, s.acts, product{m.in, w.in, m.in.Rows})
	s.Pool.Run((m.channels()+mambaPart-1)/mambaPart+1, (*mambaIn)(m))
	s.Pool.Run(m.heads*panels(m.dim), (*mambaState)(m))
	w.acts.Reset(s.n, m.inner())
	s.Pool.Run(s.n, (*mambaOut)(m))
	s.linear.run(s.Compute, w.acts, product{m.out, s.y, s.embd})
	s.pending = true
	return nil
}

// mambaIn makes the convolution of some channels over the batch, a task of the pool;
// its first part makes each head's steps.
type mambaIn mamba

// Do implements pool.Task.
func (m *mambaIn) Do(worker, part int) {
	w, all := m.scratch, m.in.Rows
	inner, channels := m.inner(), m.channels()
	if part == 0 {
		for t := range m.s.n {
			steps := w.in[t*all+inner+channels:][:m.heads]
			for h, x := range steps {
				step := vec.Softplus32(x + m.dt.F32[h])
				w.step[t*m.heads+h], w.decay[t*m.heads+h] = step, vec.Exp32(float32(step*m.a.F32[h]))
			}
		}
		return
	}
	c0 := (part - 1) * mambaPart
	c1 := min(c0+mambaPart, channels)
	m.conv.run(w.in[inner:], all, m.s.n, m.s.pos, m.mem, c0, c1, w.mine[worker])
	for t := range m.s.n {
		vec.Silu(w.in[t*all+inner:][c0:c1])
	}
}

// mambaState takes the batch's tokens through the state, a task of the pool. A part
// is some columns of a head's matrix: they need nothing of the others.
type mambaState mamba

// Do implements pool.Task.
func (m *mambaState) Do(_, part int) {
	w, all, inner := m.scratch, m.in.Rows, m.inner()
	head, from := part/panels(m.dim), part%panels(m.dim)*vec.MatrixCols
	to := min(from+vec.MatrixCols, m.dim)
	group := head / (m.heads / m.groups)
	matrix := m.mem.panel(head, from, to)
	past := m.d.F32[head]
	var room [vec.MatrixCols]float32
	in := room[:to-from]
	for t := range m.s.n {
		row := w.in[t*all+inner:][:m.channels()]
		x := row[head*m.dim:][from:to]
		write, read := row[inner+group*m.state:][:m.state], row[inner+(m.groups+group)*m.state:][:m.state]
		step, decay := w.step[t*m.heads+head], w.decay[t*m.heads+head:][:1]
		for j, v := range x {
			in[j] = step * v
		}
		out := w.out[t*inner+head*m.dim:][from:to]
		vec.Renew(out, matrix, decay, write, read, in)
		vec.AddScaled(out, x, past)
	}
}

// mambaOut gates and norms what a token has read, a task of the pool.
type mambaOut mamba

// Do implements pool.Task.
func (m *mambaOut) Do(_, t int) {
	w, inner := m.scratch, m.inner()
	out, gate := w.out[t*inner:][:inner], w.in[t*m.in.Rows:][:inner]
	vec.SiluMul(out, gate, out)
	size := inner / m.groups
	for g := 0; g < inner; g += size {
		vec.RMSNorm(out[g:][:size], out[g:][:size], m.outNorm.F32[g:][:size], m.s.eps)
	}
	prepare(w.acts, m.s.Numerics, w.out, t, t+1, m.outputs...)
}
