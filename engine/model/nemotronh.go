package model

import (
	"fmt"

	"bmoe/engine/kernel"
)

func init() { register("nemotron_h_moe", "Nemotron-3-Nano-30B-A3B, Nemotron-3-Super", newNemotronH) }

// newNemotronH builds Nemotron 3: each layer is one block, of Mamba-2, of attention
// that does not tell positions apart, or of experts without gates.
func newNemotronH(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	mamba := l.mambaShape()
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "attn_norm", act: kernel.ReLUSquared, sharedAct: kernel.ReLUSquared,
		sharedFF: l.some("expert_shared_feed_forward_length"), latent: l.some("moe_latent_size")}
	if moe.route.score != scoreSigmoid {
		l.fail(fmt.Errorf("%sexpert_gating_func is %d; experts of this architecture are scored by 2 (sigmoid)", l.prefix, moe.route.score))
	}
	ff := l.perLayer("feed_forward_length", layers, 0)
	for i, shape := range l.attentionShapes(embd, layers) {
		switch {
		case shape.kvHeads > 0:
			d.add(l.attention(i, embd, attentionSpec{attentionShape: shape}))
		case ff[i] == 0:
			d.add(l.mamba(i, embd, mamba))
		default:
			d.add(l.moe(i, embd, moe))
		}
	}
	return d, l.err
}
