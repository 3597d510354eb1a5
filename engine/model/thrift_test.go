package model

import (
	"math"
	"slices"
	"testing"
)

func TestThriftOfOneRoute(t *testing.T) {
	// Of eight experts those of odd numbers are in the cache.
	resident := func(layer int, e int32) bool { return e%2 == 1 }
	logits := []float32{0.30, 0.25, 0.20, 0.02, 0.10, 0.09, 0.03, 0.01}
	for _, c := range []struct {
		name                 string
		thrift               Thrift
		score                scoring
		normalise            bool
		wantIDs              []int32
		wantWeights          []float32
		kept                 int
		dropped, substituted int64
	}{
		{"nothing allowed", Thrift{}, scoreSigmoid, true, []int32{0, 1, 2, 4}, []float32{0.30 / 0.85, 0.25 / 0.85, 0.20 / 0.85, 0.10 / 0.85}, 4, 0, 0},
		{"what weighs little and is missing", Thrift{Drop: 0.2}, scoreSigmoid, true, []int32{0, 1, 2, 4}, []float32{0.30 / 0.85, 0.25 / 0.85, 0.20 / 0.85, 0.10 / 0.85}, 3, 1, 0},
		{"what comes first stays", Thrift{Drop: 1}, scoreSigmoid, true, []int32{0, 1, 2, 4}, []float32{0.30 / 0.85, 0.25 / 0.85, 0.20 / 0.85, 0.10 / 0.85}, 2, 2, 0},
		{"the sum stays", Thrift{Drop: 1, Renorm: true}, scoreSigmoid, true, []int32{0, 1, 2, 4}, []float32{0.30 / 0.55, 0.25 / 0.55, 0.20 / 0.85, 0.10 / 0.85}, 2, 2, 0},
		{"one almost as good", Thrift{Substitute: 0.15}, scoreSigmoid, false, []int32{0, 1, 2, 5}, []float32{0.30, 0.25, 0.20, 0.09}, 4, 0, 1},
		{"none as good", Thrift{Substitute: 0.05}, scoreSigmoid, false, []int32{0, 1, 2, 4}, []float32{0.30, 0.25, 0.20, 0.10}, 4, 0, 0},
		{"each takes the best that is left", Thrift{Substitute: 1}, scoreSigmoid, false, []int32{5, 1, 3, 7}, []float32{0.09, 0.25, 0.02, 0.01}, 4, 0, 3},
		{"logits are compared as weights are made", Thrift{Substitute: 0.015}, scoreChosen, false, []int32{0, 1, 2, 5}, nil, 4, 0, 1},
		{"a substitute is not left out", Thrift{Substitute: 0.15, Drop: 0.15}, scoreSigmoid, false, []int32{0, 1, 2, 5}, []float32{0.30, 0.25, 0.20, 0.09}, 4, 0, 1},
	} {
		b := &moe{layer: 3, moeSpec: moeSpec{route: routing{experts: 8, used: 4, score: c.score, normalise: c.normalise}}}
		ids, weights := []int32{0, 1, 2, 4}, make([]float32, 4)
		b.route.weigh(logits, ids, weights)
		c.thrift.Resident = resident
		n := c.thrift.spare(b, logits, ids, weights)
		if n != c.kept || c.thrift.Kept != n || !slices.Equal(ids, c.wantIDs) || c.thrift.Dropped != c.dropped || c.thrift.Substituted != c.substituted {
			t.Errorf("%s: %d of %v, %+v; want %d of %v", c.name, n, ids, c.thrift, c.kept, c.wantIDs)
		}
		for i, w := range c.wantWeights {
			if math.Abs(float64(w-weights[i])) > 1e-6 {
				t.Errorf("%s: weights %v, want %v", c.name, weights, c.wantWeights)
				break
			}
		}
	}
}

// What is left out comes behind in the router's order, whatever lies between.
func TestDroppedComeLast(t *testing.T) {
	th := Thrift{Drop: 1, Resident: func(_ int, e int32) bool { return e >= 10 }}
	ids, weights := []int32{10, 1, 11, 2, 3, 12}, []float32{6, 5, 4, 3, 2, 1}
	if n := th.drop(0, ids, weights); n != 3 || !slices.Equal(ids, []int32{10, 11, 12, 1, 2, 3}) || !slices.Equal(weights, []float32{6, 4, 1, 5, 3, 2}) {
		t.Errorf("%d of %v with %v", n, ids, weights)
	}
}
