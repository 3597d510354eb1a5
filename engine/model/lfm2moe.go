package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() {
	register("lfm2moe", "LFM2-8B-A1B, LFM2-24B-A2B", newLFM2)
	register("lfm2", "LFM2-350M to LFM2-2.6B", newLFM2)
}

// newLFM2 builds LFM2: short convolutions, between which some layers have attention,
// dense layers first, then routed experts; in dense models nothing else.
func newLFM2(l *loader) (Arch, error) {
	d := l.decoderWithNorm("token_embd_norm.weight")
	embd, layers := d.info.Embd, d.info.Layers
	shapes := l.attentionShapes(embd, layers)
	rope := l.rope(vec.RopeNeox, shapes[0].keyDim)
	dense := layers
	moe := moeSpec{input: "ffn_norm", act: kernel.SiLU}
	if l.some("expert_count") > 0 {
		moe.route, moe.ff, dense = l.routingByKeys(scoreSigmoid), l.key("expert_feed_forward_length"), l.some("leading_dense_block_count")
		moe.route.normalise, moe.route.scale = true, 0
	}
	for i, shape := range shapes {
		var first, second block
		if shape.kvHeads > 0 {
			first = l.attention(i, embd, attentionSpec{attentionShape: shape, rope: rope, qkNorms: headNorms})
		} else {
			first = l.shortConv(i, embd)
		}
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		}
		d.add(first, second)
	}
	return d, l.err
}
