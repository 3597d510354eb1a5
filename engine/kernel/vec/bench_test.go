package vec

import (
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/kerneltest"
)

// BenchmarkVector is the small steps of a token, each of the size it has in
// Qwen3-30B-A3B.
func BenchmarkVector(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x, y, z := kerneltest.Randoms(rng, 4096, 1), kerneltest.Randoms(rng, 4096, 1), make([]float32, 4096)
	r, err := NewRope(RopeSpec{Dims: 128, Base: 1e6})
	if err != nil {
		b.Fatal(err)
	}
	table := make([]float32, r.TableLen(1))
	ids := make([]int32, 8)
	for name, f := range map[string]func(){
		"RMSNorm/2048":            func() { RMSNorm(z[:2048], x[:2048], y[:2048], 1e-6) },
		"RMSNormHeads/32x128":     func() { RMSNormHeads(z, y[:128], 1e-6) },
		"SiluMul/768":             func() { SiluMul(z[:768], x[:768], y[:768]) },
		"RopeTable/1x128":         func() { r.Table(table, 1000, 1) },
		"RopeApply/32x128":        func() { r.Apply(x, 128, table) },
		"AddScaled/2048":          func() { AddScaled(z[:2048], x[:2048], 0.1) },
		"SoftmaxAndTopK/8of128":   func() { copy(z, x[:128]); Softmax(z[:128]); TopK(ids, z[:128]) },
		"SoftmaxBlock/64 weights": func() { copy(z, x[:64]); SoftmaxBlock((*[64]float32)(z), 0.1, 0, true) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
		})
	}
}
