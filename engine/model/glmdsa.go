package model

import (
	"fmt"

	"bmoe/engine/kernel"
)

func init() { register("glm-dsa", "GLM-5", newGLMDSA) }

// newGLMDSA builds GLM-5: latent attention to the keys that an indexer chooses, of
// which some layers have one of their own and the others take the choice of the layer
// before; dense layers first, then routed experts beside a shared one.
func newGLMDSA(l *loader) (Arch, error) {
	d := l.decoder()
	embd, layers := d.info.Embd, d.info.Layers
	shape := l.latentShape(layers)
	l.key("attention.q_lora_rank") // the indexer needs it
	turn, sharper := l.latentRope(shape)
	shape.scale *= sharper
	index := l.indexShape(1)
	if index.dim < turn.spec.Dims {
		l.fail(fmt.Errorf("rope over %d entries of an indexer's keys of %d (%sattention.indexer.key_length)", turn.spec.Dims, index.dim, l.prefix))
	}
	moe := moeSpec{route: l.routingByKeys(scoreSigmoid), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU}
	moe.sharedFF = moe.ff * l.some("expert_shared_count")
	dense := l.some("leading_dense_block_count")
	for i, indexed := range l.indexedLayers(layers) {
		a := l.latent(i, embd, shape, turn)
		a.sparse(index)
		if indexed {
			a.chooseBy(l.indexer(i, embd, shape.qRank, index))
		}
		var second block
		if i >= dense {
			second = l.moe(i, embd, moe)
		} else {
			second = l.ffn(i, embd, l.key("feed_forward_length"), "ffn_norm", kernel.SiLU)
		}
		d.add(a, second)
	}
	return d, l.err
}
