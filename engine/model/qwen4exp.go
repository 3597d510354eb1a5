package model

import (
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

func init() { register("qwen4exp", "Qwen3.8-Flash-Next", newQwen4Exp) }

// newQwen4Exp builds Qwen3.8: what Qwen3.5 computes, over a residual of several streams,
// with attention to chosen blocks of keys, and with embeddings of n-grams in one layer.
func newQwen4Exp(l *loader) (Arch, error) {
	d := l.bareDecoder()
	embd, layers := d.info.Embd, d.info.Layers
	hyper := hyperShape{streams: l.key("hyper_connection.count"), embd: embd, rank: l.key("hyper_connection.low_rank")}
	d.streams = hyper.streams
	l.mixers = func(layer int, norm string) mixer {
		prefix := "hc_ffn"
		if norm == "attn_norm" {
			prefix = "hc_attn"
		}
		return l.hyper(l.names(layer)(prefix), hyper, true)
	}
	last := l.hyper("output_hc", hyper, false)
	d.outNorm.mixer, d.mixers = last, append(d.mixers, last)

	shape := l.attentionShape(embd, layers)
	attention := attentionSpec{attentionShape: shape, rope: l.rope(vec.RopeNeox, shape.keyDim), qkNorms: headNorms, gate: queryGate}
	delta := deltaSpec{deltaShape: l.deltaShape(), sigmoid: true}
	moe := moeSpec{route: l.routing(scoreSoftmax), ff: l.key("expert_feed_forward_length"), input: "ffn_norm", act: kernel.SiLU,
		sharedFF: l.key("expert_shared_feed_forward_length"), sharedGated: true}
	moe.route.normalise = true
	ratios := l.perLayer("attention.compress_ratios", layers, 0)
	recurrent, ngrams := l.recurrentLayers(layers), l.ngramLayer(layers)
	for i := range layers {
		var blocks []block
		if i == ngrams {
			blocks = append(blocks, l.ngram(i, embd, hyper.streams))
		}
		if recurrent[i] {
			blocks = append(blocks, l.delta(i, embd, delta))
		} else {
			a := l.attention(i, embd, attention)
			if ratios[i] > 0 {
				a.chooseBy(l.blockIndex(i, embd, ratios[i]))
			}
			blocks = append(blocks, a)
		}
		d.add(append(blocks, l.moe(i, embd, moe))...)
	}
	return d, l.err
}

// ngramLayer returns the layer that has n-gram embeddings; -1: none.
func (l *loader) ngramLayer(layers int) int {
	key := l.prefix + "ple.layers"
	if !l.file.Meta.Has(key) {
		return -1
	}
	list, err := l.file.Meta.Ints(key)
	switch {
	case err != nil:
		l.fail(err)
	case len(list) == 0:
	case len(list) > 1 || list[0] < 0 || list[0] >= int64(layers):
		l.fail(fmt.Errorf("%s is %v; known is one layer of %d", key, list, layers))
	default:
		return int(list[0])
	}
	return -1
}
