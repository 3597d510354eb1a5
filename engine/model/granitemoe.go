package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("granitemoe", "Granite-3-1B-A400M, Granite-3-3B-A800M", newGraniteMoE) }

// newGraniteMoE builds Granite's models with experts, which scale the embedding,
// what each block adds, and the logits.
func newGraniteMoE(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	if scale := l.floatOr("attention.scale", 0); scale != 0 {
		shape.scale = float32(scale)
	}
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNorm, shape.keyDim)}
	moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("feed_forward_length"), input: "ffn_norm", act: kernel.SiLU,
		sharedFF: l.some("expert_shared_feed_forward_length")}
	moe.route.normalise = true
	d.embdScale, d.blockScale = float32(l.floatOr("embedding_scale", 0)), float32(l.floatOr("residual_scale", 0))
	if s := l.floatOr("logit_scale", 0); s != 0 {
		d.logitScale = float32(1 / s)
	}
	if !l.boolOr("rope.scaling.finetuned", true) {
		attention.rope = nil // positions are not told apart
	}
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
