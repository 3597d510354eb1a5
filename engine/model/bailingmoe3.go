package model

import (
	"fmt"

	"bmoe/engine/kernel"
)

func init() { register("bailingmoe3", "Ling 3.0", newBailingMoE3) }

// newBailingMoE3 builds Ling 3: KDA layers, between which some have latent attention
// behind an output gate; dense layers first, then experts chosen from the best groups,
// beside a shared one. Layers may limit what their activations make.
func newBailingMoE3(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	attention := l.latentShape(layers)
	attention.gated = true
	turn, sharper := l.latentRope(attention)
	attention.scale *= sharper
	delta := kdaShape{heads: attention.heads, size: l.key("kda.head_dim"), taps: l.key("ssm.conv_kernel"), bound: float32(l.floatOr("kda.gate_lower_bound", 0))}
	if l.err == nil && (!(delta.bound < 0) || !l.boolOr("kda.safe_gate", true)) {
		l.fail(fmt.Errorf("%skda.gate_lower_bound is %v, and its gate is bounded from below (kda.safe_gate): %v; known are bounds below 0",
			l.prefix, delta.bound, l.boolOr("kda.safe_gate", true)))
	}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "ffn_norm",
		sharedFF: l.some("expert_shared_feed_forward_length")}
	dense, kvHeads := l.some("leading_dense_block_count"), l.perLayer("attention.head_count_kv", layers, 0)
	limits, sharedLimits := l.limits("swiglu_clamp_exp", layers), l.limits("swiglu_clamp_shexp", layers)
	for i := range layers {
		moe.act, moe.sharedAct = kernel.LimitedSiLU(limits[i]), kernel.LimitedSiLU(sharedLimits[i])
		var first, second block
		if kvHeads[i] > 0 {
			first = l.latent(i, embd, attention, turn)
		} else {
			first = l.kda(i, embd, delta)
		}
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", moe.sharedAct)
		}
		d.add(first, second)
	}
	return d, l.err
}
