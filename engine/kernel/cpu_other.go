//go:build noasm || !amd64

package kernel

func detect() []isa { return nil }

var gemvKernels [isaDotProd + 1][64]gemvKernel
