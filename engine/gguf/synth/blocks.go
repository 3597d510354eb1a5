package synth

import (
	"math"

	"bmoe/engine/quant"
)

// attentionKind says what a family's attention has beside its four matrices.
type attentionKind struct {
	headNorms bool // of queries and keys
	gated     bool // each head's query rows are followed by as many of a gate
	softplus  bool // a matrix of its own makes a gate for each head
	wideNorms bool // of queries and keys, over all heads together
	biased    bool // queries, keys and values have biases
}

// before adds the norm before a block, or the mixer in its place.
func (m *maker) before(norm string) {
	switch {
	case m.Streams == 0:
		m.norm(m.name(norm+".weight"), m.Embd, 1)
	case norm == "attn_norm":
		m.mixer(m.name("hc_attn"), true)
	default:
		m.mixer(m.name("hc_ffn"), true)
	}
}

// attention adds an attention block with its norm.
func (m *maker) attention(a attentionKind) {
	heads, kv, qk, out := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim, qkNorm, attnStd
	if a.headNorms || a.wideNorms {
		qk = 1
	}
	rows := heads
	if a.gated {
		rows, out = 2*heads, attnStd*gatedStd
	}
	m.before("attn_norm")
	m.matrix("attn_q", m.base, m.Embd, rows, over(qk, m.Embd))
	m.matrix("attn_k", m.base, m.Embd, kv, over(qk, m.Embd))
	m.matrix("attn_v", m.values, m.Embd, kv, over(1, m.Embd))
	m.matrix("attn_output", m.base, heads, m.Embd, over(m.branch/out, heads))
	if a.softplus {
		m.matrix("attn_gate", m.base, m.Embd, m.Heads, over(1, m.Embd))
	}
	if a.headNorms {
		m.norm(m.name("attn_q_norm.weight"), m.HeadDim, qkNorm)
		m.norm(m.name("attn_k_norm.weight"), m.HeadDim, qkNorm)
	}
	if a.wideNorms {
		m.norm(m.name("attn_q_norm.weight"), heads, qkNorm)
		m.norm(m.name("attn_k_norm.weight"), kv, qkNorm)
	}
	if a.biased {
		m.floats("attn_q.bias", biasStd, heads)
		m.floats("attn_k.bias", biasStd, kv)
		m.floats("attn_v.bias", biasStd, kv)
	}
}

// moeKind says what a family's experts are like.
type moeKind struct {
	norm    string  // name of the norm before them
	hidden  float64 // size of what the activation makes
	share   float64 // of the layer's output, that they give
	ungated bool
	biased  bool // the router has a bias for the choice alone
}

// router adds a router whose elements are of size std.
func (m *maker) router(std float64) {
	m.list = append(m.list, weight{name: m.name("ffn_gate_inp.weight"), kind: quant.F32, dims: []int64{int64(m.Embd), int64(m.Experts)},
		std: std, rows: m.popularity(m.layer)})
}

// moe adds a router and its experts with their norm.
func (m *maker) moe(k moeKind) {
	m.before(k.norm)
	m.router(over(routerStd, m.Embd))
	width := m.Embd
	if m.Latent > 0 {
		width = m.Latent
		m.matrix("ffn_latent_down", m.base, m.Embd, width, over(1, m.Embd))
		m.matrix("ffn_latent_up", m.base, width, m.Embd, over(1, width))
	}
	if !k.ungated {
		m.perExpert("ffn_gate_exps", m.mix.experts, width, m.ExpertFF, over(gateStd, width))
	}
	m.perExpert("ffn_up_exps", m.mix.experts, width, m.ExpertFF, over(1, width))
	m.perExpert("ffn_down_exps", m.down, m.ExpertFF, width, over(k.share*m.branch*math.Sqrt(float64(m.Used))/k.hidden, m.ExpertFF))
	if k.biased {
		m.floats("exp_probs_b.bias", biasStd/4, m.Experts)
	}
}

