// Package kerneltest has what the tests of kernels share: numbers of all kinds,
// the walk through every instruction set, and the comparison of bits.
package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

// EachSet runs f with every instruction set of this machine, the generic path
// first.
func EachSet(t *testing.T, f func(t *testing.T, set isa.Set)) {
	for _, i := range isa.Available() {
		t.Run(i.String(), func(t *testing.T) { f(t, i) })
	}
}

// Parity runs f with every instruction set and wants the generic path's bits.
func Parity(t *testing.T, what string, f func(isa.Set) []float32) {
	t.Helper()
	var want []float32
	for _, i := range isa.Available() {
		got := f(i)
		if i == isa.Generic {
			want = got
		}
		WantBits(t, fmt.Sprintf("%s by %v", what, i), got, want)
	}
}

// WantBits fails the test unless got and want are the same bits; all NaNs are one.
func WantBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: number %d of %d is %v (%#x), want %v (%#x)", what, i, len(got), got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// Randoms returns n numbers between -scale and scale.
func Randoms(rng *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((rng.Float64()*2 - 1) * scale)
	}
	return x
}

// Wild returns numbers of all magnitudes, with a few special ones among them.
func Wild(rng *rand.Rand, n int, special bool) []float32 {
	x := make([]float32, n)
	scale := math.Ldexp(1, rng.IntN(40)-20)
	for i := range x {
		switch k := rng.IntN(40); {
		case k == 0 && special:
			x[i] = [...]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32}[rng.IntN(5)]
		case k == 1:
			x[i] = [...]float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -1e-41, 1e-39}[rng.IntN(5)]
		case k < 10:
			x[i] = float32(math.Ldexp(rng.Float64()*2-1, rng.IntN(60)-30))
		default:
			x[i] = float32((rng.Float64()*2 - 1) * scale)
		}
	}
	return x
}

// Halves returns numbers that half precision holds.
func Halves(rng *rand.Rand, n int, special bool) []float32 {
	x := Wild(rng, n, special)
	for i := range x {
		x[i] = quant.F16ToF32(quant.F32ToF16(x[i]))
	}
	return x
}
