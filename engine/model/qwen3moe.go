package model

import (
	"context"
	"fmt"
	"math"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
)

func init() { register("qwen3moe", newQwen3MoE) }

// qwen3moe is Qwen3-30B-A3B and its relatives: grouped-query attention with
// per-head norms of queries and keys, and in every layer routed experts behind
// a softmax router whose chosen weights are normalised. The head is the
// embedding where the file has no output.weight.
type qwen3moe struct {
	info            Info
	heads, kvHeads  int
	headDim, valDim int
	ff              int
	eps             float32
	rope            *kernel.Rope
	route           routing
	embd, out       *Weight
	outNorm         *Weight
	layers          []qwen3moeLayer
	scratch         qwen3moeScratch
}

type qwen3moeLayer struct {
	attnNorm, ffnNorm *Weight // [embd]
	q, k, v, o        *Weight
	qNorm, kNorm      *Weight // [headDim]
	router            *Weight // [embd x experts]
	experts           experts
}

func newQwen3MoE(l *loader) (Arch, error) {
	embd, layers := l.key("embedding_length"), l.layers()
	m := &qwen3moe{heads: l.allLayers("attention.head_count", layers, 0)}
	m.kvHeads = l.allLayers("attention.head_count_kv", layers, m.heads)
	m.headDim = l.keyOr("attention.key_length", max(1, embd/m.heads))
	m.valDim = l.keyOr("attention.value_length", m.headDim)
	m.eps = float32(l.floatOr("attention.layer_norm_rms_epsilon", 1e-6))
	m.route = routing{experts: l.key("expert_count"), used: l.key("expert_used_count"), normalise: true}
	m.ff = l.keyOr("expert_feed_forward_length", max(1, l.keyOr("feed_forward_length", 1)/m.route.used))
	switch {
	case l.err != nil:
		return nil, l.err
	case m.route.used > m.route.experts:
		return nil, fmt.Errorf("%d experts are used of %d: more than there are", m.route.used, m.route.experts)
	case m.heads%m.kvHeads != 0:
		return nil, fmt.Errorf("%d heads cannot share %d key/value heads evenly", m.heads, m.kvHeads)
	}
	var err error
	if m.rope, err = l.rope(kernel.RopeNeox, m.headDim); err != nil {
		return nil, err
	}

	vocab := l.rowsOf("token_embd.weight")
	m.embd = l.matrix("token_embd", embd, vocab)
	m.outNorm = l.vector("output_norm.weight", embd)
	head := "output"
	if !l.has("output.weight") {
		head = "token_embd" // a second object over the embedding's bytes
	}
	m.out = l.matrix(head, embd, vocab)
	m.info = Info{Arch: "qwen3moe", Layers: layers, Embd: embd, Vocab: vocab, Context: l.keyOr("context_length", 4096),
		Experts: expert.Layout{Experts: m.route.experts, Used: m.route.used}}
	for i := range layers {
		if l.err != nil {
			break
		}
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
		qkv := l.matrices(name("attn_qkv"), embd, []string{name("attn_q"), name("attn_k"), name("attn_v")},
			m.heads*m.headDim, m.kvHeads*m.headDim, m.kvHeads*m.valDim)
		w := qwen3moeLayer{
			attnNorm: l.vector(name("attn_norm.weight"), embd),
			q:        qkv[0],
			k:        qkv[1],
			v:        qkv[2],
			o:        l.matrix(name("attn_output"), m.heads*m.valDim, embd),
			qNorm:    l.vector(name("attn_q_norm.weight"), m.headDim),
			kNorm:    l.vector(name("attn_k_norm.weight"), m.headDim),
			ffnNorm:  l.vector(name("ffn_norm.weight"), embd),
			router:   l.matrix(name("ffn_gate_inp"), embd, m.route.experts),
			experts:  l.experts(name(""), embd, m.ff, m.route.experts),
		}
		m.layers = append(m.layers, w)
		m.info.Experts.Layers = append(m.info.Experts.Layers, w.experts.projections)
	}
	return m, nil
}

func (m *qwen3moe) Info() Info { return m.info }

