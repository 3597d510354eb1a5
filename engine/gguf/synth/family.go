package synth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// key is one entry of a model's metadata; a family's keys stand without its prefix.
type key struct {
	name string
	x    any
}

// family is how the models of one architecture are made.
type family struct {
	pre    string              // tokenizer.ggml.pre
	check  func(s *Spec) error // of what not all families have
	keys   func(s *Spec) []key // beside those that all have
	layer  func(m *maker)      // adds the tensors of one layer
	norm   string              // name of the last norm; empty: output_norm
	single bool                // each layer is one block
	dense  bool                // a model may have no experts
	head   func(m *maker)      // adds what stands outside the layers, beside what all have; nil: nothing
}

var families = map[string]family{
	archQwen3MoE: {
		pre:   "qwen2",
		check: func(s *Spec) error { return s.needs() },
		layer: func(m *maker) {
			m.attention(attentionKind{headNorms: true})
			m.moe(moeKind{norm: "ffn_norm", hidden: hiddenStd, share: 1})
		},
	},
	archGPTOSS: {
		pre:   "gpt-4o",
		check: func(s *Spec) error { return s.needs(windowSizes) },
		keys:  func(s *Spec) []key { return []key{{"attention.sliding_window", uint32(s.Window)}} },
		layer: gptOSSLayer,
	},
	"bailingmoe3": {
		pre:   "bailingmoe2",
		check: (*Spec).checkLatent,
		keys: func(s *Spec) []key {
			kv := make([]int32, s.Layers)
			for i := range kv {
				if (i+1)%s.Interval == 0 {
					kv[i] = 1
				}
			}
			return []key{{"attention.head_count_kv", kv}, {"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)},
				{"attention.q_lora_rank", uint32(s.QRank)}, {"attention.kv_lora_rank", uint32(s.KVRank)}, {"attention.key_length", uint32(s.KVRank + s.RopeDims)},
				{"attention.key_length_mla", uint32(s.NopeDim + s.RopeDims)}, {"attention.value_length_mla", uint32(s.ValueDim)},
				{"ssm.conv_kernel", uint32(s.Conv)}, {"kda.head_dim", uint32(s.StateSize)}, {"kda.safe_gate", true}, {"kda.gate_lower_bound", float32(-5)},
				{"expert_gating_func", uint32(gateSigmoid)}, {"expert_weights_norm", true}, {"expert_shared_count", uint32(1)},
				{"expert_shared_feed_forward_length", uint32(s.SharedFF)}}
		},
		layer: func(m *maker) {
			if (m.layer+1)%m.Interval == 0 {
				m.latent(true)
			} else {
				m.kda()
			}
			m.denseOrMoE("ffn_norm", bothShare)
			if m.layer >= m.Dense {
				m.dense("_shexp", m.SharedFF, bothShare)
			}
		},
	},
	"qwen4exp": {
		pre: "qwen35",
		check: func(s *Spec) error {
			if s.Embd%ngrams != 0 {
				return fmt.Errorf("embd is %d, not a multiple of %d: it is made of as many rows of the table of n-grams", s.Embd, ngrams)
			}
			return s.checkDelta(streamSizes, indexSizes, []string{"ngram-rows"})
		},
		keys: (*Spec).qwen4Keys,
		layer: func(m *maker) {
			if m.layer == 0 {
				m.ngram()
			}
			m.qwen35Layer("ffn_norm", false)
			if (m.layer+1)%m.Interval == 0 {
				m.blockIndex()
			}
		},
	},
	"laguna": {
		pre:   "laguna",
		check: func(s *Spec) error { return s.needs(denseSizes, sharedSizes, windowSizes) },
		keys: func(s *Spec) []key {
			return []key{{"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)}, {"attention.sliding_window", uint32(s.Window)},
				{"rope.freq_base_swa", float32(1e4)}, {"rope.dimension_count_swa", uint32(s.HeadDim)}, {"expert_gating_func", uint32(gateSigmoid)}, {"expert_weights_norm", true}, {"expert_shared_feed_forward_length", uint32(s.SharedFF)}}
		},
		layer: func(m *maker) {
			m.attention(attentionKind{headNorms: true, softplus: true})
			m.denseOrMoE("ffn_norm", bothShare)
			if m.layer >= m.Dense {
				m.dense("_shexp", m.SharedFF, bothShare)
			}
		},
	},
	"lfm2moe": {
		pre:   "lfm2",
		norm:  "token_embd_norm",
		check: func(s *Spec) error { return s.needs(denseSizes, []string{"conv", "interval"}) },
		keys: func(s *Spec) []key {
			kv := make([]int32, s.Layers)
			for i := range kv {
				if (i+1)%s.Interval == 0 {
					kv[i] = int32(s.KVHeads)
				}
			}
			return []key{{"attention.head_count_kv", kv}, {"feed_forward_length", uint32(s.DenseFF)}, {"leading_dense_block_count", uint32(s.Dense)},
				{"shortconv.l_cache", uint32(s.Conv)}, {"expert_gating_func", uint32(gateSigmoid)}}
		},
		layer: func(m *maker) {
			if (m.layer+1)%m.Interval == 0 {
				m.attention(attentionKind{headNorms: true})
			} else {
				m.shortConv()
			}
			m.denseOrMoE("ffn_norm", 1)
		},
	},
	"nemotron_h_moe": {pre: "pixtral", single: true, check: (*Spec).checkMamba, keys: (*Spec).nemotronKeys, layer: nemotronLayer},
	"qwen35moe":      {pre: "qwen35", check: func(s *Spec) error { return s.checkDelta() }, keys: (*Spec).deltaKeys, layer: func(m *maker) { m.qwen35Layer("post_attention_norm", false) }},
	"qwen3next":      {pre: "qwen2", check: func(s *Spec) error { return s.checkDelta() }, keys: (*Spec).deltaKeys, layer: func(m *maker) { m.qwen35Layer("post_attention_norm", true) }},
}

// gateSigmoid is the expert_gating_func by which each expert is scored on its own.
const gateSigmoid = 2

// The families that tests name.
const (
	archQwen3MoE = "qwen3moe"
	archGPTOSS   = "gpt-oss"
)

// Families returns the names of the architectures that can be written, sorted.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// The sizes that only some families have, by name.
var (
	recurrentSizes = []string{"key-heads", "value-heads", "state-size", "conv", "interval"}
	windowSizes    = []string{"window"}
	sharedSizes    = []string{"shared-ff"}
	denseSizes     = []string{"dense", "dense-ff"}
	latentSizes    = []string{"q-rank", "kv-rank", "nope-dim", "value-dim"}
	streamSizes    = []string{"streams", "stream-rank"}
	indexSizes     = []string{"index-heads", "index-dim", "index-top", "index-ratio"}
	optionalSizes  = []string{"rope-dims", "latent"}
)

// needs refuses a spec that lacks one of the sizes which not all families have, or
// has one that is not listed.
func (s *Spec) needs(lists ...[]string) error {
	names := slices.Concat(lists...)
	const most = 1 << 30
	for _, x := range s.Sizes() {
		switch {
		case x.hi > 0 || slices.Contains(optionalSizes, x.Name):
		case !slices.Contains(names, x.Name):
			if *x.Value != 0 {
				return fmt.Errorf("%s is %d: %s has none", x.Name, *x.Value, s.arch())
			}
		case *x.Value < 1 || *x.Value > most:
			return fmt.Errorf("%s is %d: %s needs it to be 1 to %d", x.Name, *x.Value, s.arch(), most)
		}
	}
	return nil
}

// checkDelta checks a spec of a family with gated delta-net layers, and more.
func (s *Spec) checkDelta(more ...[]string) error {
	if err := s.needs(append(more, recurrentSizes, sharedSizes)...); err != nil {
		return err
	}
	if s.ValueHeads%s.KeyHeads != 0 {
		return fmt.Errorf("value-heads (%d) is not a multiple of key-heads (%d)", s.ValueHeads, s.KeyHeads)
	}
	return nil
}

// checkLatent checks a spec of a family with KDA and latent attention.
func (s *Spec) checkLatent() error {
	if err := s.needs(latentSizes, denseSizes, sharedSizes, []string{"state-size", "conv", "interval"}); err != nil {
		return err
	}
	if s.RopeDims == 0 {
		return fmt.Errorf("rope-dims is 0: %s needs it", s.arch())
	}
	return nil
}

// A token takes so many rows from the table of n-grams: eight for its last two ids, and
// eight for its last three.
const (
	ngramMost  = 3
	ngramHeads = 8
	ngrams     = (ngramMost - 1) * ngramHeads
)

func (s *Spec) qwen4Keys() []key {
	ratios := make([]int32, s.Layers)
	for i := range ratios {
		if (i+1)%s.Interval == 0 {
			ratios[i] = int32(s.IndexRatio)
		}
	}
	offsets, sizes := make([]uint64, ngrams), make([]uint64, ngrams)
	for i := range sizes {
		sizes[i] = uint64(s.NgramRows / ngrams)
		offsets[i] = uint64(i) * sizes[i]
	}
	return append(s.deltaKeys(),
		key{"hyper_connection.count", uint32(s.Streams)}, key{"hyper_connection.low_rank", uint32(s.StreamRank)},
		key{"attention.indexer.head_count", uint32(s.IndexHeads)}, key{"attention.indexer.key_length", uint32(s.IndexDim)},
		key{"attention.indexer.top_k", uint32(s.IndexTop)}, key{"attention.compress_ratios", ratios},
		key{"ple.layers", []int32{0}}, key{"ple.ngram_size", uint32(ngramMost)}, key{"ple.heads_per_ngram", uint32(ngramHeads)},
		key{"ple.conv_kernel", uint32(s.Conv)}, key{"ple.eos_token_id", uint32(s.Vocab - 1)},
		key{"embedding_length_per_layer_input", uint32(s.Embd / ngrams)},
		key{"ple.layer_multipliers", []uint64{31728839994745771, 17186002882972485, 15639423402461255}},
		key{"ple.head_offsets", offsets}, key{"ple.head_vocab_sizes", sizes})
}

func (s *Spec) deltaKeys() []key {
	turned := cmp.Or(s.RopeDims, s.HeadDim)
	return []key{
		{"expert_shared_feed_forward_length", uint32(s.SharedFF)},
		{"full_attention_interval", uint32(s.Interval)},
		{"ssm.conv_kernel", uint32(s.Conv)},
		{"ssm.state_size", uint32(s.StateSize)},
		{"ssm.group_count", uint32(s.KeyHeads)},
		{"ssm.time_step_rank", uint32(s.ValueHeads)},
		{"ssm.inner_size", uint32(s.ValueHeads * s.StateSize)},
		{"rope.dimension_sections", []int32{int32(turned/2+2) / 3, int32(turned/2+1) / 3, int32(turned/2) / 3, 0}},
	}
}

// qwen35Layer adds a layer of Qwen3.5 or Qwen3-Next.
func (m *maker) qwen35Layer(norm string, together bool) {
	if (m.layer+1)%m.Interval != 0 {
		m.delta(together)
	} else {
		m.attention(attentionKind{headNorms: true, gated: true})
	}
	m.moe(moeKind{norm: norm, hidden: hiddenStd, share: bothShare})
	m.floats("ffn_gate_inp_shexp.weight", over(1, m.Embd), m.Embd)
	m.dense("_shexp", m.SharedFF, bothShare/gatedStd)
}

// checkMamba checks a spec of a family with Mamba-2 layers.
func (s *Spec) checkMamba() error {
	if err := s.needs(recurrentSizes, sharedSizes, []string{"value-dim"}); err != nil {
		return err
	}
	switch {
	case s.ValueHeads%s.KeyHeads != 0:
		return fmt.Errorf("value-heads (%d) is not a multiple of key-heads (%d)", s.ValueHeads, s.KeyHeads)
	case s.Interval < 4:
		return fmt.Errorf("interval is %d: below 4 there is no room for every kind of layer", s.Interval)
	}
	return nil
}

// nemotronKind returns what a layer of Nemotron is: M (Mamba-2), E (experts) or
// * (attention), as in MEMEM*E for an interval of 7.
func (s *Spec) nemotronKind(layer int) byte {
	switch at := layer % s.Interval; {
	case at == s.Interval-2:
		return '*'
	case at == s.Interval-1, at%2 == 1:
		return 'E'
	}
	return 'M'
}

// nemotronScale is the factor on the weights of the chosen experts.
const nemotronScale = 2.5

func (s *Spec) nemotronKeys() []key {
	kv, ff := make([]int32, s.Layers), make([]int32, s.Layers)
	for i := range s.Layers {
		switch s.nemotronKind(i) {
		case '*':
			kv[i] = int32(s.KVHeads)
		case 'E':
			ff[i] = int32(s.ExpertFF)
		}
	}
	keys := []key{
		{"attention.head_count_kv", kv}, {"feed_forward_length", ff},
		{"expert_shared_count", uint32(1)}, {"expert_shared_feed_forward_length", uint32(s.SharedFF)},
		{"expert_weights_norm", true}, {"expert_weights_scale", float32(nemotronScale)}, {"expert_group_count", uint32(1)},
		{"rope.scaling.finetuned", false}, {"attention.layer_norm_epsilon", float32(1e-6)}, // the latter is of a draft head
		{"ssm.conv_kernel", uint32(s.Conv)}, {"ssm.inner_size", uint32(s.ValueHeads * s.ValueDim)}, {"ssm.state_size", uint32(s.StateSize)},
		{"ssm.time_step_rank", uint32(s.ValueHeads)}, {"ssm.group_count", uint32(s.KeyHeads)},
	}
	if s.Latent > 0 {
		keys = append(keys, key{"moe_latent_size", uint32(s.Latent)})
	}
	return keys
}

// nemotronLayer adds a layer of Nemotron.
func nemotronLayer(m *maker) {
	switch m.nemotronKind(m.layer) {
	case '*':
		m.attention(attentionKind{})
	case 'M':
		m.mamba()
	default:
		m.moe(moeKind{norm: "attn_norm", hidden: hiddenSquaredStd, share: bothShare / nemotronScale, ungated: true, biased: true})
		m.matrix("ffn_up_shexp", m.base, m.Embd, m.SharedFF, over(1, m.Embd))
		m.matrix("ffn_down_shexp", m.narrow, m.SharedFF, m.Embd, over(bothShare*m.branch/hiddenSquaredStd, m.SharedFF))
	}
}

// gptOSSLayer adds a layer of gpt-oss. Nothing norms its queries and keys, and its
// activation is larger.
func gptOSSLayer(m *maker) {
	m.attention(attentionKind{})
	m.moe(moeKind{norm: "post_attention_norm", hidden: hiddenClampedStd, share: 1})
	heads, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	m.floats("attn_sinks.weight", 1, m.Heads)
	m.floats("attn_q.bias", biasStd, heads)
	m.floats("attn_k.bias", biasStd, kv)
	m.floats("attn_v.bias", biasStd, kv)
	m.floats("attn_output.bias", m.branch*biasStd, m.Embd)
	m.floats("ffn_gate_inp.bias", biasStd, m.Experts)
	m.floats("ffn_gate_exps.bias", biasStd, m.ExpertFF, m.Experts)
	m.floats("ffn_up_exps.bias", biasStd, m.ExpertFF, m.Experts)
	m.floats("ffn_down_exps.bias", m.branch*biasStd, m.Embd, m.Experts)
}
