package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/kerneltest"
)

func TestRMSNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 3, 15, 16, 17, 64, 100, 2048} {
		for _, scale := range []float64{1e-12, 1, 1e12} {
			x, w := kerneltest.Randoms(rng, n, scale), kerneltest.Randoms(rng, n, 2)
			var ss float64
			for _, v := range x {
				ss += float64(v) * float64(v)
			}
			inv := 1 / math.Sqrt(ss/float64(n)+1e-6)
			got := make([]float32, n)
			RMSNorm(got, x, w, 1e-6)
			plain := make([]float32, n)
			RMSNorm(plain, x, nil, 1e-6)
			for i := range x {
				want := float64(x[i]) * inv
				if math.Abs(float64(plain[i])-want) > 4e-7*math.Abs(want) {
					t.Fatalf("n %d scale %g: without weights %v, want %v", n, scale, plain[i], want)
				}
				want *= float64(w[i])
				if math.Abs(float64(got[i])-want) > 4e-7*math.Abs(want) {
					t.Fatalf("n %d scale %g: %v, want %v", n, scale, got[i], want)
				}
			}
			RMSNorm(x, x, w, 1e-6) // in place
			for i := range x {
				if x[i] != got[i] {
					t.Fatalf("in place %v, apart %v", x[i], got[i])
				}
			}
		}
	}
}

func TestRMSNormHeadsIsRMSNormOfEachHead(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	x, w := kerneltest.Randoms(rng, 5*24, 3), kerneltest.Randoms(rng, 24, 1)
	want := make([]float32, len(x))
	for h := range 5 {
		RMSNorm(want[h*24:][:24], x[h*24:][:24], w, 1e-5)
	}
	RMSNormHeads(x, w, 1e-5)
	for i := range x {
		if x[i] != want[i] {
			t.Fatalf("entry %d is %v, want %v", i, x[i], want[i])
		}
	}
}

func TestVectorHelpers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{0, 1, 7, 16, 33, 100} {
		a, b := kerneltest.Randoms(rng, n, 5), kerneltest.Randoms(rng, n, 5)
		silu, gelu := make([]float32, n), make([]float32, n)
		SiluMul(silu, a, b)
		GeluMul(gelu, a, b)
		sum, scaled, times := append([]float32(nil), a...), append([]float32(nil), a...), append([]float32(nil), a...)
		Add(sum, b)
		AddScaled(scaled, b, 0.3)
		Scale(times, -2)
		for i := range a {
			if silu[i] != Silu32(a[i])*b[i] || gelu[i] != Gelu32(a[i])*b[i] || sum[i] != a[i]+b[i] ||
				scaled[i] != a[i]+float32(0.3*b[i]) || times[i] != a[i]*-2 {
				t.Fatalf("length %d, entry %d differs", n, i)
			}
		}
	}
}

func TestRescaleLeavesNoNegativeZero(t *testing.T) {
	kerneltest.EachSet(t, func(t *testing.T, i isa.Set) {
		for _, n := range []int{5, 8} {
			x := []float32{-1e-30, -0.5, 1e-30, float32(math.Copysign(0, -1)), 2, 0, -1e-45, 1}[:n]
			ops(i).Rescale(x, 1e-30)
			kerneltest.WantBits(t, "rescale", x, []float32{0, -0.5e-30, 0, 0, 2e-30, 0, 0, 1e-30}[:n])
		}
	})
}