func (m *qwen3moe) NewState(n int, kv kernel.KVType) (State, error) {
	spec := kernel.KVSpec{Heads: m.kvHeads, KeyDim: m.headDim, ValDim: m.valDim, Ctx: n, Type: kv}
	return newState(n, repeat(len(m.layers), kvSpec{spec}))
}

// qwen3moeScratch is the memory of a forward pass, for the largest batch, and
// the step in progress.
type qwen3moeScratch struct {
	x      []float32    // [n x embd] the residual stream
	norm   []float32    // [n x embd] its norm, then the output of attention
	q      []float32    // [n x heads*headDim]
	k      []float32    // [n x kvHeads*headDim]
	v      []float32    // [n x kvHeads*valDim]
	att    []float32    // [n x heads*valDim]
	router []float32    // [n x experts]
	table  []float32    // rope angles of the batch's positions
	acts   *kernel.Acts // of the residual stream's norm
	aActs  *kernel.Acts // of att
	linear linear
	attn   *kernel.Attn
	moe    *moe

	c     *Compute
	ids   []int32
	layer *qwen3moeLayer
}

func (m *qwen3moe) Prepare(c *Compute, n, ctx int) error {
	e, hd := m.info.Embd, m.heads*m.headDim
	attn, err := kernel.NewAttn(kernel.AttnSpec{Heads: m.heads, KVHeads: m.kvHeads, KeyDim: m.headDim, ValDim: m.valDim,
		Scale: 1 / float32(math.Sqrt(float64(m.headDim)))}, c.Pool.Workers())
	if err != nil {
		return err
	}
	attn.Reserve(ctx)
	m.scratch = qwen3moeScratch{c: c, attn: attn,
		x: make([]float32, n*e), norm: make([]float32, n*e), q: make([]float32, n*hd),
		k: make([]float32, n*m.kvHeads*m.headDim), v: make([]float32, n*m.kvHeads*m.valDim),
		att: make([]float32, n*m.heads*m.valDim), router: make([]float32, n*m.route.experts),
		table: make([]float32, m.rope.TableLen(n)),
		acts:  kernel.NewActs(n, e), aActs: kernel.NewActs(n, m.heads*m.valDim),
		moe: newMoE(m.route, e, m.ff, n, c.Pool.Workers())}
	return nil
}

func (m *qwen3moe) Scratch() int64 {
	s := &m.scratch
	floats := len(s.x) + len(s.norm) + len(s.q) + len(s.k) + len(s.v) + len(s.att) + len(s.router) + len(s.table)
	return int64(floats)*4 + s.acts.Bytes() + s.aActs.Bytes() + s.attn.Bytes() + s.moe.bytes()
}

func (m *qwen3moe) Forward(ctx context.Context, c *Compute, st State, ids []int32, logits []float32) error {
	kv, n := st.(*state), len(ids)
	pos, err := kv.begin(n)
	if err != nil {
		return err
	}
	s := &m.scratch
	s.ids = ids
	c.Pool.Run(n, (*qwen3moeEmbed)(m))
	m.rope.Table(s.table, pos, n)
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.layer = &m.layers[i]
		if err := m.attention(c, kv.layers[i].(kvLayer).KV, pos, n); err != nil {
			return err
		}
		if err := m.experts(c, i, n); err != nil {
			return err
		}
		if c.OnLayer != nil {
			c.OnLayer(i, s.x[:n*m.info.Embd])
		}
	}
	m.head(c, n, logits)
	kv.commit(n) // last: a fault in the head's weights leaves the state dirty too
	return nil
}

// attention adds a layer's attention to the residual stream.
func (m *qwen3moe) attention(c *Compute, kv *kernel.KV, pos, n int) error {
	s, w := &m.scratch, m.scratch.layer
	hd, kd, vd := m.heads*m.headDim, m.kvHeads*m.headDim, m.kvHeads*m.valDim
	s.acts.Reset(n, m.info.Embd)
	c.Pool.Run(n, (*qwen3moeAttnIn)(m))
	s.linear.run(c, s.acts, product{w.q, s.q, hd}, product{w.k, s.k, kd}, product{w.v, s.v, vd})
	c.Pool.Run(n, (*qwen3moeRotate)(m))
	for t := range n {
		if err := kv.Append(pos+t, s.k[t*kd:][:kd], s.v[t*vd:][:vd]); err != nil {
			return err
		}
	}
	s.attn.Run(c.Pool, kv, s.att, s.q, n, pos)
	s.aActs.Reset(n, m.heads*m.valDim)
	c.Pool.Run(n, (*qwen3moeAttnOut)(m))
	s.linear.run(c, s.aActs, product{w.o, s.norm, m.info.Embd})
	return nil
}

