package model

import (
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
)

// deltaSpec is the shape of a gated delta-net block and its switches.
type deltaSpec struct {
	deltaShape
	grouped bool // neighbouring value heads share a key head; else every keyHeads-th does
	sigmoid bool // the output gate is a sigmoid, and norms have eps under the root; else silu, and eps bounds them
}

// deltaShape is what delta-net blocks must have in common to share scratch.
type deltaShape struct {
	keyHeads, valueHeads int
	size                 int // of a head, and its state is [size x size]
	taps                 int // of the convolution
}

// channels returns how many the convolution has: queries, keys and values.
func (d deltaShape) channels() int { return (2*d.keyHeads + d.valueHeads) * d.size }

// delta is a gated delta-net: each head keeps a matrix that maps keys to values. A
// token lets it fade, corrects what it holds for the token's key, and reads what it
// holds for its query.
type delta struct {
	deltaSpec
	entry       entry
	qkv, gate   *Weight
	fused       *Weight // in place of qkv and gate, a key head's rows together; nil: none
	beta, alpha *Weight // [embd x valueHeads]
	both        *Weight // in place of beta and alpha, a key head's rows together; nil: none
	conv        convolution
	dt, a       *Weight // [valueHeads] bias of the decay's step, and its rate, which is negative
	outNorm     *Weight // [size]
	out         *Weight
	inputs      []*Weight
	outputs     []*Weight

	s       *stream
	mem     *recurrentLayer
	scratch *deltaScratch
}

// deltaScratch is the memory of a step, for the largest batch.
type deltaScratch struct {
	u           []float32 // [n x channels] the convolution's input, then queries, keys and values
	gate, out   []float32 // [n x valueHeads*size]
	fused       []float32 // [n x channels + valueHeads*size] where the file has them so
	both        []float32 // [n x 2*valueHeads]
	beta, decay []float32 // [n x valueHeads]
	acts        *kernel.Acts
	mine        [][]float32 // by worker
}

func (d *deltaScratch) bytes() int64 {
	n := len(d.u) + len(d.gate) + len(d.out) + len(d.fused) + len(d.both) + len(d.beta) + len(d.decay)
	for _, m := range d.mine {
		n += len(m)
	}
	return int64(n)*4 + d.acts.Bytes()
}

// deltaShape reads the shape that all delta-net layers have.
func (l *loader) deltaShape() deltaShape {
	d := deltaShape{keyHeads: l.key("ssm.group_count"), valueHeads: l.key("ssm.time_step_rank"), size: l.key("ssm.state_size"), taps: l.key("ssm.conv_kernel")}
	if d.valueHeads%d.keyHeads != 0 {
		l.fail(fmt.Errorf("%d value heads cannot share %d key heads evenly (%sssm.time_step_rank, %[3]sssm.group_count)", d.valueHeads, d.keyHeads, l.prefix))
	}
	if inner := l.key("ssm.inner_size"); l.err == nil && inner != d.valueHeads*d.size {
		l.fail(fmt.Errorf("%sssm.inner_size is %d, but %d heads of %d make %d", l.prefix, inner, d.valueHeads, d.size, d.valueHeads*d.size))
	}
	return d
}

// delta returns the block of a layer.
func (l *loader) delta(layer, embd int, spec deltaSpec) *delta {
	name := l.names(layer)
	values := spec.valueHeads * spec.size
	d := &delta{deltaSpec: spec, entry: l.entry(layer, "attn_norm", embd)}
	if l.has(name("ssm_in.weight")) {
		d.fused = l.matrix(name("ssm_in"), embd, spec.channels()+values)
		d.inputs = append(d.inputs, d.fused)
	} else {
		d.qkv, d.gate = l.matrix(name("attn_qkv"), embd, spec.channels()), l.matrix(name("attn_gate"), embd, values)
		d.inputs = append(d.inputs, d.qkv, d.gate)
	}
	if l.has(name("ssm_ba.weight")) {
		d.both = l.matrix(name("ssm_ba"), embd, 2*spec.valueHeads)
		d.inputs = append(d.inputs, d.both)
	} else {
		d.beta, d.alpha = l.matrix(name("ssm_beta"), embd, spec.valueHeads), l.matrix(name("ssm_alpha"), embd, spec.valueHeads)
		d.inputs = append(d.inputs, d.beta, d.alpha)
	}
	d.conv = l.convolution(spec.taps, spec.channels(), name("ssm_conv1d.weight"))
	d.dt, d.a = l.vector(name("ssm_dt.bias"), spec.valueHeads), l.vector(name("ssm_a"), spec.valueHeads)
	d.outNorm = l.vector(name("ssm_norm.weight"), spec.size)
	d.out = l.matrix(name("ssm_out"), values, embd)
	d.outputs = []*Weight{d.out}
	return d
}

