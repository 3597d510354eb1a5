//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// useVec says whether the AVX2 kernels of this file's siblings run. They also use FMA
// and the conversions of F16C, which are asked for on their own: AVX2 alone does
// not promise them. Tests switch it off to run the generic forms.
var useVec = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpuid1ecx()>>29&1 == 1

func cpuid1ecx() uint32
