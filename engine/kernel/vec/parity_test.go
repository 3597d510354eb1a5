package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/kerneltest"
)

func FuzzVectorFunctions(f *testing.F) {
	for i := range 60 {
		f.Add(uint64(i), uint16(i))
	}
	f.Add(uint64(100), uint16(2048))
	f.Fuzz(func(t *testing.T, seed uint64, size uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := int(size) % 3000
		a, b, w := kerneltest.Wild(rng, n, true), kerneltest.Wild(rng, n, true), kerneltest.Wild(rng, 1, true)
		kerneltest.Parity(t, &active, "SiluMul", func() []float32 { d := make([]float32, n); SiluMul(d, a, b); return d })
		kerneltest.Parity(t, &active, "SiluMul in place", func() []float32 { d := cloned(a); SiluMul(d, d, b); return d })
		kerneltest.Parity(t, &active, "AddScaled", func() []float32 { d := cloned(a); AddScaled(d, b, w[0]); return d })
		kerneltest.Parity(t, &active, "RMSNorm", func() []float32 { d := make([]float32, n); RMSNorm(d, a, b, 1e-6); return d })
		kerneltest.Parity(t, &active, "RMSNorm without weights", func() []float32 { d := cloned(a); RMSNorm(d, d, nil, 1e-6); return d })
		kerneltest.Parity(t, &active, "roundHalf", func() []float32 { d := make([]float32, n); RoundHalf(d, a); return d })
		kerneltest.Parity(t, &active, "toHalf", func() []float32 {
			h, d := make([]uint16, n), make([]float32, n)
			ToHalf(h, a)
			for i := range d {
				d[i] = float32(h[i])
			}
			return d
		})
		kerneltest.Parity(t, &active, "rescale", func() []float32 { d := cloned(a); Rescale(d, w[0]); return d })
		kerneltest.Parity(t, &active, "blend", func() []float32 { d := cloned(a); Blend(d, b, w[0], 1-w[0]); return d })
		kerneltest.Parity(t, &active, "addProducts", func() []float32 { d := cloned(a); AddProducts(d, a, b); return d })
		kerneltest.Parity(t, &active, "products16", func() []float32 { d := cloned(a); Products16(d, a, b); return d })
		half := n / 2
		kerneltest.Parity(t, &active, "turnNeox", func() []float32 {
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
	kerneltest.Parity(t, &active, "SiluMul", func() []float32 { d := make([]float32, len(x)); SiluMul(d, x, ones); return d })
}

func FuzzSoftmaxBlock(f *testing.F) {
	for i := range 60 {
		f.Add(uint64(i), uint8(i+4))
	}
	f.Fuzz(func(t *testing.T, seed uint64, seen uint8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s [SoftmaxLen]float32
		copy(s[:], kerneltest.Wild(rng, SoftmaxLen, seed%3 == 0))
		for j := int(seen) % (SoftmaxLen + 1); j < SoftmaxLen; j++ {
			s[j] = float32(math.Inf(-1))
		}
		m := float32(math.Inf(-1))
		if seed%2 == 1 {
			m = float32(rng.Float64()*200 - 100)
		}
		for _, half := range []bool{false, true} {
			kerneltest.Parity(t, &active, "softmaxBlock", func() []float32 {
				d := s
				top, sum := SoftmaxBlock(&d, 0.125, m, half)
				return append(d[:], top+0, sum)
			})
		}
	})
}

func cloned(x []float32) []float32 { return append([]float32(nil), x...) }
