package synth

import (
	"fmt"
	"math"
	"strings"
)

// Topics. With random weights alone every token is routed anew in every layer: the
// residual stream soon forgets which token it began as, and what one layer's router
// says tells nothing of the next. Trained models are not like that. These models
// are built so that their own routers behave:
//
//   - An eighth of the embedding is the same for all tokens, the next is the token's
//     topic, which it shares with the other tokens of the topic, and a half is the
//     token's own. Layers leave all three alone, so that routing depends on them all
//     the way up.
//   - Layers write into the last quarter only. What they add grows by a constant
//     factor, and the norms undo that, so that in every layer the routers see the
//     same mixture of topic, token and what the layers before have made of the
//     context, which changes by the same part from layer to layer.
//   - The head likes common words, and those of the topic that it sees much more, so
//     that a text stays with a topic and its words for a while; what it sees besides
//     picks among them.
//
// The figures that come of it (docs/streaming.md) are near those recorded of trained
// models. The text is to be sampled: at temperature 0 it would go round in a circle.
const (
	topicStay     = 10.     // tokens that a text stays with a topic
	topicZipf     = 4       // exponent of the use of a topic's words
	topicFlat     = 16.     // added to their ranks: the first few are alike
	topicNoise    = 1.2     // std of the logits by what is not the topic
	commonShare   = 0.10    // of the energy that a router sees: what all tokens have alike,
	topicShare    = 0.47    // the topic's
	updateShare   = 0.15    // and what the layers have made; the rest is the token's
	topicSkew     = 0.30    // in place of routerSkew
	attnGrowth    = 1.04    // of the energy of what layers make, by an attention
	expertsGrowth = 1.15    // and by the experts
	untouched     = 1. / 24 // of what the first layer adds there, to where nothing is to be: block scales end near it
)

type topics struct {
	*Spec
	eighth  int64
	vectors [][]float32 // [1 + topics][eighth] of size 1; what all tokens have alike is the first
}

// topicOf returns a token's topic and its rank among the topic's words.
func (t *topics) topicOf(token int64) (topic, rank int64) {
	x := newRand(t.Seed, 0x70b1c5, uint64(token))
	return int64(x.next() % uint64(t.Topics)), token / int64(t.Topics)
}

// topics gives the embedding and the head their parts; nil if there are none.
func (s *Spec) topics(list []weight) (*topics, error) {
	if s.Topics == 0 {
		return nil, nil
	}
	t := &topics{Spec: s, eighth: int64(s.Embd) / 8}
	for _, w := range list {
		if n := int64(w.kind.BlockLen()); w.name != "output_norm.weight" && (s.Embd%8 != 0 || t.eighth%n != 0) {
			return nil, fmt.Errorf("with topics an eighth of embd (%d) must be whole blocks of %v, which are of %d", s.Embd, w.kind, n)
		}
	}
	for i := range 1 + s.Topics {
		r := newRand(s.Seed, 0x70b1c, uint64(i))
		v := make([]float32, t.eighth)
		sum := 0.0
		for j := range v {
			v[j] = float32(normals[r.next()>>(64-normalBits)])
			sum += float64(v[j]) * float64(v[j])
		}
		for j := range v {
			v[j] *= float32(math.Sqrt(float64(t.eighth) / sum))
		}
		t.vectors = append(t.vectors, v)
	}
	for i := range list {
		switch w := &list[i]; w.name {
		case "token_embd.weight":
			t.embedding(w)
		case "output.weight":
			t.head(w)
		case "output_norm.weight":
			t.norm(w, float64(s.Layers))
		}
	}
	return t, nil
}

// embedding gives tokens what they have alike, a topic and something of their own,
// all of size 1. What the layers will make begins as the token's own.
func (t *topics) embedding(w *weight) {
	w.std, w.rows = 1, nil
	w.cols = []span{
		{n: t.eighth, choose: func(int64) int { return 0 }, table: t.vectors},
		{n: t.eighth, choose: func(row int64) int { topic, _ := t.topicOf(row); return 1 + int(topic) }, table: t.vectors},
		{n: 6 * t.eighth, factor: 1},
	}
}

