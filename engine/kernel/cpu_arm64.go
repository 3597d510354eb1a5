//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// detect asks only for the dot product: every arm64 processor has NEON.
func detect() []isa {
	if cpu.ARM64.HasASIMDDP {
		return []isa{isaNEON, isaDotProd}
	}
	return []isa{isaNEON}
}
