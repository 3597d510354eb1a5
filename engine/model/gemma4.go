package model

import (
	"fmt"
	"math"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("gemma4", "Gemma 4 26B-A4B, 31B, E2B, E4B", newGemma4) }

// newGemma4 builds Gemma 4: layers with a window and layers without, which have heads
// of other sizes; norms after each block; experts beside a feed-forward network that
// every token goes through; in the small models a second embedding with a part for
// every layer, and last layers that take the keys and values of earlier ones.
func newGemma4(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	d.embdScale, d.softCap = float32(math.Sqrt(float64(embd))), float32(l.floatOr("final_logit_softcapping", 0))
	windowed := l.flags("attention.sliding_window_pattern", layers)
	// Values of the full layers are made of the keys where there is no matrix for them.
	full := attentionSpec{qkNorms: headNorms, vNorms: true, post: "post_attention_norm"}
	local := full
	full.rope = l.rope(vec.RopeNeox, l.key("attention.key_length"))
	if l.has("rope_freqs.weight") {
		full.rope.factors = l.floats("rope_freqs.weight", full.rope.spec.Dims/2)
	}
	if local.window = l.some("attention.sliding_window"); local.window > 0 {
		local.rope = l.windowRope(vec.RopeNeox, l.keyOr("attention.key_length_swa", l.key("attention.key_length")), 10000)
	}
	shapes := l.attentionShapes(embd, layers)
	own := layers - l.some("attention.shared_kv_layers")
	if own < 2 && own < layers {
		l.fail(fmt.Errorf("%sattention.shared_kv_layers leaves %d of %d layers with keys: too few", l.prefix, own, layers))
		return d, l.err
	}

	ff := l.perLayer("feed_forward_length", layers, 0)
	moe := moeSpec{input: "pre_ffw_norm_2", act: kernel.GELU, sharedAct: kernel.GELU, ownNorms: true}
	if l.some("expert_count") > 0 {
		moe.route, moe.ff = l.routing(scoreSoftmax), l.key("expert_feed_forward_length")
		moe.route.normalise = true
	}
	var parts *perLayer
	if size := l.some("embedding_length_per_layer_input"); size > 0 {
		parts = l.perLayerEmbedding(embd, layers, size, d.info.Vocab)
	}
	blocks := make([]*attention, layers)
	for i := range layers {
		spec := full
		if windowed[i] {
			spec = local
		}
		spec.attentionShape = shapes[i]
		spec.keyDim, spec.valDim = l.key("attention.key_length"), l.keyOr("attention.value_length", l.key("attention.key_length"))
		if windowed[i] {
			if local.window == 0 {
				l.fail(fmt.Errorf("layer %d has a window, but %sattention.sliding_window is missing", i, l.prefix))
				return d, l.err
			}
			spec.keyDim = l.keyOr("attention.key_length_swa", spec.keyDim)
			spec.valDim = l.keyOr("attention.value_length_swa", spec.keyDim)
		}
		spec.scale = 1
		if i >= own {
			spec.from = blocks[own-1]
			if windowed[i] {
				spec.from = blocks[own-2]
			}
			if spec.from.window != spec.window || spec.from.attentionShape != spec.attentionShape {
				l.fail(fmt.Errorf("layer %d cannot take the keys and values of an earlier one: their shapes differ", i))
				return d, l.err
			}
			spec.from.lent = true
		}
		blocks[i] = l.attention(i, embd, spec)

		var second block
		if l.has(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)) {
			moe.sharedFF = ff[i]
			second = l.moe(i, embd, moe)
		} else {
			f := l.ffn(i, embd, ff[i], "ffn_norm", kernel.GELU)
			f.post = l.vector(fmt.Sprintf("blk.%d.post_ffw_norm.weight", i), embd)
			second = f
		}
		layer := []block{blocks[i], second, l.layerEnd(i, embd, parts)}
		if i == 0 && parts != nil {
			layer = append([]block{parts}, layer...)
		}
		d.add(layer...)
	}
	return d, l.err
}
