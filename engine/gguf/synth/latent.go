package synth

import (
	"fmt"
	"math"

	"bmoe/engine/quant"
)

// The families with latent attention, and others whose attention is their own.

var (
	lowRankSizes = []string{"kv-rank", "q-rank", "value-dim"}
	chooserSizes = []string{"index-heads", "index-dim", "index-top"}
)

func init() {
	families["deepseek2"] = family{pre: "deepseek-v3", check: func(s *Spec) error { return s.checkLowRank(lowRankSizes) }, keys: (*Spec).latentKeys, layer: latentLayer}
	families["glm-dsa"] = family{pre: "glm4", check: func(s *Spec) error { return s.checkLowRank(lowRankSizes, chooserSizes) }, keys: (*Spec).latentKeys, layer: latentLayer}
	families["gemma4"] = family{pre: "qwen2", dense: true, check: (*Spec).checkGemma, keys: (*Spec).gemmaKeys, layer: gemmaLayer, head: gemmaHead}
	families["deepseek4"] = family{pre: "deepseek-v3", check: (*Spec).checkCompressed, keys: (*Spec).compressedKeys, layer: compressedLayer, head: compressedHead}
}

// latentScale is the factor on the weights of the chosen experts.
const latentScale = 2.5

// checkLowRank checks a spec of a family with latent attention.
func (s *Spec) checkLowRank(lists ...[]string) error {
	if err := s.needs(append(lists, denseSizes, sharedSizes)...); err != nil {
		return err
	}
	return s.checkParts()
}

// checkParts checks what families with a turned part of a head have in common.
func (s *Spec) checkParts() error {
	switch {
	case s.KVHeads != 1:
		return fmt.Errorf("kv-heads is %d: all heads of %s share one key", s.KVHeads, s.arch())
	case s.RopeDims < 2 || s.RopeDims >= s.HeadDim:
		return fmt.Errorf("rope-dims is %d: of a head's %d entries some turn in %s, and some do not", s.RopeDims, s.HeadDim, s.arch())
	case s.SharedFF%s.ExpertFF != 0:
		return fmt.Errorf("shared-ff (%d) is not a multiple of expert-ff (%d)", s.SharedFF, s.ExpertFF)
	}
	return nil
}

