package kernel

// isa is a set of instructions that kernels are written for.
type isa uint8

const (
	isaGeneric isa = iota // plain Go
	isaAVX2               // amd64: AVX2, FMA and F16C
	isaAVX512             // amd64: the above, AVX-512 F, BW, DQ, VL and VNNI, GFNI
	isaNEON               // arm64
	isaDotProd            // arm64: the above and the dot product instructions
)

// String returns the name that tests and benchmarks show.
func (i isa) String() string {
	return [...]string{"generic", "avx2", "avx512", "neon", "dotprod"}[i]
}

// available lists what this processor and this build can run, the best last.
var available = append([]isa{isaGeneric}, detect()...)

// active is what is used. Tests set it to go through every path.
var active = available[len(available)-1]

// Instructions returns the name of the instruction set in use, as it should
// stand beside a measurement.
func Instructions() string { return active.String() }
