package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("gpt-oss", "gpt-oss-20b, gpt-oss-120b", newGPTOSS) }

// newGPTOSS builds gpt-oss: attention with biases and sinks, whose layers see a
// window and everything in turns, and experts with biases behind a router that
// weighs the chosen ones by their softmax.
func newGPTOSS(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), sinks: true}
	moe := moeSpec{route: l.routing(scoreChosen), ff: l.key("expert_feed_forward_length"), input: "post_attention_norm", act: kernel.ClampedSwiGLU}
	window, period := l.key("attention.sliding_window"), l.keyOr("attention.sliding_window_pattern", 2)
	for i := range layers {
		attention.window = 0
		if i%period < period-1 {
			attention.window = window
		}
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
