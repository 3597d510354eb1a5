//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"unsafe"

	"bmoe/engine/kernel/isa"
)

// prepareQ8SIMD does prepareQ8Generic's work and reports true, if it can.
func prepareQ8SIMD(set isa.Set, v []block8, x []float32) bool {
	if set == isa.Generic || len(v) == 0 {
		return false
	}
	prepareQ8Vec((*byte)(unsafe.Pointer(&v[0])), &x[0], len(v))
	return true
}

// prepareQ8KSIMD does prepareQ8KGeneric's work and reports true, if it can.
func prepareQ8KSIMD(set isa.Set, v []blockK, x []float32) bool {
	if set == isa.Generic || len(v) == 0 {
		return false
	}
	prepareQ8KVec((*byte)(unsafe.Pointer(&v[0])), &x[0], len(v))
	return true
}

// roundF16SIMD rounds a prefix of x to half precision and returns its length.
func roundF16SIMD(set isa.Set, dst, x []float32) int {
	steps := len(x) / 8
	if set == isa.Generic || steps == 0 {
		return 0
	}
	roundF16Vec(&dst[0], &x[0], steps)
	return 8 * steps
}
