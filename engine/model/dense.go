package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// Families without experts. Nothing of them is streamed; they share all blocks.

func init() {
	register("qwen3", "Qwen3-0.6B to Qwen3-32B", newQwen3)
	register("glm4", "GLM-4-9B-0414, GLM-4-32B-0414", newGLM4)
}

// newQwen3 builds Qwen3's dense models.
func newQwen3(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: headNorms}
	for i := range layers {
		d.add(l.attention(i, embd, attention), l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU))
	}
	return d, l.err
}

// newGLM4 builds GLM-4 of April 2025: norms after each block, too.
func newGLM4(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNorm, shape.keyDim), post: "post_attention_norm"}
	for i := range layers {
		f := l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		f.post = l.vector(l.names(i)("post_ffw_norm.weight"), embd)
		d.add(l.attention(i, embd, attention), f)
	}
	return d, l.err
}
