package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("bailingmoe2", "Ling 2.0, Ring 2.0", newBailingMoE2) }

// newBailingMoE2 builds Ling 2 and Ring 2: dense layers first, then experts chosen
// from the best groups, beside a shared one.
func newBailingMoE2(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: headNorms}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
	moe.sharedFF = l.some("expert_shared_feed_forward_length") * l.some("expert_shared_count")
	dense := l.some("leading_dense_block_count")
	for i := range layers {
		var second block
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		}
		d.add(l.attention(i, embd, attention), second)
	}
	return d, l.err
}
