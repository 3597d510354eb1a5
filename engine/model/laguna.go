package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("laguna", "Laguna XS.2, Laguna S.2, Laguna M.1", newLaguna) }

// newLaguna builds poolside's Laguna: attention behind an output gate, whose layers see
// a window but for every fourth, and which have more heads there; dense layers first,
// then routed experts beside a shared one.
func newLaguna(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shapes := l.attentionShapes(embd, layers)
	rope := l.rope(vec.RopeNeox, shapes[0].keyDim)
	window, period, windowRope := l.some("attention.sliding_window"), 4, rope
	if window > 0 {
		windowRope = l.windowRope(vec.RopeNeox, shapes[0].keyDim, rope.spec.Base)
		if key := l.prefix + "attention.sliding_window_pattern"; l.file.Meta.Has(key) {
			if n, err := l.file.Meta.Int(key); err == nil && n > 0 { // an array says nothing
				period = int(n)
			}
		}
	}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU,
		sharedFF: l.some("expert_shared_feed_forward_length")}
	dense := l.some("leading_dense_block_count")
	for i, shape := range shapes {
		attention := attentionSpec{attentionShape: shape, rope: rope, qkNorms: headNorms, gate: softplusGate}
		if window > 0 && i%period != 0 {
			attention.window, attention.rope = window, windowRope
		}
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
