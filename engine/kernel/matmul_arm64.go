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
		quant.Q8_0:    gemvQ8_0NEON,
		quant.Q4_0:    gemvQ4_0NEON,
		quant.Q4_1:    gemvQ4_1NEON,
		quant.Q5_0:    gemvQ5_0NEON,
		quant.Q5_1:    gemvQ5_1NEON,
		quant.IQ4_NL:  gemvIQ4NLNEON,
		quant.MXFP4:   gemvMXFP4NEON,
		quant.Q2_K:    gemvQ2KNEON,
		quant.Q3_K:    gemvQ3KNEON,
		quant.Q4_K:    gemvQ4KNEON,
		quant.Q5_K:    gemvQ5KNEON,
		quant.Q6_K:    gemvQ6KNEON,
		quant.IQ4_XS:  gemvIQ4XSNEON,
		quant.IQ2_XXS: gemvIQ2XXSNEON,
		quant.IQ2_XS:  gemvIQ2XSNEON,
		quant.IQ2_S:   gemvIQ2SNEON,
		quant.IQ3_XXS: gemvIQ3XXSNEON,
		quant.IQ3_S:   gemvIQ3SNEON,
		quant.IQ1_S:   gemvIQ1SNEON,
		quant.IQ1_M:   gemvIQ1MNEON,
		quant.TQ1_0:   gemvTQ10NEON,
		quant.TQ2_0:   gemvTQ20NEON,
		quant.NVFP4:   gemvNVFP4NEON,
	},
	isa.DotProd: {
		quant.Q8_0:    gemvQ8_0DotProd,
		quant.Q4_0:    gemvQ4_0DotProd,
		quant.Q4_1:    gemvQ4_1DotProd,
		quant.Q5_0:    gemvQ5_0DotProd,
		quant.Q5_1:    gemvQ5_1DotProd,
		quant.IQ4_NL:  gemvIQ4NLDotProd,
		quant.MXFP4:   gemvMXFP4DotProd,
		quant.Q2_K:    gemvQ2KDotProd,
		quant.Q3_K:    gemvQ3KDotProd,
		quant.Q4_K:    gemvQ4KDotProd,
		quant.Q5_K:    gemvQ5KDotProd,
		quant.Q6_K:    gemvQ6KDotProd,
		quant.IQ4_XS:  gemvIQ4XSDotProd,
		quant.IQ2_XXS: gemvIQ2XXSDotProd,
		quant.IQ2_XS:  gemvIQ2XSDotProd,
		quant.IQ2_S:   gemvIQ2SDotProd,
		quant.IQ3_XXS: gemvIQ3XXSDotProd,
		quant.IQ3_S:   gemvIQ3SDotProd,
		quant.IQ1_S:   gemvIQ1SDotProd,
		quant.IQ1_M:   gemvIQ1MDotProd,
		quant.TQ1_0:   gemvTQ10DotProd,
		quant.TQ2_0:   gemvTQ20DotProd,
		quant.NVFP4:   gemvNVFP4DotProd,
	},
}

// floatKernels are indexed by instruction set and quant.Type.
var floatKernels = [...][64]floatKernel{
	isa.NEON:    {quant.F32: gemvF32NEON, quant.F16: gemvF16NEON, quant.BF16: gemvBF16NEON},
	isa.DotProd: {quant.F32: gemvF32NEON, quant.F16: gemvF16NEON, quant.BF16: gemvBF16NEON},
}

// What multiplies a tile, by the layout of its blocks.
var (
	tile32DotProd     = tileKernel{mul: gemm32DotProd, rows: 8, tokens: 4, slots: q32Slots}
	tileMinDotProd    = tileKernel{mul: gemmMinDotProd, rows: 8, tokens: 4, slots: q32MinSlots}
	tileK32MinDotProd = tileKernel{mul: gemmK32MinDotProd, rows: 8, tokens: 4, slots: k32MinSlots}
	tileK16MinDotProd = tileKernel{mul: gemmK16MinDotProd, rows: 8, tokens: 4, slots: k16MinSlots}
	tileK16DotProd    = tileKernel{mul: gemmK16DotProd, rows: 8, tokens: 4, slots: k16Slots}
	tileK32DotProd    = tileKernel{mul: gemmK32DotProd, rows: 8, tokens: 4, slots: k32Slots}
)

// gemmKernels are indexed by instruction set and quant.Type. Without the dot
// product instructions the vectors go one by one.
var gemmKernels = [...][64]gemmKernel{
	isa.DotProd: {
		quant.Q8_0:   {pack: tileQ8_0, tileKernel: tile32DotProd},
		quant.Q4_0:   {pack: tileQ4_0, tileKernel: tile32DotProd},
		quant.Q5_0:   {pack: tileQ5_0, tileKernel: tile32DotProd},
		quant.IQ4_NL: {pack: tileIQ4NL, tileKernel: tile32DotProd},
		quant.MXFP4:  {pack: tileMXFP4, tileKernel: tile32DotProd},
		quant.Q4_1:   {pack: tileQ4_1, tileKernel: tileMinDotProd},
		quant.Q5_1:   {pack: tileQ5_1, tileKernel: tileMinDotProd},
		quant.Q4_K:   {pack: tileQ4K, tileKernel: tileK32MinDotProd},
		quant.Q5_K:   {pack: tileQ5K, tileKernel: tileK32MinDotProd},
		quant.Q2_K:   {pack: tileQ2K, tileKernel: tileK16MinDotProd},
		quant.Q3_K:   {pack: tileQ3K, tileKernel: tileK16DotProd},
		quant.Q6_K:   {pack: tileQ6K, tileKernel: tileK16DotProd},
		quant.IQ4_XS: {pack: tileIQ4XS, tileKernel: tileK32DotProd},
	},
}

// unpackedGemm is the same for rows that have been taken apart.
var unpackedGemm = [...]gemmKernel{
	isa.DotProd: {pack: tileUnpacked, tileKernel: tileK16DotProd},
}

// unpackKernels are indexed by instruction set and quant.Type: Go does it.
var unpackKernels [isa.DotProd + 1][64]unpackKernel
