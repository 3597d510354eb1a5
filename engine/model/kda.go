package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// kdaShape is the shape of a KDA block; blocks that have it in common share scratch.
type kdaShape struct {
	heads, size int // size: entries of a head, whose state is [size x size]
	taps        int // of the convolutions
	bound       float32
}

// inner returns the length of all heads together.
func (k kdaShape) inner() int { return k.heads * k.size }

// kda is Kimi's delta attention in the form with a bounded gate: a delta rule as of
// delta, whose state fades by a rate of its own for every entry of the key.
type kda struct {
	kdaShape
	entry      entry
	q, k, v    *Weight // [embd x inner]
	fade, gate *Weight // [embd x inner]
	beta       *Weight // [embd x heads]
	conv       convolution
	dt, a      *Weight // [inner] and [heads]: bias and factor of the fading's gate
	outNorm    *Weight // [size]
	out        *Weight
	inputs     []*Weight
	outputs    []*Weight

	s       *stream
	mem     *recurrentLayer
	scratch *kdaScratch
}

// kdaScratch is the memory of a step, for the largest batch.
type kdaScratch struct {
	u         []float32 // [n x 3*inner] queries, keys and values
	decay     []float32 // [n x inner] what is left of the state
	faded     []float32 // [n x inner] keys times that
	gate, out []float32 // [n x inner]
	beta      []float32 // [n x heads]
	acts      *kernel.Acts
	mine      [][]float32 // by worker
}

func (w *kdaScratch) bytes() int64 {
	n := len(w.u) + len(w.decay) + len(w.faded) + len(w.gate) + len(w.out) + len(w.beta)
	for _, m := range w.mine {
		n += len(m)
	}
	return int64(n)*4 + w.acts.Bytes()
}

// kda returns the block of a layer.
func (l *loader) kda(layer, embd int, shape kdaShape) *kda {
	name, inner := l.names(layer), shape.inner()
	k := &kda{kdaShape: shape, entry: l.entry(layer, "attn_norm", embd),
		q: l.matrix(name("attn_q"), embd, inner), k: l.matrix(name("attn_k"), embd, inner), v: l.matrix(name("attn_v"), embd, inner),
		fade: l.matrix(name("ssm_f_a"), embd, inner), gate: l.matrix(name("ssm_g_a"), embd, inner), beta: l.matrix(name("ssm_beta"), embd, shape.heads)}
	k.conv = l.convolution(shape.taps, inner, name("ssm_conv1d_q.weight"), name("ssm_conv1d_k.weight"), name("ssm_conv1d_v.weight"))
	k.dt, k.a = l.vector(name("ssm_dt.bias"), inner), l.numbers(name("ssm_a"), 1, shape.heads)
	k.outNorm = l.vector(name("ssm_norm.weight"), shape.size)
	k.out = l.matrix(name("attn_output"), inner, embd)
	k.inputs, k.outputs = []*Weight{k.q, k.k, k.v, k.fade, k.gate, k.beta}, []*Weight{k.out}
	return k
}

func (k *kda) memory(int, attn.KVType) layerSpec {
	return recurrentSpec{rows: k.conv.rows(), channels: 3 * k.inner(), heads: k.heads, keys: k.size, vals: k.size}
}

func (k *kda) prepare(s *stream) (err error) {
	k.s = s
	if err := k.conv.prepare(s); err != nil {
		return err
	}
	k.scratch, err = share(s, k.kdaShape, func() (*kdaScratch, error) {
		all := s.max * k.inner()
		w := &kdaScratch{u: make([]float32, 3*all), decay: make([]float32, all), faded: make([]float32, all), gate: make([]float32, all),
			out: make([]float32, all), beta: make([]float32, s.max*k.heads), acts: kernel.NewActs(s.max, k.inner())}
		for range s.Pool.Workers() {
			w.mine = append(w.mine, make([]float32, k.conv.room(k.size)))
		}
		return w, nil
	})
	return err
}

