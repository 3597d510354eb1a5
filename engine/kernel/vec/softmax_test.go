package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"bmoe/engine/kernel/kerneltest"
)

func TestSoftmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, n := range []int{1, 2, 8, 16, 31, 128, 1000} {
		for _, scale := range []float64{0.1, 10, 1000} {
			x := kerneltest.Randoms(rng, n, scale)
			top := float64(slices.Max(x))
			want := make([]float64, n)
			sum := 0.0
			for i, v := range x {
				want[i] = math.Exp(float64(v) - top)
				sum += want[i]
			}
			given := slices.Clone(x)
			Softmax(x)
			for i := range x {
				// The difference to the maximum is rounded, and e^ magnifies that.
				tol := (5e-7 + 1.2e-7*(top-float64(given[i]))) * want[i] / sum
				if d := math.Abs(float64(x[i]) - want[i]/sum); d > tol+1e-40 {
					t.Fatalf("n %d scale %v: entry %d is %v, want %v", n, scale, i, x[i], want[i]/sum)
				}
			}
		}
	}
	Softmax(nil)
}

func TestTopK(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	for range 2000 {
		n := 1 + rng.IntN(140)
		k := 1 + rng.IntN(min(n, 12))
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.IntN(20)) // many ties
		}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		sort.SliceStable(want, func(a, b int) bool { return x[want[a]] > x[want[b]] })
		got := make([]int32, k)
		TopK(got, x)
		if !slices.Equal(got, want[:k]) {
			t.Fatalf("top %d of %v is %v, want %v", k, x, got, want[:k])
		}
	}
}

// A broken model routes somewhere, but never twice to one expert or outside.
func TestTopKOfNaNs(t *testing.T) {
	nan := float32(math.NaN())
	for _, x := range [][]float32{{nan, nan, nan, nan}, {1, nan, 2, nan}, {nan, float32(math.Inf(-1)), nan, 3}} {
		got := make([]int32, 3)
		TopK(got, x)
		seen := map[int32]bool{}
		for _, id := range got {
			if id < 0 || int(id) >= len(x) || seen[id] {
				t.Fatalf("top 3 of %v is %v", x, got)
			}
			seen[id] = true
		}
	}
}
