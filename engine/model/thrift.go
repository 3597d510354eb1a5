package model

import (
	"math"
	"slices"
)

// Thrift saves reads of a single token at the price of another result: an expert that
// would have to be read may give way to one that is there, or be left out. What it
// decides follows from the routes alone, as the cache's contents do.
type Thrift struct {
	// Substitute is how much lower than its own the router's score may be of the
	// expert that takes the place of a missing one, as a share; 0: none does.
	Substitute float32
	// Drop is the share of the token's weights below which a missing expert is left out;
	// 0: none is. The one of the greatest weight stays in any case.
	Drop float32
	// Renorm gives what is left of the weights their sum of before.
	Renorm bool
	// Resident tells whether an expert of a layer is in the cache.
	Resident func(layer int, expert int32) bool

	// Kept is how many experts the latest route has left.
	Kept int
	// What came of it so far, in experts.
	Dropped, Substituted int64
}

// spare changes a token's route: ids and weights, in rank order. The first n remain,
// and what is left out comes behind. scores are the router's, of all experts.
func (t *Thrift) spare(b *moe, scores []float32, ids []int32, weights []float32) (n int) {
	t.Kept = len(ids)
	if t.Substitute > 0 {
		t.substitute(b, scores, ids, weights)
	}
	if t.Drop > 0 {
		t.Kept = t.drop(b.layer, ids, weights)
	}
	return t.Kept
}

// substitute puts the best expert that is there in the place of each that is not. Its
// weight is what its own score gives it.
func (t *Thrift) substitute(b *moe, scores []float32, ids []int32, weights []float32) {
	changed := false
	for i, id := range ids {
		if t.Resident(b.layer, id) {
			continue
		}
		best, least := int32(-1), b.route.lowered(scores[id], t.Substitute)
		for e, score := range scores {
			if score >= least && (best < 0 || score > scores[best]) && !slices.Contains(ids, int32(e)) && t.Resident(b.layer, int32(e)) {
				best = int32(e)
			}
		}
		if best >= 0 {
			ids[i], changed = best, true
			t.Substituted++
		}
	}
	if changed {
		b.route.weigh(scores, ids, weights)
	}
}

// lowered is a score that is lower by a share. Scores that are logits still are
// lowered as the exponentials that weights are made of.
func (r *routing) lowered(score, share float32) float32 {
	if r.score == scoreChosen {
		return score + float32(math.Log(float64(1-share)))
	}
	return score * (1 - share)
}

// drop leaves missing experts out that weigh little.
func (t *Thrift) drop(layer int, ids []int32, weights []float32) (n int) {
	sum, first := float32(0), 0
	for i, w := range weights {
		sum += w
		if w > weights[first] {
			first = i
		}
	}
	left := float32(0)
	for i, id := range ids {
		w := weights[i]
		if i != first && w < t.Drop*sum && !t.Resident(layer, id) {
			t.Dropped++
			continue
		}
		// Those in between are left out: they move behind, in their order.
		copy(ids[n+1:i+1], ids[n:i])
		copy(weights[n+1:i+1], weights[n:i])
		ids[n], weights[n] = id, w
		left += w
		n++
	}
	if t.Renorm && n < len(ids) && left > 0 {
		for i := range weights[:n] {
			weights[i] *= sum / left
		}
	}
	return n
}
