package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("llama", "Mixtral-8x7B, Mixtral-8x22B, Llama 2, Llama 3, Mistral 7B", newLlama) }

// newLlama builds Mixtral and other models of the llama family, with experts and
// without.
func newLlama(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNorm, shape.keyDim)}
	if l.has("rope_freqs.weight") {
		attention.rope.factors = l.floats("rope_freqs.weight", attention.rope.spec.Dims/2)
	}
	second := func(i int) block { return l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU) }
	if l.some("expert_count") > 0 {
		moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
		moe.route.normalise = true
		second = func(i int) block { return l.moe(i, embd, moe) }
	}
	for i := range layers {
		d.add(l.attention(i, embd, attention), second(i))
	}
	return d, l.err
}
