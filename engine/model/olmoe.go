package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("olmoe", "OLMoE-1B-7B", newOLMoE) }

// newOLMoE builds OLMoE: queries and keys normed over their whole width, and routed
// experts whose weights are their probabilities as they are.
func newOLMoE(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: wideNorms}
	moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
