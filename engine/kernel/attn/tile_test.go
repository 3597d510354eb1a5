package attn

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/kerneltest"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
)

func FuzzTile(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint8(i), uint8(i/3), uint8(7*i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, panels, terms uint8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m, n, depth := 1+int(rows)%9, (1+int(panels)%9)*panel, 1+int(terms)%140
		special := seed%3 == 0
		c := tile{m: m, n: n, depth: depth, ldd: n + rng.IntN(5), lda: depth + rng.IntN(5), ldb: depth*panel + rng.IntN(40)}
		dst, a, raw := kerneltest.Wild(rng, m*c.ldd, special), kerneltest.Halves(rng, m*c.lda, special), kerneltest.Wild(rng, n/panel*c.ldb+depth*panel, special)
		b16, b8 := make([]uint16, len(raw)), make([]int8, len(raw))
		for i := range raw {
			b16[i], b8[i] = quant.F32ToF16(raw[i]), int8(rng.Uint32())
		}
		kerneltest.Parity(t, "f16", func(i isa.Set) []float32 { d := cloned(dst); c.set = i; c.f16(d, a, b16); return d })
		any := kerneltest.Wild(rng, m*c.lda, special)
		kerneltest.Parity(t, "f32", func(i isa.Set) []float32 { d := cloned(dst); c.set = i; c.f32(d, any, raw); return d })
		// What the products with int8 need to be exact.
		for i := range a {
			if a[i] = vec.Round16(a[i]); a[i] != 0 && math.Abs(float64(a[i])) < 1e-30 {
				a[i] = 0
			}
		}
		kerneltest.Parity(t, "i8", func(i isa.Set) []float32 { d := cloned(dst); c.set = i; c.i8(d, a, b8); return d })
	})
}

func cloned(x []float32) []float32 { return append([]float32(nil), x...) }