func (d *delta) memory(int, attn.KVType) layerSpec {
	return recurrentSpec{rows: d.conv.rows(), channels: d.channels(), heads: d.valueHeads, keys: d.size, vals: d.size}
}

func (d *delta) prepare(s *stream) (err error) {
	d.s = s
	if err := d.conv.prepare(s); err != nil {
		return err
	}
	type key struct {
		deltaShape
		fused, both bool
	}
	d.scratch, err = share(s, key{d.deltaShape, d.fused != nil, d.both != nil}, func() (*deltaScratch, error) {
		n, values := s.max, d.valueHeads*d.size
		w := &deltaScratch{u: make([]float32, n*d.channels()), gate: make([]float32, n*values), out: make([]float32, n*values),
			beta: make([]float32, n*d.valueHeads), decay: make([]float32, n*d.valueHeads), acts: kernel.NewActs(n, values)}
		if d.fused != nil {
			w.fused = make([]float32, n*(d.channels()+values))
		}
		if d.both != nil {
			w.both = make([]float32, n*2*d.valueHeads)
		}
		for range s.Pool.Workers() {
			w.mine = append(w.mine, make([]float32, d.conv.room(d.size)))
		}
		return w, nil
	})
	return err
}

func (d *delta) add(s *stream, mem layerState) error {
	d.mem = mem.(*recurrentLayer)
	w, values := d.scratch, d.valueHeads*d.size
	s.in(d.entry, d.inputs)
	var products [4]product
	n := 0
	if d.fused != nil {
		products[0], n = product{d.fused, w.fused, d.channels() + values}, 1
	} else {
		products[0], products[1], n = product{d.qkv, w.u, d.channels()}, product{d.gate, w.gate, values}, 2
	}
	if d.both != nil {
		products[n] = product{d.both, w.both, 2 * d.valueHeads}
		n++
	} else {
		products[n], products[n+1] = product{d.beta, w.beta, d.valueHeads}, product{d.alpha, w.decay, d.valueHeads}
		n += 2
	}
	s.linear.run(s.Compute, s.acts, products[:n]...)
	if d.fused != nil {
		s.Pool.Run(s.n, (*deltaPart)(d))
	}
	s.Pool.Run(2*d.keyHeads+d.valueHeads+1, (*deltaIn)(d))
	s.Pool.Run(d.valueHeads*panels(d.size), (*deltaState)(d))
	w.acts.Reset(s.n, values)
	s.Pool.Run(s.n, (*deltaOut)(d))
	s.linear.run(s.Compute, w.acts, product{d.out, s.y, s.embd})
	s.pending = true
	return nil
}

// deltaPart takes the fused product of a token apart, a task of the pool. For each
// key head it has the query, the key, the values and their gates.
type deltaPart delta

// Do implements pool.Task.
func (d *deltaPart) Do(_, t int) {
	w, values := d.scratch, d.valueHeads*d.size
	from := w.fused[t*(d.channels()+values):][:d.channels()+values]
	u, gate := w.u[t*d.channels():][:d.channels()], w.gate[t*values:][:values]
	q, k, v := u[:d.keyHeads*d.size], u[d.keyHeads*d.size:2*d.keyHeads*d.size], u[2*d.keyHeads*d.size:]
	group := values / d.keyHeads
	for h := range d.keyHeads {
		for _, to := range [][]float32{q[h*d.size:][:d.size], k[h*d.size:][:d.size], v[h*group:][:group], gate[h*group:][:group]} {
			from = from[copy(to, from):]
		}
	}
}