// dense adds a gated feed-forward network whose tensors' names end in ending.
func (m *maker) dense(ending string, ff int, share float64) {
	m.matrix("ffn_gate"+ending, m.base, m.Embd, ff, over(gateStd, m.Embd))
	m.matrix("ffn_up"+ending, m.base, m.Embd, ff, over(1, m.Embd))
	m.matrix("ffn_down"+ending, m.narrow, ff, m.Embd, over(share*m.branch/hiddenStd, ff))
}

// denseOrMoE adds the second half of a layer of a family whose first layers are dense,
// and whose routers have a bias for the choice. share is the part of a layer's output
// that the routed experts give.
func (m *maker) denseOrMoE(norm string, share float64) {
	if m.layer < m.Dense || m.Experts == 0 {
		m.norm(m.name(norm+".weight"), m.Embd, 1)
		m.dense("", m.DenseFF, 1)
		return
	}
	m.moe(moeKind{norm: norm, hidden: hiddenStd, share: share, biased: true})
}

// kda adds a KDA block with its norm.
func (m *maker) kda() {
	inner := m.Heads * m.StateSize
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	for _, x := range []string{"q", "k", "v"} {
		m.matrix("attn_"+x, m.base, m.Embd, inner, over(1, m.Embd))
		m.floats("ssm_conv1d_"+x+".weight", over(1, m.Conv), m.Conv, 1, inner, 1)
	}
	m.matrix("ssm_f_a", m.base, m.Embd, inner, over(1, m.Embd))
	m.matrix("ssm_beta", m.base, m.Embd, m.Heads, over(1, m.Embd))
	m.norms("ssm_a", 1, 1, m.Heads)
	m.norm(m.name("ssm_dt.bias"), inner, 2*stepBias)
	m.matrix("ssm_g_a", m.base, m.Embd, inner, over(gateStd, m.Embd))
	m.norm(m.name("ssm_norm.weight"), m.StateSize, 1)
	m.matrix("attn_output", m.base, inner, m.Embd, over(m.branch/gatedStd, inner))
}

// latent adds latent attention with its norm, behind a gate for each head if gated.
func (m *maker) latent(gated bool) {
	out := attnStd
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.matrix("attn_q_a", m.base, m.Embd, m.QRank, over(1, m.Embd))
	m.norm(m.name("attn_q_a_norm.weight"), m.QRank, 1)
	m.matrix("attn_q_b", m.base, m.QRank, m.Heads*(m.NopeDim+m.RopeDims), over(qkNorm, m.QRank))
	m.matrix("attn_kv_a_mqa", m.base, m.Embd, m.KVRank+m.RopeDims, over(qkNorm, m.Embd))
	m.norm(m.name("attn_kv_a_norm.weight"), m.KVRank, 1)
	m.perHead("attn_k_b", m.NopeDim, m.KVRank, over(qkNorm, m.KVRank))
	m.perHead("attn_v_b", m.KVRank, m.ValueDim, over(1, m.KVRank))
	if gated {
		out *= gatedStd
		m.matrix("attn_gate", m.base, m.Embd, m.Heads, over(1, m.Embd))
	}
	m.matrix("attn_output", m.base, m.Heads*m.ValueDim, m.Embd, over(m.branch/out, m.Heads*m.ValueDim))
}

// perHead adds one matrix of each head.
func (m *maker) perHead(tensor string, cols, rows int, std float64) {
	m.list = append(m.list, weight{name: m.name(tensor + ".weight"), kind: m.base, dims: []int64{int64(cols), int64(rows), int64(m.Heads)}, std: std})
}

// mixer adds a mixer of the streams, whose tensors' names begin with prefix; gives says
// that it gives a block's output back.
func (m *maker) mixer(prefix string, gives bool) {
	all := m.Streams * m.Embd
	m.norm(prefix+"_norm.weight", all, 2) // half of it passes the gates
	add := func(name string, kind quant.Type, cols, rows int) {
		m.list = append(m.list, weight{name: prefix + name + ".weight", kind: kind, dims: []int64{int64(cols), int64(rows)}, std: over(1, cols)})
	}
	add("_down", m.base, all, m.StreamRank)
	add("_up", m.base, m.StreamRank, all)
	if gives {
		add("_inject", quant.F32, all, m.Streams)
	}
}

