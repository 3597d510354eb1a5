package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("ernie4_5-moe", "ERNIE-4.5-21B-A3B, ERNIE-4.5-300B-A47B", newErnie) }

// newErnie builds ERNIE 4.5's models with experts: dense layers first, then routed
// experts, chosen by probabilities and a bias, beside a shared one.
func newErnie(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNorm, shape.keyDim)}
	moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU,
		sharedFF: l.some("expert_shared_feed_forward_length")}
	moe.route.biased, moe.route.normalise = true, true
	dense, every := l.some("leading_dense_block_count"), l.keyOr("interleave_moe_layer_step", 1)
	for i := range layers {
		var second block
		if i >= dense && (i+1)%every == 0 {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		}
		d.add(l.attention(i, embd, attention), second)
	}
	return d, l.err
}