func (k *kda) add(s *stream, mem layerState) error {
	k.mem = mem.(*recurrentLayer)
	w, inner := k.scratch, k.inner()
	s.in(k.entry, k.inputs)
	s.linear.run(s.Compute, s.acts, product{k.q, w.u, 3 * inner}, product{k.k, w.u[inner:], 3 * inner}, product{k.v, w.u[2*inner:], 3 * inner},
		product{k.fade, w.decay, inner}, product{k.gate, w.gate, inner}, product{k.beta, w.beta, k.heads})
	s.Pool.Run(k.heads, (*kdaIn)(k))
	s.Pool.Run(k.heads*panels(k.size), (*kdaState)(k))
	w.acts.Reset(s.n, inner)
	s.Pool.Run(s.n, (*kdaOut)(k))
	s.linear.run(s.Compute, w.acts, product{k.out, s.y, s.embd})
	s.pending = true
	return nil
}

// kdaIn makes queries, keys, values and rates of a head, a task of the pool.
type kdaIn kda

// Do implements pool.Task.
func (k *kdaIn) Do(worker, head int) {
	w, n, size, inner := k.scratch, k.s.n, k.size, k.inner()
	at := head * size
	for part := range 3 {
		c0 := part*inner + at
		k.conv.run(w.u, 3*inner, n, k.s.pos, k.mem, c0, c0+size, w.mine[worker])
	}
	rate := k.a.F32[head]
	for t := range n {
		row := w.u[t*3*inner:][:3*inner]
		q, key, v := row[at:][:size], row[inner+at:][:size], row[2*inner+at:][:size]
		vec.Silu(q)
		vec.Silu(key)
		vec.Silu(v)
		vec.UnitLength(q, k.s.eps, inverseRoot(size))
		vec.UnitLength(key, k.s.eps, 1)
		decay, faded := w.decay[t*inner+at:][:size], w.faded[t*inner+at:][:size]
		for i, x := range decay {
			x = k.bound * vec.Sigmoid32(rate*(x+k.dt.F32[at+i]))
			decay[i] = vec.Exp32(x)
			faded[i] = key[i] * decay[i]
		}
		w.beta[t*k.heads+head] = vec.Sigmoid32(w.beta[t*k.heads+head])
	}
}

// kdaState takes the batch's tokens through the state, a task of the pool. A part
// is some columns of a head's matrix: they need nothing of the others.
type kdaState kda

// Do implements pool.Task.
func (k *kdaState) Do(_, part int) {
	w, size, inner := k.scratch, k.size, k.inner()
	head, from := part/panels(size), part%panels(size)*vec.MatrixCols
	to, at := min(from+vec.MatrixCols, size), head*size
	m := k.mem.panel(head, from, to)
	var room [vec.MatrixCols]float32
	diff := room[:to-from]
	for t := range k.s.n {
		row := w.u[t*3*inner:][:3*inner]
		q, key, v := row[at:][:size], row[inner+at:][:size], row[2*inner+at:][from:to]
		vec.MulRows(diff, m, w.faded[t*inner+at:][:size]) // what is left for the key
		beta := w.beta[t*k.heads+head]
		for j, x := range diff {
			diff[j] = beta * (v[j] - x)
		}
		vec.Renew(w.out[t*inner+at:][from:to], m, w.decay[t*inner+at:][:size], key, q, diff)
	}
}

// kdaOut norms and gates what a token has read, a task of the pool.
type kdaOut kda

// Do implements pool.Task.
func (k *kdaOut) Do(_, t int) {
	w, inner := k.scratch, k.inner()
	out := w.out[t*inner:][:inner]
	vec.RMSNormHeads(out, k.outNorm.F32, k.s.eps)
	vec.SigmoidMul(out, w.gate[t*inner:][:inner], out)
	prepare(w.acts, k.s.Numerics, w.out, t, t+1, k.outputs...)
}
