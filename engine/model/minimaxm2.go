package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("minimax-m2", "MiniMax-M2", newMiniMaxM2) }

// newMiniMaxM2 builds MiniMax M2: queries and keys normed over their whole width, a
// part of each head rotated, and experts that each have a score of their own.
func newMiniMaxM2(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: wideNorms}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
	moe.route.normalise = true
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
