package synth

import "fmt"

// The families here are attention, then a feed-forward network or experts, in every
// layer. What they do not share stands in their rows.
func init() {
	heads := attentionKind{headNorms: true}
	families["qwen2moe"] = family{pre: "qwen2", check: func(s *Spec) error { return s.needs(sharedSizes) }, keys: sharedKeys, layer: func(m *maker) {
		m.attention(attentionKind{biased: true})
		m.moe(moeKind{norm: "ffn_norm", hidden: hiddenStd, share: 2 * bothShare}) // its weights sum to less than one
		m.floats("ffn_gate_inp_shexp.weight", over(1, m.Embd), m.Embd)
		m.dense("_shexp", m.SharedFF, bothShare/gatedStd)
	}}
	families["olmoe"] = family{pre: "olmo", check: func(s *Spec) error { return s.needs() }, keys: expertKeys, layer: func(m *maker) {
		m.attention(attentionKind{wideNorms: true})
		m.moe(moeKind{norm: "ffn_norm", hidden: hiddenStd, share: 2})
	}}
	families["llama"] = family{pre: "llama-bpe", dense: true, check: (*Spec).checkPlain, keys: plainKeys, layer: func(m *maker) {
		m.attention(attentionKind{})
		m.second("ffn_norm")
	}}
	families["granitemoe"] = family{pre: "refact", check: func(s *Spec) error { return s.needs() }, keys: graniteKeys, layer: func(m *maker) {
		m.attention(attentionKind{})
		m.second("ffn_norm")
	}}
	families["minimax-m2"] = family{pre: "minimax-m2", check: func(s *Spec) error { return s.needs() }, keys: minimaxKeys, layer: func(m *maker) {
		m.attention(attentionKind{wideNorms: true})
		m.moe(moeKind{norm: "ffn_norm", hidden: hiddenStd, share: 1, biased: true})
	}}
	families["ernie4_5-moe"] = family{pre: "llama-bpe", check: (*Spec).checkLead, keys: ernieKeys, layer: func(m *maker) {
		m.attention(attentionKind{})
		m.lead("ffn_norm")
	}}
	families["glm4moe"] = family{pre: "glm4", check: (*Spec).checkLead, keys: leadKeys, layer: func(m *maker) {
		m.attention(attentionKind{headNorms: true, biased: true})
		m.lead("post_attention_norm")
	}}
	families["bailingmoe2"] = family{pre: "bailingmoe2", check: (*Spec).checkLead, keys: leadKeys, layer: func(m *maker) {
		m.attention(heads)
		m.lead("ffn_norm")
	}}
	// Dense ones, to be run beside the peer: they have nothing to stream.
	families["qwen3"] = family{pre: "qwen2", dense: true, check: func(s *Spec) error { return s.checkDense() }, keys: plainKeys, layer: func(m *maker) {
		m.attention(heads)
		m.second("ffn_norm")
	}}
	families["glm4"] = family{pre: "glm4", dense: true, check: func(s *Spec) error { return s.checkDense() }, keys: plainKeys, layer: func(m *maker) {
		m.attention(attentionKind{biased: true})
		m.norm(m.name("post_attention_norm.weight"), m.Embd, m.branch)
		m.norm(m.name("ffn_norm.weight"), m.Embd, 1)
		m.matrix("ffn_up", m.base, m.Embd, 2*m.DenseFF, over(1, m.Embd)) // the gate's rows first
		m.matrix("ffn_down", m.narrow, m.DenseFF, m.Embd, over(1/hiddenStd, m.DenseFF))
		m.norm(m.name("post_ffw_norm.weight"), m.Embd, m.branch)
	}}
	families["qwen35"] = family{pre: "qwen35", dense: true, check: func(s *Spec) error { return s.checkDense(recurrentSizes) }, keys: (*Spec).deltaKeys,
		layer: func(m *maker) {
			if (m.layer+1)%m.Interval != 0 {
				m.delta(false)
			} else {
				m.attention(attentionKind{headNorms: true, gated: true})
			}
			m.second("post_attention_norm")
		}}
	lfm := families["lfm2moe"]
	lfm.dense, lfm.check = true, func(s *Spec) error { return s.checkDense([]string{"conv", "interval"}) }
	families["lfm2"] = lfm
}

// checkDense checks a spec of a family without experts; lists name the sizes that it
// needs beside those that all have.
func (s *Spec) checkDense(lists ...[]string) error {
	if s.Experts > 0 {
		return fmt.Errorf("experts is %d: %s has none", s.Experts, s.arch())
	}
	return s.needs(append(lists, []string{"dense-ff"})...)
}

// checkPlain checks a spec of a family with experts or without.
func (s *Spec) checkPlain() error {
	if s.Experts == 0 {
		return s.needs([]string{"dense-ff"})
	}
	return s.needs()
}

// checkLead checks a spec of a family whose first layers are dense, with a shared
// expert that is a number of routed ones in size.
func (s *Spec) checkLead() error {
	if err := s.needs(denseSizes, sharedSizes); err != nil {
		return err
	}
	if s.SharedFF%s.ExpertFF != 0 {
		return fmt.Errorf("shared-ff (%d) is not a multiple of expert-ff (%d)", s.SharedFF, s.ExpertFF)
	}
	return nil
}

// second adds the second half of a layer: experts, or one network where there are none.
func (m *maker) second(norm string) {
	if m.Experts > 0 {
		m.moe(moeKind{norm: norm, hidden: hiddenStd, share: 1})
		return
	}
	m.norm(m.name(norm+".weight"), m.Embd, 1)
	m.dense("", m.DenseFF, 1)
}

// lead adds the second half of a layer whose experts stand beside a shared one, after
// the first layers, which are dense.
func (m *maker) lead(norm string) {
	m.denseOrMoE(norm, bothShare)
	if m.layer >= m.Dense {
		m.dense("_shexp", m.SharedFF, bothShare)
	}
}

// plainKeys are those of a family whose experts, or whose one network, are told by
// feed_forward_length.
func plainKeys(s *Spec) []key {
	if s.Experts > 0 {
		return expertKeys(s)
	}
	return []key{{"feed_forward_length", uint32(s.DenseFF)}}
}

func expertKeys(s *Spec) []key { return []key{{"feed_forward_length", uint32(s.ExpertFF)}} }

func sharedKeys(s *Spec) []key {
	return []key{{"expert_shared_feed_forward_length", uint32(s.SharedFF)}}
}

// graniteKeys have the scales of the stream do nothing but be there: the weights have
// the sizes already.
func graniteKeys(s *Spec) []key {
	return append(expertKeys(s), key{"embedding_scale", float32(1)}, key{"residual_scale", float32(1)}, key{"logit_scale", float32(1)})
}

func minimaxKeys(s *Spec) []key {
	return append(expertKeys(s), key{"expert_gating_func", uint32(gateSigmoid)})
}

func ernieKeys(s *Spec) []key {
	return []key{{"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)}, {"interleave_moe_layer_step", uint32(1)},
		{"expert_shared_count", uint32(s.SharedFF / s.ExpertFF)}, {"expert_shared_feed_forward_length", uint32(s.SharedFF)}}
}

// leadKeys are those of GLM-4.5 and Ling 2. The length of the shared expert is that of
// one routed one, times their count.
func leadKeys(s *Spec) []key {
	return []key{{"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)}, {"expert_gating_func", uint32(gateSigmoid)},
		{"expert_weights_norm", true}, {"expert_weights_scale", float32(1)}, {"expert_shared_count", uint32(s.SharedFF / s.ExpertFF)},
		{"expert_shared_feed_forward_length", uint32(s.ExpertFF)}}
}
