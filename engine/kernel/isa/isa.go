// Package isa tells which instruction sets this processor and this build can
// run. Each package with assembly picks its kernels by it.
package isa

// Set is a set of instructions that kernels are written for.
type Set uint8

const (
	Generic Set = iota // plain Go
	AVX2               // amd64: AVX2, FMA and F16C
	AVX512             // amd64: the above, AVX-512 F, BW, DQ, VL and VNNI, GFNI
	NEON               // arm64
	DotProd            // arm64: the above and the dot product instructions
)

// String returns the name that results, tests and benchmarks show.
func (s Set) String() string {
	return [...]string{"generic", "avx2", "avx512", "neon", "dotprod"}[s]
}

var available = append([]Set{Generic}, detect()...)

// Available lists what can run here, the best last.
func Available() []Set { return available }

// Best returns the set to use.
func Best() Set { return available[len(available)-1] }
