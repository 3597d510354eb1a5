package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("glm4moe", "GLM-4.5, GLM-4.5-Air, GLM-4.6", newGLM4MoE) }

// newGLM4MoE builds GLM-4.5 and 4.6: attention with biases, in the large models with
// norms of queries and keys, dense layers first, then routed experts beside a shared
// one. The last layers, which draft further tokens, are not run.
func newGLM4MoE(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim)}
	if l.has("blk.0.attn_q_norm.weight") {
		attention.qkNorms = headNorms
	}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "post_attention_norm", act: kernel.SiLU}
	moe.sharedFF = moe.ff * l.some("expert_shared_count")
	dense := l.some("leading_dense_block_count")
	for i := range layers {
		var second block
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "post_attention_norm", kernel.SiLU)
		}
		d.add(l.attention(i, embd, attention), second)
	}
	return d, l.err
}
