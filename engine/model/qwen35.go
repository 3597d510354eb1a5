package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() {
	register("qwen35moe", "Qwen3.5-35B-A3B, Qwen3.6-35B-A3B", func(l *loader) (Arch, error) { return newQwen35(l, false) })
	register("qwen35", "Qwen3.5-0.8B to Qwen3.5-27B", func(l *loader) (Arch, error) { return newQwen35(l, false) })
	register("qwen3next", "Qwen3-Next-80B-A3B, Qwen3-Coder-Next", func(l *loader) (Arch, error) { return newQwen35(l, true) })
}

// newQwen35 builds Qwen3.5, Qwen3.6 and Qwen3-Next: gated delta-net layers, between
// which every fourth has attention behind an output gate, and routed experts beside a
// shared one that each token opens as far as it likes, or in dense models one
// feed-forward network. Qwen3-Next has the heads in another order.
func newQwen35(l *loader, grouped bool) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: headNorms, gate: queryGate}
	delta := deltaSpec{deltaShape: l.deltaShape(), grouped: grouped}
	second := func(i int) block {
		return l.ffn(i, embd, l.key("feed_forward_length"), "post_attention_norm", kernel.SiLU)
	}
	if l.some("expert_count") > 0 {
		moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("expert_feed_forward_length"), input: "post_attention_norm", act: kernel.SiLU,
			sharedFF: l.key("expert_shared_feed_forward_length"), sharedGated: true}
		moe.route.normalise = true
		second = func(i int) block { return l.moe(i, embd, moe) }
	}
	for i, recurrent := range l.recurrentLayers(layers) {
		if recurrent {
			d.add(l.delta(i, embd, delta), second(i))
		} else {
			d.add(l.attention(i, embd, attention), second(i))
		}
	}
	return d, l.err
}
