package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/quant"
)

// wild returns numbers of all magnitudes, with a few special ones among them.
func wild(rng *rand.Rand, n int, special bool) []float32 {
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

// halves returns numbers that half precision holds.
func halves(rng *rand.Rand, n int, special bool) []float32 {
	x := wild(rng, n, special)
	for i := range x {
		x[i] = quant.F16ToF32(quant.F32ToF16(x[i]))
	}
	return x
}

// parity runs f on every path and wants the generic one's bits.
func parity(t *testing.T, what string, f func() []float32) {
	t.Helper()
	best := active
	defer func() { active = best }()
	var want []float32
	for _, i := range available {
		active = i
		got := f()
		if active == isaGeneric {
			want = got
		}
		wantBits(t, fmt.Sprintf("%s by %v", what, active), got, want)
	}
}

func cloned(x []float32) []float32 { return append([]float32(nil), x...) }

func FuzzVectorFunctions(f *testing.F) {
	for i := range 60 {
		f.Add(uint64(i), uint16(i))
	}
	f.Add(uint64(100), uint16(2048))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := int(size) % 3000
		a, b, w := wild(rng, n, true), wild(rng, n, true), wild(rng, 1, true)
		parity(t, "SiluMul", func() []float32 { d := make([]float32, n); SiluMul(d, a, b); return d })
		parity(t, "SiluMul in place", func() []float32 { d := cloned(a); SiluMul(d, d, b); return d })
		parity(t, "AddScaled", func() []float32 { d := cloned(a); AddScaled(d, b, w[0]); return d })
		parity(t, "RMSNorm", func() []float32 { d := make([]float32, n); RMSNorm(d, a, b, 1e-6); return d })
		parity(t, "RMSNorm without weights", func() []float32 { d := cloned(a); RMSNorm(d, d, nil, 1e-6); return d })
		parity(t, "roundHalf", func() []float32 { d := make([]float32, n); roundHalf(d, a); return d })
		parity(t, "toHalf", func() []float32 {
			h, d := make([]uint16, n), make([]float32, n)
			toHalf(h, a)
			for i := range d {
				d[i] = float32(h[i])
			}
			return d
		})
		parity(t, "rescale", func() []float32 { d := cloned(a); rescale(d, w[0]); return d })
		parity(t, "blend", func() []float32 { d := cloned(a); blend(d, b, w[0], 1-w[0]); return d })
		parity(t, "addProducts", func() []float32 { d := cloned(a); addProducts(d, a, b); return d })
		parity(t, "products16", func() []float32 { d := cloned(a); products16(d, a, b); return d })
		half := n / 2
		parity(t, "turnNeox", func() []float32 {
			d := cloned(a)
			turnNeox(d[:half], d[half:2*half], b[:half], b[half:2*half])
			return d
		})
	})
}

// Silu is compared over the whole range of float32.
func TestSiluParityOverAllMagnitudes(t *testing.T) {
	x, ones := make([]float32, 1<<20), make([]float32, 1<<20)
	for i := range x {
		x[i], ones[i] = math.Float32frombits(uint32(i)<<12|uint32(i)*2654435761>>20), 1
	}
	parity(t, "SiluMul", func() []float32 { d := make([]float32, len(x)); SiluMul(d, x, ones); return d })
}

func FuzzTile(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint8(i), uint8(i/3), uint8(7*i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, panels, terms uint8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m, n, depth := 1+int(rows)%9, (1+int(panels)%9)*panel, 1+int(terms)%140
		special := seed%3 == 0
		c := tile{m: m, n: n, depth: depth, ldd: n + rng.IntN(5), lda: depth + rng.IntN(5), ldb: depth*panel + rng.IntN(40)}
		dst, a, raw := wild(rng, m*c.ldd, special), halves(rng, m*c.lda, special), wild(rng, n/panel*c.ldb+depth*panel, special)
		b16, b8 := make([]uint16, len(raw)), make([]int8, len(raw))
		for i := range raw {
			b16[i], b8[i] = quant.F32ToF16(raw[i]), int8(rng.Uint32())
		}
		parity(t, "f16", func() []float32 { d := cloned(dst); c.f16(d, a, b16); return d })
		any := wild(rng, m*c.lda, special)
		parity(t, "f32", func() []float32 { d := cloned(dst); c.f32(d, any, raw); return d })
		// What the products with int8 need to be exact.
		for i := range a {
			if a[i] = round16(a[i]); a[i] != 0 && math.Abs(float64(a[i])) < 1e-30 {
				a[i] = 0
			}
		}
		parity(t, "i8", func() []float32 { d := cloned(dst); c.i8(d, a, b8); return d })
	})
}

func FuzzSoftmaxBlock(f *testing.F) {
	for i := range 60 {
		f.Add(uint64(i), uint8(i+4))
	}
	f.Fuzz(func(t *testing.T, seed uint64, seen uint8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s [kvBlock]float32
		copy(s[:], wild(rng, kvBlock, seed%3 == 0))
		for j := int(seen) % (kvBlock + 1); j < kvBlock; j++ {
			s[j] = negInf
		}
		m := negInf
		if seed%2 == 1 {
			m = float32(rng.Float64()*200 - 100)
		}
		for _, half := range []bool{false, true} {
			parity(t, "softmaxBlock", func() []float32 {
				d := s
				top, sum := softmaxBlock(&d, 0.125, m, half)
				return append(d[:], top+0, sum)
			})
		}
	})
}
