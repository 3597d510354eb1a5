package model

import "bmoe/engine/kernel"

func init() {
	register("deepseek2", "DeepSeek-V2-Lite, DeepSeek-V3, DeepSeek-R1, Kimi-K2, GLM-4.7-Flash", newDeepSeek2)
}

// newDeepSeek2 builds DeepSeek-V2, V3 and R1 and their relatives: latent attention,
// dense layers first, then routed experts beside a shared one. V2 scores experts by a
// softmax, V3 by sigmoids, with a bias for the choice.
func newDeepSeek2(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.latentShape(layers)
	turn, sharper := l.latentRope(shape)
	shape.scale *= sharper
	moe := moeSpec{route: l.routingByKeys(scoreSoftmax), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
	moe.sharedFF = moe.ff * l.some("expert_shared_count")
	dense := l.some("leading_dense_block_count")
	for i := range layers {
		var second block
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		}
		d.add(l.latent(i, embd, shape, turn), second)
	}
	return d, l.err
}
