package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
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
		kerneltest.Parity(t, "SiluMul", func(i isa.Set) []float32 { d := make([]float32, n); ops(i).SiluMul(d, a, b); return d })
		kerneltest.Parity(t, "SiluMul in place", func(i isa.Set) []float32 { d := cloned(a); ops(i).SiluMul(d, d, b); return d })
		kerneltest.Parity(t, "AddScaled", func(i isa.Set) []float32 { d := cloned(a); ops(i).AddScaled(d, b, w[0]); return d })
		kerneltest.Parity(t, "RMSNorm", func(i isa.Set) []float32 { d := make([]float32, n); ops(i).RMSNorm(d, a, b, 1e-6); return d })
		kerneltest.Parity(t, "RMSNorm without weights", func(i isa.Set) []float32 { d := cloned(a); ops(i).RMSNorm(d, d, nil, 1e-6); return d })
		kerneltest.Parity(t, "roundHalf", func(i isa.Set) []float32 { d := make([]float32, n); ops(i).RoundHalf(d, a); return d })
		kerneltest.Parity(t, "toHalf", func(i isa.Set) []float32 {
			h, d := make([]uint16, n), make([]float32, n)
			ops(i).ToHalf(h, a)
			for i := range d {
				d[i] = float32(h[i])
			}
			return d
		})
		kerneltest.Parity(t, "rescale", func(i isa.Set) []float32 { d := cloned(a); ops(i).Rescale(d, w[0]); return d })
		kerneltest.Parity(t, "blend", func(i isa.Set) []float32 { d := cloned(a); ops(i).Blend(d, b, w[0], 1-w[0]); return d })
		kerneltest.Parity(t, "addProducts", func(i isa.Set) []float32 { d := cloned(a); ops(i).AddProducts(d, a, b); return d })
		kerneltest.Parity(t, "products16", func(i isa.Set) []float32 { d := cloned(a); ops(i).Products16(d, a, b); return d })
		half := n / 2
		kerneltest.Parity(t, "turnNeox", func(i isa.Set) []float32 {
			d := cloned(a)
			ops(i).turnNeox(d[:half], d[half:2*half], b[:half], b[half:2*half])
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
	kerneltest.Parity(t, "SiluMul", func(i isa.Set) []float32 { d := make([]float32, len(x)); ops(i).SiluMul(d, x, ones); return d })
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
			kerneltest.Parity(t, "softmaxBlock", func(i isa.Set) []float32 {
				d := s
				top, sum := ops(i).softmaxBlock(&d, 0.125, m, half)
				return append(d[:], top+0, sum)
			})
		}
	})
}

func cloned(x []float32) []float32 { return append([]float32(nil), x...) }
