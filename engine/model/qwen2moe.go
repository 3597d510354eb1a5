package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("qwen2moe", "Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B", newQwen2MoE) }

// newQwen2MoE builds Qwen2-57B-A14B and Qwen1.5-MoE: attention with biases, and
// routed experts beside a shared one that each token opens as far as it likes.
func newQwen2MoE(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim)}
	moe := moeSpec{route: l.routing(scoreSoftmax), input: "ffn_norm", act: kernel.SiLU,
		sharedFF: l.key("expert_shared_feed_forward_length"), sharedGated: true}
	moe.ff = l.keyOr("expert_feed_forward_length", max(1, l.keyOr("feed_forward_length", 1)/moe.route.used))
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
