//go:build !noasm

package kernel

import (
	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

// gemvRows is the number of rows in a group of the gemv kernels.
const gemvRows = 4

// gemvKernels are indexed by instruction set and quant.Type.
var gemvKernels = [...][64]gemvKernel{
	isa.NEON: {
		quant.Q8_0:   gemvQ8_0NEON,
		quant.Q4_0:   gemvQ4_0NEON,
		quant.Q4_1:   gemvQ4_1NEON,
		quant.Q5_0:   gemvQ5_0NEON,
		quant.Q5_1:   gemvQ5_1NEON,
		quant.IQ4_NL: gemvIQ4NLNEON,
		quant.MXFP4:  gemvMXFP4NEON,
		quant.Q2_K:   gemvQ2KNEON,
		quant.Q3_K:   gemvQ3KNEON,
		quant.Q4_K:   gemvQ4KNEON,
		quant.Q5_K:   gemvQ5KNEON,
		quant.Q6_K:   gemvQ6KNEON,
		quant.IQ4_XS: gemvIQ4XSNEON,
	},
	isa.DotProd: {
		quant.Q8_0:   gemvQ8_0DotProd,
		quant.Q4_0:   gemvQ4_0DotProd,
		quant.Q4_1:   gemvQ4_1DotProd,
		quant.Q5_0:   gemvQ5_0DotProd,
		quant.Q5_1:   gemvQ5_1DotProd,
		quant.IQ4_NL: gemvIQ4NLDotProd,
		quant.MXFP4:  gemvMXFP4DotProd,
		quant.Q2_K:   gemvQ2KDotProd,
		quant.Q3_K:   gemvQ3KDotProd,
		quant.Q4_K:   gemvQ4KDotProd,
		quant.Q5_K:   gemvQ5KDotProd,
		quant.Q6_K:   gemvQ6KDotProd,
		quant.IQ4_XS: gemvIQ4XSDotProd,
	},
}

// unpackedKernels are indexed by instruction set.
var unpackedKernels = [...]gemvKernel{isa.NEON: gemvUnpackedNEON, isa.DotProd: gemvUnpackedDotProd}

// floatKernels are indexed by instruction set and quant.Type.
var floatKernels = [...][64]floatKernel{
	isa.NEON:    {quant.F32: gemvF32NEON, quant.F16: gemvF16NEON, quant.BF16: gemvBF16NEON},
	isa.DotProd: {quant.F32: gemvF32NEON, quant.F16: gemvF16NEON, quant.BF16: gemvBF16NEON},
}

// gemmKernels are indexed by instruction set and quant.Type. Without the dot
// product instructions the vectors go one by one.
var gemmKernels = [...][64]gemmKernel{
	isa.DotProd: {
		quant.Q8_0:   {tileQ8_0, 0, gemm32DotProd, nil, 8, 4, 9},
		quant.Q4_0:   {tileQ4_0, 0, gemm32DotProd, nil, 8, 4, 9},
		quant.Q5_0:   {tileQ5_0, 0, gemm32DotProd, nil, 8, 4, 9},
		quant.IQ4_NL: {tileIQ4NL, 0, gemm32DotProd, nil, 8, 4, 9},
		quant.MXFP4:  {tileMXFP4, 0, gemm32DotProd, nil, 8, 4, 9},
		quant.Q4_1:   {tileQ4_1, 0, gemmMinDotProd, nil, 8, 4, 10},
		quant.Q5_1:   {tileQ5_1, 0, gemmMinDotProd, nil, 8, 4, 10},
		quant.Q4_K:   {tileQ4K, 0, gemmK32MinDotProd, nil, 8, 4, k32MinSlots},
		quant.Q5_K:   {tileQ5K, 0, gemmK32MinDotProd, nil, 8, 4, k32MinSlots},
		quant.Q2_K:   {tileQ2K, 0, gemmK16MinDotProd, nil, 8, 4, k16MinSlots},
		quant.Q3_K:   {tileQ3K, 0, gemmK16DotProd, nil, 8, 4, k16Slots},
		quant.Q6_K:   {tileQ6K, 0, gemmK16DotProd, nil, 8, 4, k16Slots},
		quant.IQ4_XS: {tileIQ4XS, 0, gemmK32DotProd, nil, 8, 4, k32Slots},
	},
}

// unpackedGemm is the same for rows that have been taken apart.
var unpackedGemm = [...]gemmKernel{
	isa.DotProd: {tileUnpacked, 0, gemmK16DotProd, nil, 8, 4, k16Slots},
}