func (s *Spec) latentKeys() []key {
	keys := []key{
		{"attention.key_length", uint32(s.KVRank + s.RopeDims)}, {"attention.value_length", uint32(s.KVRank)},
		{"attention.key_length_mla", uint32(s.HeadDim)}, {"attention.value_length_mla", uint32(s.ValueDim)},
		{"attention.q_lora_rank", uint32(s.QRank)}, {"attention.kv_lora_rank", uint32(s.KVRank)},
		{"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)},
		{"expert_shared_count", uint32(s.SharedFF / s.ExpertFF)}, {"expert_gating_func", uint32(gateSigmoid)},
		{"expert_weights_norm", true}, {"expert_weights_scale", float32(latentScale)},
	}
	return append(keys, s.indexKeys()...)
}

// indexKeys are those of an indexer, where there is one.
func (s *Spec) indexKeys() []key {
	if s.IndexTop == 0 {
		return nil
	}
	return []key{{"attention.indexer.head_count", uint32(s.IndexHeads)}, {"attention.indexer.key_length", uint32(s.IndexDim)}, {"attention.indexer.top_k", uint32(s.IndexTop)}}
}

// latentLayer adds a layer of DeepSeek-V3 or GLM-5.
func latentLayer(m *maker) {
	nope := m.HeadDim - m.RopeDims
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.matrix("attn_q_a", m.base, m.Embd, m.QRank, over(1, m.Embd))
	m.norm(m.name("attn_q_a_norm.weight"), m.QRank, 1)
	m.matrix("attn_q_b", m.base, m.QRank, m.Heads*m.HeadDim, over(qkNorm, m.QRank))
	m.matrix("attn_kv_a_mqa", m.base, m.Embd, m.KVRank+m.RopeDims, over(qkNorm, m.Embd))
	m.norm(m.name("attn_kv_a_norm.weight"), m.KVRank, 1)
	// Rows of a key's matrix are as long as the part of a head that does not turn.
	m.headed("attn_k_b", nope, m.KVRank, over(qkNorm, m.KVRank))
	m.headed("attn_v_b", m.KVRank, m.ValueDim, over(1, m.KVRank))
	m.matrix("attn_output", m.base, m.Heads*m.ValueDim, m.Embd, over(m.branch/attnStd, m.Heads*m.ValueDim))
	if m.IndexTop > 0 {
		m.matrix("indexer.attn_q_b", m.base, m.QRank, m.IndexHeads*m.IndexDim, over(1, m.QRank))
		m.matrix("indexer.attn_k", m.base, m.Embd, m.IndexDim, over(1, m.Embd))
		m.norm(m.name("indexer.k_norm.weight"), m.IndexDim, 1)
		m.floats("indexer.k_norm.bias", biasStd, m.IndexDim)
		m.matrix("indexer.proj", m.base, m.Embd, m.IndexHeads, over(1, m.Embd))
	}
	m.latentExperts(latentScale)
}

// latentExperts adds the second half of a layer: a dense network, or experts beside a
// shared one.
func (m *maker) latentExperts(scale float64) {
	m.denseOrMoE("ffn_norm", bothShare/scale)
	if m.layer >= m.Dense {
		m.dense("_shexp", m.SharedFF, bothShare)
	}
}

// headed adds a matrix of each head in one tensor. Its rows may be too short for the
// blocks of a type of 256: then it is of a type of 32.
func (m *maker) headed(tensor string, cols, rows int, std float64) {
	kind := m.base
	if cols%kind.BlockLen() != 0 {
		kind = quant.Q8_0
	}
	if cols%kind.BlockLen() != 0 {
		kind = quant.F16
	}
	m.list = append(m.list, weight{name: m.name(tensor + ".weight"), kind: kind, dims: []int64{int64(cols), int64(rows), int64(m.Heads)}, std: std})
}

// checkGemma checks a spec of Gemma 4.
func (s *Spec) checkGemma() error {
	if err := s.needs(windowSizes, []string{"interval", "dense-ff"}); err != nil {
		return err
	}
	if !s.Tied {
		return fmt.Errorf("gemma4's head is the token embedding: it is tied")
	}
	return nil
}

// gemmaFull reports whether a layer sees every position: it has heads of twice the
// size, and its values are made of its keys.
func (s *Spec) gemmaFull(layer int) bool { return (layer+1)%s.Interval == 0 }

func (s *Spec) gemmaKeys() []key {
	windowed := make([]bool, s.Layers)
	for i := range windowed {
		windowed[i] = !s.gemmaFull(i)
	}
	return []key{
		{"attention.key_length", uint32(2 * s.HeadDim)}, {"attention.value_length", uint32(2 * s.HeadDim)},
		{"attention.key_length_swa", uint32(s.HeadDim)}, {"attention.value_length_swa", uint32(s.HeadDim)},
		{"rope.dimension_count", uint32(2 * s.HeadDim)}, {"rope.dimension_count_swa", uint32(s.HeadDim)}, {"rope.freq_base_swa", float32(1e4)},
		{"attention.sliding_window", uint32(s.Window)}, {"attention.sliding_window_pattern", windowed}, {"attention.shared_kv_layers", uint32(0)},
		{"embedding_length_per_layer_input", uint32(0)}, {"feed_forward_length", uint32(s.DenseFF)}, {"final_logit_softcapping", float32(30)},
	}
}

// gemmaHead adds what stands outside the layers: the factors on the angles of the layers
// that see everything.
func gemmaHead(m *maker) {
	m.list = append(m.list, weight{name: "rope_freqs.weight", kind: quant.F32, dims: []int64{int64(m.HeadDim)}, mean: 1, std: 0.1})
}

// gemmaLayer adds a layer of Gemma 4. Every output is normed, so the sizes are those of
// the norms; and the embedding is made larger, so blocks add more than elsewhere.
func gemmaLayer(m *maker) {
	dim := m.HeadDim
	if m.gemmaFull(m.layer) {
		dim *= 2
	}
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.matrix("attn_q", m.base, m.Embd, m.Heads*dim, over(1, m.Embd))
	m.matrix("attn_k", m.base, m.Embd, m.KVHeads*dim, over(1, m.Embd))
	if !m.gemmaFull(m.layer) {
		m.matrix("attn_v", m.values, m.Embd, m.KVHeads*dim, over(1, m.Embd))
	}
	m.norm(m.name("attn_q_norm.weight"), dim, over(qkNorm, dim)) // its scores are not divided by the root of the size
	m.norm(m.name("attn_k_norm.weight"), dim, qkNorm)
	m.matrix("attn_output", m.base, m.Heads*dim, m.Embd, over(1, m.Heads*dim))
	m.norm(m.name("post_attention_norm.weight"), m.Embd, m.branch*math.Sqrt(float64(m.Embd)))
	m.norm(m.name("ffn_norm.weight"), m.Embd, 1)
	m.dense("", m.DenseFF, 1/m.branch)
	if m.Experts == 0 {
		m.norm(m.name("post_ffw_norm.weight"), m.Embd, m.branch*math.Sqrt(float64(m.Embd)))
		m.norms("layer_output_scale.weight", 1, 1)
		return
	}
	m.norm(m.name("post_ffw_norm_1.weight"), m.Embd, bothShare)
	m.norms("ffn_gate_inp.scale", 1, m.Embd)
	// The router's input is a vector of length 1.
	m.router(routerStd)
	m.norm(m.name("pre_ffw_norm_2.weight"), m.Embd, 1)
	m.perExpert("ffn_gate_up_exps", m.experts, m.Embd, 2*m.ExpertFF, over(gateStd, m.Embd))
	m.perExpert("ffn_down_exps", m.down, m.ExpertFF, m.Embd, over(1, m.ExpertFF))
	m.norms("ffn_down_exps.scale", 1, m.Experts)
	m.norm(m.name("post_ffw_norm_2.weight"), m.Embd, bothShare)
	m.norm(m.name("post_ffw_norm.weight"), m.Embd, m.branch*math.Sqrt(float64(m.Embd)))
	m.norms("layer_output_scale.weight", 1, 1)
}

// keyNorm is the size of keys that meet queries of size 1; here they are values, too.
const keyNorm = 2.5

// compressedStreams is how many streams the residual of DeepSeek-V4 has.
const compressedStreams = 4

// checkCompressed checks a spec of DeepSeek-V4.
func (s *Spec) checkCompressed() error {
	if err := s.needs(windowSizes, sharedSizes, chooserSizes, []string{"q-rank", "groups", "group-rank"}); err != nil {
		return err
	}
	if s.Heads%s.Groups != 0 {
		return fmt.Errorf("heads (%d) is not a multiple of groups (%d)", s.Heads, s.Groups)
	}
	return s.checkParts()
}

// compressedRatio returns how many positions have a summary in a layer: none in the
// first, then 4 and 128 in turns.
func compressedRatio(layer int) int {
	switch {
	case layer == 0:
		return 0
	case layer%2 == 1:
		return 4
	}
	return 128
}

func (s *Spec) compressedKeys() []key {
	ratios, limits := make([]int32, s.Layers), make([]float32, s.Layers)
	for i := range ratios {
		ratios[i], limits[i] = int32(compressedRatio(i)), 7
	}
	return append(s.indexKeys(), []key{
		{"attention.q_lora_rank", uint32(s.QRank)}, {"attention.sliding_window", uint32(s.Window)},
		{"attention.output_group_count", uint32(s.Groups)}, {"attention.output_lora_rank", uint32(s.GroupRank)},
		{"attention.compress_ratios", ratios}, {"attention.compress_rope_freq_base", float32(1.6e5)},
		{"hyper_connection.count", uint32(compressedStreams)}, {"hyper_connection.sinkhorn_iterations", uint32(20)}, {"hyper_connection.epsilon", float32(1e-6)},
		{"hash_layer_count", uint32(0)}, {"expert_shared_count", uint32(s.SharedFF / s.ExpertFF)}, {"expert_gating_func", uint32(4)},
		{"expert_weights_norm", true}, {"expert_weights_scale", float32(latentScale)}, {"swiglu_clamp_exp", limits}, {"swiglu_clamp_shexp", limits},
	}...)
}

// balancer adds the tensors by which streams are mixed, of outputs numbers, by the
// beginning of their names.
func (m *maker) balancer(prefix string, outputs, scales int) {
	all := compressedStreams * m.Embd
	for _, w := range []weight{
		{name: prefix + "_fn.weight", dims: []int64{int64(all), int64(outputs)}, std: over(1, all)},
		{name: prefix + "_base.weight", dims: []int64{int64(outputs)}, std: 1},
		{name: prefix + "_scale.weight", dims: []int64{int64(scales)}, mean: 1, std: 0.1},
	} {
		w.kind = quant.F32
		m.list = append(m.list, w)
	}
}

// compressedHead adds what stands outside the layers.
func compressedHead(m *maker) { m.balancer("output_hc", compressedStreams, 1) }

// summary adds what makes one key of a block.
func (m *maker) summary(prefix string, dim, ratio int) {
	width := dim
	if ratio == 4 {
		width *= 2
	}
	m.matrix(prefix+"_kv", m.base, m.Embd, width, over(qkNorm, m.Embd))
	m.matrix(prefix+"_gate", m.base, m.Embd, width, over(1, m.Embd))
	m.floats(prefix+"_ape.weight", 1, width, ratio)
	m.norm(m.name(prefix+"_norm.weight"), dim, 1)
}

// compressedLayer adds a layer of DeepSeek-V4.
func compressedLayer(m *maker) {
	wide, ratio := m.Heads*m.HeadDim, compressedRatio(m.layer)
	for _, block := range []string{"hc_attn", "hc_ffn"} {
		m.balancer(m.name(block), (2+compressedStreams)*compressedStreams, 3)
	}
	m.norm(m.name("attn_norm.weight"), m.Embd, 1)
	m.floats("attn_sinks.weight", 1, m.Heads)
	m.matrix("attn_q_a", m.base, m.Embd, m.QRank, over(1, m.Embd))
	m.norm(m.name("attn_q_a_norm.weight"), m.QRank, 1)
	m.matrix("attn_q_b", m.base, m.QRank, wide, over(1, m.QRank))
	m.matrix("attn_kv", m.base, m.Embd, m.HeadDim, over(1, m.Embd))
	m.norm(m.name("attn_kv_a_norm.weight"), m.HeadDim, keyNorm)
	m.matrix("attn_output_a", m.base, wide/m.Groups, m.Groups*m.GroupRank, over(1, wide/m.Groups))
	m.matrix("attn_output_b", m.base, m.Groups*m.GroupRank, m.Embd, over(m.branch/attnStd/keyNorm, m.Groups*m.GroupRank))
	if ratio > 0 {
		m.summary("attn_compressor", m.HeadDim, ratio)
	}
	if ratio == 4 {
		m.matrix("indexer.attn_q_b", m.base, m.QRank, m.IndexHeads*m.IndexDim, over(1, m.QRank))
		m.matrix("indexer.proj", m.base, m.Embd, m.IndexHeads, over(1, m.Embd))
		m.summary("indexer_compressor", m.IndexDim, ratio)
	}
	m.latentExperts(latentScale)
}
