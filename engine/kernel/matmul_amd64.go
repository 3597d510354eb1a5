//go:build !noasm

package kernel

import (
	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

// gemvRows is the number of rows in a group of the gemv kernels.
const gemvRows = 8

// gemvKernels are indexed by instruction set and quant.Type.
var gemvKernels = [...][64]gemvKernel{
	isa.AVX2: {
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
	isa.AVX512: {
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

// unpackedKernels are indexed by instruction set.
var unpackedKernels = [...]gemvKernel{isa.AVX2: gemvUnpackedAVX2, isa.AVX512: gemvUnpackedAVX2}

// floatKernels are indexed by instruction set and quant.Type. Wider vectors
// would not help: memory is the limit.
var floatKernels = [...][64]floatKernel{
	isa.AVX2:   {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
	isa.AVX512: {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
}

// gemmKernels are indexed by instruction set and quant.Type. The AVX2 kernels
// keep sums of products in int16, so codes must stay small: 16 is added where a
// type's codes are signed and small, nothing where the kernel takes signs.
var gemmKernels = [...][64]gemmKernel{
	isa.AVX2: {
		quant.Q8_0:   {packQ8_0AVX2, 0, gemmSignedAVX2, nil, 8, 4, 9},
		quant.IQ4_NL: {packIQ4NLAVX2, 0, gemmSignedAVX2, nil, 8, 4, 9},
		quant.Q4_0:   {packQ4_0AVX2, 16 - 8, gemm32AVX2, nil, 8, 4, 9},
		quant.Q5_0:   {packQ5_0AVX2, 0, gemm32AVX2, nil, 8, 4, 9},
		quant.MXFP4:  {packMXFP4AVX2, 16, gemm32AVX2, nil, 8, 4, 9},
		quant.Q4_1:   {packQ4_1AVX2, 0, gemmMinAVX2, nil, 8, 4, 10},
		quant.Q5_1:   {packQ5_1AVX2, 0, gemmMinAVX2, nil, 8, 4, 10},
		quant.Q4_K:   {packQ4KAVX2, 0, gemmK32MinAVX2, nil, 8, 4, 78},
		quant.Q5_K:   {packQ5KAVX2, 0, gemmK32MinAVX2, nil, 8, 4, 78},
		quant.Q2_K:   {packQ2KAVX2, 0, gemmK16MinAVX2, nil, 8, 4, 90},
		quant.Q3_K:   {packQ3KAVX2, 4, gemmK16AVX2, nil, 8, 4, 89},
		quant.Q6_K:   {packQ6KAVX2, 32, gemmK16AVX2, nil, 8, 4, 89},
		quant.IQ4_XS: {packIQ4XSAVX2, 0, gemmK32SignedAVX2, nil, 8, 4, 77},
	},
	isa.AVX512: {
		quant.Q8_0:   {packQ8_0AVX512, 128, gemm32AVX512, gemm32AVX512x4, 16, 8, 9},
		quant.IQ4_NL: {packIQ4NLAVX512, 128, gemm32AVX512, gemm32AVX512x4, 16, 8, 9},
		quant.Q4_0:   {packQ4_0AVX512, 128 - 8, gemm32AVX512, gemm32AVX512x4, 16, 8, 9},
		quant.Q5_0:   {packQ5_0AVX512, 128 - 16, gemm32AVX512, gemm32AVX512x4, 16, 8, 9},
		quant.MXFP4:  {packMXFP4AVX512, 128, gemm32AVX512, gemm32AVX512x4, 16, 8, 9},
		quant.Q4_1:   {packQ4_1AVX512, 0, gemmMinAVX512, gemmMinAVX512x4, 16, 8, 10},
		quant.Q5_1:   {packQ5_1AVX512, 0, gemmMinAVX512, gemmMinAVX512x4, 16, 8, 10},
		quant.Q4_K:   {packQ4KAVX512, 0, gemmK32MinAVX512, gemmK32MinAVX512x4, 16, 8, 78},
		quant.Q5_K:   {packQ5KAVX512, 0, gemmK32MinAVX512, gemmK32MinAVX512x4, 16, 8, 78},
		quant.Q2_K:   {packQ2KAVX512, 0, gemmK16MinAVX512, gemmK16MinAVX512x4, 16, 8, 90},
		quant.Q3_K:   {packQ3KAVX512, 4, gemmK16AVX512, gemmK16AVX512x4, 16, 8, 89},
		quant.Q6_K:   {packQ6KAVX512, 32, gemmK16AVX512, gemmK16AVX512x4, 16, 8, 89},
		quant.IQ4_XS: {packIQ4XSAVX512, 128, gemmK32AVX512, gemmK32AVX512x4, 16, 8, 77},
	},
}

// unpackedGemm is the same for rows that have been taken apart; their codes are
// at most 62 in magnitude.
var unpackedGemm = [...]gemmKernel{
	isa.AVX2:   {packUnpackedAVX2, 64, gemmK16WideAVX2, nil, 8, 4, 89},
	isa.AVX512: {packUnpackedAVX512, 128, gemmK16AVX512, gemmK16AVX512x4, 16, 8, 89},
}
