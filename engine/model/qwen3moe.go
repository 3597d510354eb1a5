package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("qwen3moe", "Qwen3-30B-A3B, Qwen3-Coder-30B-A3B, Qwen3-235B-A22B", newQwen3MoE) }

// newQwen3MoE builds Qwen3-30B-A3B and its relatives: grouped-query attention with
// per-head norms of queries and keys, and in every layer routed experts behind
// a softmax router whose chosen weights are normalised.
func newQwen3MoE(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: headNorms}
	moe := moeSpec{route: l.routing(scoreSoftmax), input: "ffn_norm", act: kernel.SiLU}
	moe.route.normalise = true
	moe.ff = l.keyOr("expert_feed_forward_length", max(1, l.keyOr("feed_forward_length", 1)/moe.route.used))
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.moe(i, embd, moe))
	}
	return d, l.err
}
