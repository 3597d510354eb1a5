package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// While the budget holds all experts no chances are reckoned. When it shrinks they
// are, and by recency they are what they would have been all along.
func TestChancesAreThereWhenTheBudgetShrinks(t *testing.T) {
	s := same(16, 2, 10, 0, 10, 10)
	idle, busy := newHistory(s), newHistory(s)
	idle.setBudget(s.Total())
	rng := rand.New(rand.NewPCG(1, 2))
	visit := func(layer, tokens int) {
		touches := make([]Key, 2*tokens)
		for i := range touches {
			touches[i] = s.Key(layer, int32(rng.IntN(16)))
		}
		idle.visit(layer, tokens, touches)
		busy.visit(layer, tokens, touches)
	}
	for pass := range 200 {
		tokens := 1
		if pass == 0 || pass == 90 {
			tokens = 30
		}
		for _, layer := range []int{0, 2, 3} {
			visit(layer, tokens)
		}
	}
	if slices.Max(idle.byAge) != 0 {
		t.Error("chances were reckoned of which nobody asks")
	}
	idle.setBudget(s.Total() / 2)
	if !slices.Equal(idle.byAge, busy.byAge) || slices.Max(idle.byLikeness) == 0 {
		t.Errorf("%v, want %v", idle.byAge, busy.byAge)
	}
	visit(0, 1)
	if !slices.Equal(idle.byLikeness[:16], busy.byLikeness[:16]) {
		t.Error("likeness differs once a layer was visited again")
	}
}