// ngram adds what a layer needs to take n-grams from the table.
func (m *maker) ngram() {
	all := m.Streams * m.Embd
	m.matrix("ple_key", m.base, m.Embd, all, over(1, m.Embd))
	m.matrix("ple_value", m.base, m.Embd, m.Embd, over(m.branch, m.Embd))
	for _, x := range []string{"key", "query", "conv"} {
		m.norm(m.name("ple_norm_"+x+".weight"), all, 1)
	}
	m.list = append(m.list, weight{name: m.name("ple_conv1d.weight"), kind: quant.F16, dims: []int64{int64(m.Conv), int64(all)}, std: over(m.branch, m.Conv)})
}

// blockIndex adds an indexer that chooses blocks of keys.
func (m *maker) blockIndex() {
	m.matrix("indexer.q_proj", m.base, m.Embd, m.IndexHeads*m.IndexDim, over(1, m.Embd))
	m.matrix("indexer.k_proj", m.base, m.Embd, m.IndexDim, over(1, m.Embd))
	m.norm(m.name("indexer.q_norm.weight"), m.IndexDim, 1)
	m.norm(m.name("indexer.k_norm.weight"), m.IndexDim, 1)
}

// shortConv adds a short convolution between two gates, with its norm.
func (m *maker) shortConv() {
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.matrix("shortconv.in_proj", m.base, m.Embd, 3*m.Embd, over(1, m.Embd))
	m.floats("shortconv.conv.weight", over(1, m.Conv), m.Conv, m.Embd)
	m.matrix("shortconv.out_proj", m.base, m.Embd, m.Embd, over(m.branch, m.Embd))
}

// mamba adds a Mamba-2 block with its norm.
func (m *maker) mamba() {
	inner := m.ValueHeads * m.ValueDim
	channels := inner + 2*m.KeyHeads*m.StateSize
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.matrix("ssm_in", m.base, m.Embd, inner+channels+m.ValueHeads, over(1, m.Embd))
	m.floats("ssm_conv1d.weight", over(1, m.Conv), m.Conv, channels)
	m.floats("ssm_conv1d.bias", biasStd, channels)
	m.norm(m.name("ssm_dt.bias"), m.ValueHeads, stepBias)
	m.norms("ssm_a", -1, 1, m.ValueHeads)
	m.norms("ssm_d", 1, 1, m.ValueHeads)
	m.norms("ssm_norm.weight", 1, inner/m.KeyHeads, m.KeyHeads)
	m.matrix("ssm_out", m.base, inner, m.Embd, over(m.branch, inner))
}

// delta adds a gated delta-net block with its norm. together says that beta and alpha
// are one matrix.
func (m *maker) delta(together bool) {
	values := m.ValueHeads * m.StateSize
	channels := 2*m.KeyHeads*m.StateSize + values
	m.before("attn_norm")
	m.matrix("attn_qkv", m.base, m.Embd, channels, over(1, m.Embd))
	m.matrix("attn_gate", m.base, m.Embd, values, over(gateStd, m.Embd))
	m.floats("ssm_conv1d.weight", over(1, m.Conv), m.Conv, channels)
	m.norm(m.name("ssm_dt.bias"), m.ValueHeads, stepBias)
	m.norm(m.name("ssm_a"), m.ValueHeads, -1)
	if together {
		m.matrix("ssm_ba", m.base, m.Embd, 2*m.ValueHeads, over(1, m.Embd))
	} else {
		m.matrix("ssm_beta", m.base, m.Embd, m.ValueHeads, over(1, m.Embd))
		m.matrix("ssm_alpha", m.base, m.Embd, m.ValueHeads, over(1, m.Embd))
	}
	m.norm(m.name("ssm_norm.weight"), m.StateSize, 1)
	m.matrix("ssm_out", m.base, values, m.Embd, over(m.branch/hiddenStd, values))
}