// deltaIn makes queries, keys and values of the batch, a task of the pool with a
// head a part; the last part makes what there is one of for each head and token.
type deltaIn delta

// Do implements pool.Task.
func (d *deltaIn) Do(worker, head int) {
	w, n := d.scratch, d.s.n
	if head == 2*d.keyHeads+d.valueHeads {
		for t := range n {
			(*delta)(d).rates(t)
		}
		return
	}
	channels, c0 := d.channels(), head*d.size
	d.conv.run(w.u, channels, n, d.s.pos, d.mem, c0, c0+d.size, w.mine[worker])
	for t := range n {
		x := w.u[t*channels+c0:][:d.size]
		vec.Silu(x)
		if head >= 2*d.keyHeads {
			continue
		}
		scale := float32(1)
		if head < d.keyHeads {
			scale = inverseRoot(d.size)
		}
		if d.sigmoid {
			vec.UnitLengthPlus(x, d.s.eps, scale)
		} else {
			vec.UnitLength(x, d.s.eps, scale)
		}
	}
}

// rates turns the products of token t into how far each head's state fades and is
// corrected.
func (d *delta) rates(t int) {
	w, heads := d.scratch, d.valueHeads
	beta, decay := w.beta[t*heads:][:heads], w.decay[t*heads:][:heads]
	if d.both != nil {
		group := heads / d.keyHeads
		both := w.both[t*2*heads:][:2*heads]
		for h := 0; h < heads; h += group {
			copy(beta[h:][:group], both[2*h:])
			copy(decay[h:][:group], both[2*h+group:])
		}
	}
	for h := range heads {
		beta[h] = vec.Sigmoid32(beta[h])
		decay[h] = vec.Exp32(d.a.F32[h] * vec.Softplus32(decay[h]+d.dt.F32[h]))
	}
}

// deltaState takes the batch's tokens through the state, a task of the pool. A part
// is some columns of a head's matrix: they need nothing of the others.
type deltaState delta

// Do implements pool.Task.
func (d *deltaState) Do(_, part int) {
	w, size := d.scratch, d.size
	head, from := part/panels(d.size), part%panels(d.size)*vec.MatrixCols
	to := min(from+vec.MatrixCols, size)
	keyHead := head % d.keyHeads
	if d.grouped {
		keyHead = head / (d.valueHeads / d.keyHeads)
	}
	m := d.mem.panel(head, from, to)
	var room [vec.MatrixCols]float32
	diff := room[:to-from]
	for t := range d.s.n {
		row := w.u[t*d.channels():][:d.channels()]
		q, k := row[keyHead*size:][:size], row[(d.keyHeads+keyHead)*size:][:size]
		v := row[(2*d.keyHeads+head)*size:][from:to]
		beta, decay := w.beta[t*d.valueHeads+head], w.decay[t*d.valueHeads+head:][:1]
		vec.MulRows(diff, m, k) // what the state has for the key
		for j, x := range diff {
			diff[j] = float32(beta * (v[j] - float32(decay[0]*x)))
		}
		vec.Renew(w.out[(t*d.valueHeads+head)*size:][from:to], m, decay, k, q, diff)
	}
}

// deltaOut norms and gates what a token has read, a task of the pool.
type deltaOut delta

// Do implements pool.Task.
func (d *deltaOut) Do(_, t int) {
	w, values := d.scratch, d.valueHeads*d.size
	out, gate := w.out[t*values:][:values], w.gate[t*values:][:values]
	vec.RMSNormHeads(out, d.outNorm.F32, d.s.eps)
	if d.sigmoid {
		vec.SigmoidMul(out, gate, out)
	} else {
		vec.SiluMul(out, gate, out)
	}
	prepare(w.acts, d.s.Numerics, w.out, t, t+1, d.outputs...)
}
