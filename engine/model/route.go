package model

import (
	"fmt"

	"bmoe/engine/kernel/vec"
)

// scoring is how router logits become the scores of experts.
type scoring uint8

const (
	// scoreSoftmax is a softmax over all experts.
	scoreSoftmax scoring = iota
	// scoreChosen takes the logits as they are; the chosen ones' softmax is their weights.
	scoreChosen
)

// routing is how a family turns router logits into experts and weights.
type routing struct {
	experts, used int
	score         scoring
	normalise     bool // weights of the chosen sum to one
}

// routing reads how many experts there are and how many are used.
func (l *loader) routing(score scoring) routing {
	r := routing{experts: l.key("expert_count"), used: l.key("expert_used_count"), score: score}
	if r.used > r.experts {
		l.fail(fmt.Errorf("%d experts are used of %d: more than there are", r.used, r.experts))
	}
	return r
}

// minWeightSum keeps the normalisation from dividing by almost nothing: the
// smallest normal half-precision number, as llama.cpp clamps it.
const minWeightSum = 6.103515625e-5

// choose routes one token: the used experts of the highest scores, best first, and
// their weights. logits is overwritten.
func (r *routing) choose(logits []float32, ids []int32, weights []float32) {
	if r.score == scoreSoftmax {
		vec.Softmax(logits)
	}
	vec.TopK(ids, logits)
	sum := float32(0)
	for i, id := range ids {
		weights[i] = logits[id]
		sum += weights[i]
	}
	if r.score == scoreChosen {
		vec.Softmax(weights)
		return
	}
	if r.normalise {
		sum = max(sum, minWeightSum)
		for i := range weights {
			weights[i] /= sum
		}
	}
}