// experts adds a layer's experts to the residual stream.
func (m *qwen3moe) experts(c *Compute, layer, n int) error {
	s, w := &m.scratch, m.scratch.layer
	c.Pool.Run(n, (*qwen3moeFFNIn)(m))
	s.linear.run(c, s.acts, product{w.router, s.router, m.route.experts})
	return s.moe.run(c, layer, &w.experts, s.router, s.acts, s.x, n)
}

// head computes the logits that are wanted: of every position, or of the last.
func (m *qwen3moe) head(c *Compute, n int, logits []float32) {
	if logits == nil {
		return
	}
	s, e := &m.scratch, m.info.Embd
	first := 0
	if len(logits) < n*m.info.Vocab {
		first = n - 1
	}
	s.acts.Reset(n-first, e)
	for t := first; t < n; t++ {
		kernel.RMSNorm(s.norm[(t-first)*e:][:e], s.x[t*e:][:e], m.outNorm.F32, m.eps)
	}
	prepare(s.acts, c.Numerics, s.norm, 0, n-first, m.out)
	s.linear.run(c, s.acts, product{m.out, logits, m.info.Vocab})
}

// The steps below are tasks of the pool, one part a token.

// qwen3moeEmbed looks tokens up.
type qwen3moeEmbed qwen3moe

func (m *qwen3moeEmbed) Do(_, t int) {
	kernel.Row(m.scratch.x[t*m.info.Embd:][:m.info.Embd], &m.embd.Matrix, int(m.scratch.ids[t]))
}

// qwen3moeAttnIn norms the residual stream for attention.
type qwen3moeAttnIn qwen3moe

func (m *qwen3moeAttnIn) Do(_, t int) {
	s, e := &m.scratch, m.info.Embd
	kernel.RMSNorm(s.norm[t*e:][:e], s.x[t*e:][:e], s.layer.attnNorm.F32, m.eps)
	prepare(s.acts, s.c.Numerics, s.norm, t, t+1, s.layer.q, s.layer.k, s.layer.v)
}

// qwen3moeRotate norms and rotates queries and keys.
type qwen3moeRotate qwen3moe

func (m *qwen3moeRotate) Do(_, t int) {
	s, hd, kd := &m.scratch, m.heads*m.headDim, m.kvHeads*m.headDim
	q, k, row := s.q[t*hd:][:hd], s.k[t*kd:][:kd], s.table[m.rope.TableLen(t):m.rope.TableLen(t+1)]
	kernel.RMSNormHeads(q, s.layer.qNorm.F32, m.eps)
	kernel.RMSNormHeads(k, s.layer.kNorm.F32, m.eps)
	m.rope.Apply(q, m.headDim, row)
	m.rope.Apply(k, m.headDim, row)
}

// qwen3moeAttnOut prepares attention's output for its projection.
type qwen3moeAttnOut qwen3moe

func (m *qwen3moeAttnOut) Do(_, t int) {
	prepare(m.scratch.aActs, m.scratch.c.Numerics, m.scratch.att, t, t+1, m.scratch.layer.o)
}

// qwen3moeFFNIn adds attention to the residual stream and norms it for the
// router and the experts.
type qwen3moeFFNIn qwen3moe

func (m *qwen3moeFFNIn) Do(_, t int) {
	s, e := &m.scratch, m.info.Embd
	x, norm := s.x[t*e:][:e], s.norm[t*e:][:e]
	kernel.Add(x, norm) // attention's output lies in norm
	kernel.RMSNorm(norm, x, s.layer.ffnNorm.F32, m.eps)
	prepare(s.acts, s.c.Numerics, s.norm, t, t+1, s.layer.router, s.layer.experts.gate.Weight, s.layer.experts.up.Weight)
}
