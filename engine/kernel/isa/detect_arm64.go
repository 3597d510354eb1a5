//go:build !noasm

package isa

import "golang.org/x/sys/cpu"

// detect asks only for the dot product: every arm64 processor has NEON.
func detect() []Set {
	if cpu.ARM64.HasASIMDDP {
		return []Set{NEON, DotProd}
	}
	return []Set{NEON}
}
