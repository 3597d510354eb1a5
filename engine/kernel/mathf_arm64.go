//go:build !noasm

package kernel

// useVec says whether the NEON kernels of this file's siblings run; every
// arm64 processor has what they need. Tests switch it off to run the generic forms.
var useVec = true
