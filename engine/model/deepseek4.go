package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("deepseek4", "DeepSeek-V4", newDeepSeek4) }

// newDeepSeek4 builds DeepSeek-V4: a residual of several streams; attention to the
// latest tokens and to summaries of those before; and routed experts beside a shared
// one, which the first layers look up by the token's id.
func newDeepSeek4(l *loader) (Arch, error) {
	d := l.bareDecoder()
	embd, layers := d.info.Embd, d.info.Layers
	mixers := l.sinkhornShape(embd)
	d.streams = mixers.streams
	l.mixers = func(layer int, norm string) mixer {
		name := l.names(layer)
		prefix := name("hc_attn")
		if norm == "ffn_norm" {
			prefix = name("hc_ffn")
		}
		return l.sinkhorn(prefix, name(norm+".weight"), mixers, false)
	}
	end := l.sinkhorn("output_hc", "output_norm.weight", mixers, true)
	d.outNorm, d.mixers = entry{mixer: end}, append(d.mixers, end)

	shape := l.compressedShape(layers)
	near := l.checkedRope(vec.RopeSpec{Kind: vec.RopeNorm, Dims: shape.rope, Base: l.floatOr("rope.freq_base", 10000)}, shape.dim, ropeKeys)
	far := l.rope(vec.RopeNorm, shape.dim) // scaled
	far.spec.Base = l.floatOr("attention.compress_rope_freq_base", far.spec.Base)
	far.spec.Magnitude, far.spec.AttnFactor = 1, 0
	far = l.checkedRope(far.spec, shape.dim, "attention.compress_rope_freq_base")
	moe := moeSpec{route: l.routingByKeys(scoreRootSoftplus), ff: l.key("expert_feed_forward_length"), input: "ffn_norm"}
	moe.sharedFF = moe.ff * l.some("expert_shared_count")
	limits := l.limits("swiglu_clamp_exp", layers)
	sharedLimits := limits
	if l.file.Meta.Has(l.prefix + "swiglu_clamp_shexp") {
		sharedLimits = l.limits("swiglu_clamp_shexp", layers)
	}
	hashed := l.some("hash_layer_count")
	for i, ratio := range l.perLayer("attention.compress_ratios", layers, 0) {
		a, turn := shape, near
		if ratio > 0 {
			a.ratio, turn = ratio, far
		}
		if ratio == indexedRatio {
			a.index = l.indexShape(ratio)
		}
		moe.act, moe.sharedAct, moe.hashed = kernel.SiLUOfLimited(limits[i]), kernel.SiLUOfLimited(sharedLimits[i]), i < hashed
		d.add(l.compressed(i, embd, a, turn), l.moe(i, embd, moe))
	}
	return d, l.err
}

// indexedRatio is the length of the blocks of which an indexer chooses; of longer ones
// every summary is seen.
const indexedRatio = 4
