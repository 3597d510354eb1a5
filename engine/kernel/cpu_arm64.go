//go:build !noasm

package kernel

// detect needs to ask nothing: every arm64 processor has NEON.
func detect() []isa { return []isa{isaNEON} }
