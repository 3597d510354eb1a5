//go:build noasm || !(amd64 || arm64)

package kernel

import "bmoe/engine/kernel/isa"

const gemvRows = 8

var (
	gemvKernels   [1][64]gemvKernel
	floatKernels  [1][64]floatKernel
	gemmKernels   [1][64]gemmKernel
	unpackedGemm  [1]gemmKernel
	unpackKernels [1][64]unpackKernel
)

func fillBooks() {}

func prepareQ8SIMD(_ isa.Set, v []block8, x []float32) bool  { return false }
func prepareQ8KSIMD(_ isa.Set, v []blockK, x []float32) bool { return false }
func roundF16SIMD(_ isa.Set, dst, x []float32) int           { return 0 }