// levels of a word's rank: ranks that differ by less than a sixth of an octave count
// as one.
const (
	levelsPerOctave = 6
	levels          = 20 * levelsPerOctave
)

// head makes tokens likely by their ranks, and those of the topic that is seen by a
// factor more than others: so much that a text stays with its topic.
func (t *topics) head(w *weight) {
	seldom := w.rows // the ends of a text
	w.rows, w.std = nil, topicNoise/math.Sqrt(float64(t.Embd)*(1-topicShare-commonShare))
	along := func(v []float32, logit, share float64) []float32 {
		row := make([]float32, len(v))
		for i := range row {
			row[i] = float32(logit/(float64(t.eighth)*seen(8, share))) * v[i]
		}
		return row
	}
	var ranks, own [][]float32
	for l := range levels {
		ranks = append(ranks, along(t.vectors[0], -topicZipf*math.Ln2*float64(l)/levelsPerOctave, commonShare))
	}
	for _, v := range t.vectors[1:] {
		own = append(own, along(v, math.Log(topicStay*float64(max(1, t.Topics-1))), topicShare))
	}
	w.cols = []span{
		{n: t.eighth, choose: func(row int64) int {
			_, rank := t.topicOf(row)
			if seldom(row) != 1 {
				return levels - 1
			}
			return min(levels-1, int(levelsPerOctave*math.Log2((float64(rank)+topicFlat)/topicFlat)))
		}, table: ranks},
		{n: t.eighth, choose: func(row int64) int { topic, _ := t.topicOf(row); return int(topic) }, table: own},
		{n: 6 * t.eighth, factor: 1},
	}
}

// seen is the size of the elements of one in n parts of the stream that has such a
// share of the energy after the norm.
func seen(n, share float64) float64 { return math.Sqrt(share * n) }

// norm gives the parts of the stream their shares of the energy before layer
// number layer, which may be a half.
func (t *topics) norm(w *weight, layer float64) {
	made := math.Sqrt(math.Pow(attnGrowth*expertsGrowth, math.Floor(layer)))
	if layer != math.Floor(layer) {
		made *= math.Sqrt(attnGrowth)
	}
	size := math.Sqrt((3 + made*made) / 4) // of the whole stream
	w.cols = []span{
		{n: t.eighth, factor: size * seen(8, commonShare)},
		{n: t.eighth, factor: size * seen(8, topicShare)},
		{n: 4 * t.eighth, factor: size * seen(2, 1-commonShare-topicShare-updateShare)},
		{n: 2 * t.eighth, factor: size / made * seen(4, updateShare)},
	}
}

// layer gives the weights of a layer their parts.
func (t *topics) layer(layer int, list []weight) {
	made := math.Sqrt(math.Pow(attnGrowth*expertsGrowth, float64(layer)))
	adds := func(w *weight, size, branch float64) {
		w.std *= size / branch
		first := 6 * t.eighth
		w.rows = func(row int64) float64 {
			if row%int64(t.Embd) < first {
				return untouched / made
			}
			return 1
		}
	}
	branch := residualStd / math.Sqrt(float64(2*t.Layers))
	for i := range list {
		w := &list[i]
		_, name, _ := strings.Cut(strings.TrimPrefix(w.name, "blk."), ".")
		switch name {
		case "attn_norm.weight":
			t.norm(w, float64(layer))
		case "ffn_norm.weight", "post_attention_norm.weight":
			t.norm(w, float64(layer)+0.5)
		case "attn_output.weight":
			adds(w, made*math.Sqrt(attnGrowth-1), branch)
		case "ffn_down_exps.weight":
			adds(w, made*math.Sqrt(attnGrowth)*math.Sqrt(expertsGrowth-1), branch)
		case "attn_output.bias", "ffn_down_exps.bias":
			w.std = untouched * biasStd
		}
	}
}
