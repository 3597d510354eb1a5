package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/kerneltest"
)

// FuzzRecurrentSteps: one result on every processor, of any shape.
func FuzzRecurrentSteps(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint8(i), uint8(MatrixCols))
	}
	f.Add(uint64(50), uint8(128), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, rows, cols uint8) {
		rng := rand.New(rand.NewPCG(seed, 4))
		r, c := int(rows)%160+1, int(cols)%(2*MatrixCols)+1
		wild := func(n int) []float32 { return kerneltest.Wild(rng, n, seed%4 == 0) }
		m, k, q, d, decays := wild(r*c), wild(r), wild(r), wild(c), wild(r)
		kerneltest.Parity(t, "MulRows", func(i isa.Set) []float32 { x := make([]float32, c); ops(i).MulRows(x, m, k); return x })
		for _, decay := range [][]float32{decays[:1], decays} {
			kerneltest.Parity(t, "Renew", func(i isa.Set) []float32 {
				x, next := make([]float32, c), cloned(m)
				ops(i).Renew(x, next, decay, k, q, d)
				return append(x, next...)
			})
		}
		kerneltest.Parity(t, "SigmoidMul", func(i isa.Set) []float32 { x := make([]float32, len(m)); ops(i).SigmoidMul(x, m, m); return x })
		kerneltest.Parity(t, "Silu", func(i isa.Set) []float32 { x := cloned(m); ops(i).Silu(x); return x })
		kerneltest.Parity(t, "UnitLength", func(i isa.Set) []float32 { x := cloned(k); ops(i).UnitLength(x, 1e-6, 0.25); return x })
	})
}

// Renew and MulRows against their definitions, in double precision.
func TestRecurrentSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for _, cols := range []int{MatrixCols, 12} {
		const rows = 128
		m, k, q := kerneltest.Randoms(rng, rows*cols, 1), kerneltest.Randoms(rng, rows, 1), kerneltest.Randoms(rng, rows, 1)
		d, decay, got := kerneltest.Randoms(rng, cols, 1), kerneltest.Randoms(rng, rows, 1), make([]float32, cols)
		near := func(what string, got float32, want float64) {
			t.Helper()
			if math.Abs(float64(got)-want) > 1e-5 {
				t.Fatalf("%s, %d columns: %g, want %g", what, cols, got, want)
			}
		}
		MulRows(got, m, k)
		for j := range cols {
			want := 0.0
			for i := range rows {
				want += float64(k[i]) * float64(m[i*cols+j])
			}
			near("MulRows", got[j], want)
		}
		for _, by := range [][]float32{decay, decay[:1]} {
			next := cloned(m)
			Renew(got, next, by, k, q, d)
			for j := range cols {
				want := 0.0
				for i := range rows {
					x := float64(by[i%len(by)])*float64(m[i*cols+j]) + float64(k[i])*float64(d[j])
					near("a row", next[i*cols+j], x)
					want += float64(q[i]) * x
				}
				near("Renew", got[j], want)
			}
		}
	}
}

func TestSoftplus(t *testing.T) {
	for x := float32(-100); x < 100; x += 0.01 {
		want := math.Log1p(math.Exp(float64(x)))
		if got := Softplus32(x); math.Abs(float64(got)-want) > 4e-7*want+1e-44 {
			t.Fatalf("softplus(%g) = %g, want %g", x, got, want)
		}
	}
	if x := Softplus32(float32(math.NaN())); x == x {
		t.Errorf("softplus(NaN) = %g", x)
	}
}

func TestDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, n := range []int{0, 1, 15, 16, 33, 1000} {
		a, b, want := kerneltest.Randoms(rng, n, 1), kerneltest.Randoms(rng, n, 1), 0.0
		for i := range a {
			want += float64(a[i]) * float64(b[i])
		}
		if got := Dot(a, b); math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("of %d entries: %g, want %g", n, got, want)
		}
	}
}

func TestUnitLength(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(x []float32)
		want float32 // of the 3 in 3, 4
	}{
		"length 10":              {func(x []float32) { UnitLength(x, 1e-6, 10) }, 6},
		"divided by at least 50": {func(x []float32) { UnitLength(x, 50, 100) }, 6},
		"75 more in the square":  {func(x []float32) { UnitLengthPlus(x, 75, 10) }, 3},
	} {
		x := []float32{3, 4}
		if c.do(x); x[0] != c.want || x[1] != c.want/3*4 {
			t.Errorf("%s: %v", what, x)
		}
	}
}

// The state of one head of a gated delta-net layer takes four of each step a token.
func BenchmarkRecurrentSteps(b *testing.B) {
	m, k, d, out := make([]float32, 128*MatrixCols), make([]float32, 128), make([]float32, MatrixCols), make([]float32, MatrixCols)
	b.Run("MulRows", func(b *testing.B) {
		for b.Loop() {
			MulRows(out, m, k)
		}
	})
	b.Run("Renew", func(b *testing.B) {
		for b.Loop() {
			Renew(out, m, k[:1], k, k, d)
		}
	})
}
