package model

import (
	"fmt"
	"math"

	"bmoe/engine/kernel/vec"
)

// scoring is how router logits become the scores of experts.
type scoring uint8

// The numbers are those of expert_gating_func.
const (
	scoreSoftmax scoring = 1 // a softmax over all experts
	scoreSigmoid scoring = 2 // of each expert alone
	// scoreChosen takes the logits as they are; the chosen ones' softmax is their weights.
	scoreChosen scoring = 3
	// scoreRootSoftplus is the square root of the softplus, of each expert alone.
	scoreRootSoftplus scoring = 4
)

// routing is how a family turns router logits into experts and weights.
type routing struct {
	experts, used int
	score         scoring
	groups        int // of experts, of which only the best groupsUsed are chosen from; 0: none
	groupsUsed    int
	biased        bool    // a file may have a bias that steers the choice and not the weights
	normalise     bool    // weights of the chosen sum to one
	scale         float32 // of the weights; 0: none
}

// maxGroups bounds the groups of experts.
const maxGroups = 64

// routing reads how many experts there are and how many are used.
func (l *loader) routing(score scoring) routing {
	if l.some("expert_count") == 0 {
		l.fail(fmt.Errorf("%sexpert_count is 0: a dense model of this architecture is not known", l.prefix))
	}
	r := routing{experts: l.key("expert_count"), used: l.key("expert_used_count"), score: score}
	if l.topK > 0 {
		r.used = l.topK
	}
	if r.used > r.experts {
		key := l.prefix + "expert_used_count"
		if l.topK > 0 {
			key = "the number of experts asked for"
		}
		l.fail(fmt.Errorf("%s is %d, more than %sexpert_count, which is %d", key, r.used, l.prefix, r.experts))
	}
	return r
}

// routingByKeys reads all that the metadata can say of routing: the score
// (def by default), groups, normalisation and a scale; and files may have a bias.
func (l *loader) routingByKeys(def scoring) routing {
	r := l.routing(scoring(l.keyOr("expert_gating_func", int(def))))
	if r.score < scoreSoftmax || r.score > scoreRootSoftplus {
		l.fail(fmt.Errorf("%sexpert_gating_func is %d; known: 1 (softmax), 2 (sigmoid), 3 (softmax of the chosen), 4 (root of softplus)", l.prefix, r.score))
	}
	r.biased, r.normalise = true, l.boolOr("expert_weights_norm", false)
	r.scale = float32(l.floatOr("expert_weights_scale", 0))
	if n := l.keyOr("expert_group_count", 1); n > 1 {
		r.groups, r.groupsUsed = n, l.key("expert_group_used_count")
		if n > maxGroups || r.experts%n != 0 || r.experts/n < 2 || r.groupsUsed > n || r.used > r.groupsUsed*(r.experts/n) {
			l.fail(fmt.Errorf("%d of %d experts cannot be chosen from %d of %d groups (%sexpert_used_count, expert_count, expert_group_used_count, expert_group_count)", r.used, r.experts, r.groupsUsed, n, l.prefix))
		}
	}
	return r
}

// steered reports whether experts are chosen by other numbers than their scores.
func (r *routing) steered() bool { return r.biased || r.groups > 1 }

// minWeightSum keeps the normalisation from dividing by almost nothing: the
// smallest normal half-precision number, as llama.cpp clamps it.
const minWeightSum = 6.103515625e-5

// choose routes one token: the used experts that rank highest, best first, and their
// weights. logits is overwritten with the scores, and steer, of the same length
// where the routing is steered, with what the experts rank by; bias may be nil.
func (r *routing) choose(logits, steer, bias []float32, ids []int32, weights []float32) {
	r.rate(logits)
	rank := logits
	if bias != nil || r.groups > 1 {
		copy(steer, logits)
		if bias != nil {
			vec.Add(steer, bias)
		}
		if r.groups > 1 {
			r.dropGroups(steer)
		}
		rank = steer
	}
	vec.TopK(ids, rank)
	r.weigh(logits, ids, weights)
}

// rate turns logits into scores.
func (r *routing) rate(logits []float32) {
	switch r.score {
	case scoreSoftmax:
		vec.Softmax(logits)
	case scoreSigmoid:
		for i, x := range logits {
			logits[i] = vec.Sigmoid32(x)
		}
	case scoreRootSoftplus:
		for i, x := range logits {
			logits[i] = float32(math.Sqrt(float64(vec.Softplus32(x))))
		}
	}
}

// weigh gives the chosen experts their weights, by their scores.
func (r *routing) weigh(logits []float32, ids []int32, weights []float32) {
	sum := float32(0)
	for i, id := range ids {
		weights[i] = logits[id]
		sum += weights[i]
	}
	if r.score == scoreChosen {
		vec.Softmax(weights)
	}
	if r.normalise {
		sum = max(sum, minWeightSum)
		for i := range weights {
			weights[i] /= sum
		}
	}
	if r.scale != 0 && r.scale != 1 {
		vec.Scale(weights, r.scale)
	}
}

// dropGroups takes the experts out of the choice whose group is not among the best:
// a group's score is the sum of its two highest.
func (r *routing) dropGroups(rank []float32) {
	var scores [maxGroups]float32
	var best [maxGroups]int32
	var two [2]int32
	n := len(rank) / r.groups
	for g := range r.groups {
		group := rank[g*n:][:n]
		vec.TopK(two[:], group)
		scores[g] = group[two[0]] + group[two[1]]
	}
	vec.TopK(best[:r.groupsUsed], scores[:r.groups])
	for g := range r.groups {
		kept := false
		for _, b := range best[:r.groupsUsed] {
			kept = kept || int(b) == g
		}
		if !kept {
			for i := range rank[g*n:][:n] {
				rank[g*n+i] = float32(math.Inf(-1))
			}
		}
	}
}
