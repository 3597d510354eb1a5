//go:build !noasm

package kernel

import "bmoe/engine/quant"

// gemvKernels are indexed by instruction set and quant.Type.
var gemvKernels = [...][64]gemvKernel{
	isaAVX2: {
		quant.Q8_0:   gemvQ8_0AVX2,
		quant.Q4_0:   gemvQ4_0AVX2,
		quant.Q4_1:   gemvQ4_1AVX2,
		quant.Q5_0:   gemvQ5_0AVX2,
		quant.Q5_1:   gemvQ5_1AVX2,
		quant.IQ4_NL: gemvIQ4NLAVX2,
		quant.MXFP4:  gemvMXFP4AVX2,
		quant.Q2_K:   gemvQ2KAVX2,
		quant.Q3_K:   gemvQ3KAVX2,
		quant.Q4_K:   gemvQ4KAVX2,
		quant.Q5_K:   gemvQ5KAVX2,
		quant.Q6_K:   gemvQ6KAVX2,
		quant.IQ4_XS: gemvIQ4XSAVX2,
	},
	isaAVX512: {
		quant.Q8_0:   gemvQ8_0AVX512,
		quant.Q4_0:   gemvQ4_0AVX512,
		quant.Q4_1:   gemvQ4_1AVX512,
		quant.Q5_0:   gemvQ5_0AVX512,
		quant.Q5_1:   gemvQ5_1AVX512,
		quant.IQ4_NL: gemvIQ4NLAVX512,
		quant.MXFP4:  gemvMXFP4AVX512,
		quant.Q2_K:   gemvQ2KAVX2,
		quant.Q3_K:   gemvQ3KAVX2,
		quant.Q4_K:   gemvQ4KAVX2,
		quant.Q5_K:   gemvQ5KAVX2,
		quant.Q6_K:   gemvQ6KAVX2,
		quant.IQ4_XS: gemvIQ4XSAVX2,
	},
}

// floatKernels are indexed by instruction set and quant.Type. Wider vectors
// would not help: memory is the limit.
var floatKernels = [...][64]floatKernel{
	isaAVX2:   {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
	isaAVX512: {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
}
