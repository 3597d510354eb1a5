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
		quant.Q8_0:    gemvQ8_0AVX2,
		quant.Q4_0:    gemvQ4_0AVX2,
		quant.Q4_1:    gemvQ4_1AVX2,
		quant.Q5_0:    gemvQ5_0AVX2,
		quant.Q5_1:    gemvQ5_1AVX2,
		quant.IQ4_NL:  gemvIQ4NLAVX2,
		quant.MXFP4:   gemvMXFP4AVX2,
		quant.Q2_K:    gemvQ2KAVX2,
		quant.Q3_K:    gemvQ3KAVX2,
		quant.Q4_K:    gemvQ4KAVX2,
		quant.Q5_K:    gemvQ5KAVX2,
		quant.Q6_K:    gemvQ6KAVX2,
		quant.IQ4_XS:  gemvIQ4XSAVX2,
		quant.IQ2_XXS: gemvIQ2XXSAVX2,
		quant.IQ2_XS:  gemvIQ2XSAVX2,
		quant.IQ2_S:   gemvIQ2SAVX2,
		quant.IQ3_XXS: gemvIQ3XXSAVX2,
		quant.IQ3_S:   gemvIQ3SAVX2,
		quant.IQ1_S:   gemvIQ1SAVX2,
		quant.IQ1_M:   gemvIQ1MAVX2,
		quant.TQ1_0:   gemvTQ10AVX2,
		quant.TQ2_0:   gemvTQ20AVX2,
		quant.NVFP4:   gemvNVFP4AVX2,
	},
	isa.AVX512: {
		quant.Q8_0:    gemvQ8_0AVX512,
		quant.Q4_0:    gemvQ4_0AVX512,
		quant.Q4_1:    gemvQ4_1AVX512,
		quant.Q5_0:    gemvQ5_0AVX512,
		quant.Q5_1:    gemvQ5_1AVX512,
		quant.IQ4_NL:  gemvIQ4NLAVX512,
		quant.MXFP4:   gemvMXFP4AVX512,
		quant.Q2_K:    gemvQ2KAVX2,
		quant.Q3_K:    gemvQ3KAVX2,
		quant.Q4_K:    gemvQ4KAVX2,
		quant.Q5_K:    gemvQ5KAVX2,
		quant.Q6_K:    gemvQ6KAVX2,
		quant.IQ4_XS:  gemvIQ4XSAVX2,
		quant.IQ2_XXS: gemvIQ2XXSAVX2,
		quant.IQ2_XS:  gemvIQ2XSAVX2,
		quant.IQ2_S:   gemvIQ2SAVX2,
		quant.IQ3_XXS: gemvIQ3XXSAVX2,
		quant.IQ3_S:   gemvIQ3SAVX2,
		quant.IQ1_S:   gemvIQ1SAVX2,
		quant.IQ1_M:   gemvIQ1MAVX2,
		quant.TQ1_0:   gemvTQ10AVX2,
		quant.TQ2_0:   gemvTQ20AVX2,
		quant.NVFP4:   gemvNVFP4AVX512,
	},
}

// floatKernels are indexed by instruction set and quant.Type. Wider vectors
// would not help: memory is the limit.
var floatKernels = [...][64]floatKernel{
	isa.AVX2:   {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
	isa.AVX512: {quant.F32: gemvF32AVX2, quant.F16: gemvF16AVX2, quant.BF16: gemvBF16AVX2},
}

// Slots of a superblock, as the generator's superTile lays them out: d and, with
// minima, their factor; the pairs of minima, or of what the added constant comes to;
// then for each group its scale and codes.
const (
	k32Slots    = 1 + 4 + 8*9
	k32MinSlots = 2 + 4 + 8*9
	k16Slots    = 1 + 8 + 16*5
	k16MinSlots = 2 + 8 + 16*5
)

// What multiplies a tile, by the layout of its blocks.
var (
	tileSignedAVX2    = tileKernel{mul: gemmSignedAVX2, rows: 8, tokens: 4, slots: q32Slots}
	tile32AVX2        = tileKernel{mul: gemm32AVX2, rows: 8, tokens: 4, slots: q32Slots}
	tileMinAVX2       = tileKernel{mul: gemmMinAVX2, rows: 8, tokens: 4, slots: q32MinSlots}
	tileK32MinAVX2    = tileKernel{mul: gemmK32MinAVX2, rows: 8, tokens: 4, slots: k32MinSlots}
	tileK16MinAVX2    = tileKernel{mul: gemmK16MinAVX2, rows: 8, tokens: 4, slots: k16MinSlots}
	tileK16AVX2       = tileKernel{mul: gemmK16AVX2, rows: 8, tokens: 4, slots: k16Slots}
	tileK32SignedAVX2 = tileKernel{mul: gemmK32SignedAVX2, rows: 8, tokens: 4, slots: k32Slots}
	tile32AVX512      = tileKernel{mul: gemm32AVX512, half: gemm32AVX512x4, rows: 16, tokens: 8, slots: q32Slots}
	tileMinAVX512     = tileKernel{mul: gemmMinAVX512, half: gemmMinAVX512x4, rows: 16, tokens: 8, slots: q32MinSlots}
	tileK32MinAVX512  = tileKernel{mul: gemmK32MinAVX512, half: gemmK32MinAVX512x4, rows: 16, tokens: 8, slots: k32MinSlots}
	tileK16MinAVX512  = tileKernel{mul: gemmK16MinAVX512, half: gemmK16MinAVX512x4, rows: 16, tokens: 8, slots: k16MinSlots}
	tileK16AVX512     = tileKernel{mul: gemmK16AVX512, half: gemmK16AVX512x4, rows: 16, tokens: 8, slots: k16Slots}
	tileK32AVX512     = tileKernel{mul: gemmK32AVX512, half: gemmK32AVX512x4, rows: 16, tokens: 8, slots: k32Slots}
	tileK16WideAVX2   = tileKernel{mul: gemmK16WideAVX2, rows: 8, tokens: 4, slots: k16Slots}
)

// gemmKernels are indexed by instruction set and quant.Type. The AVX2 kernels
// keep sums of products in int16, so codes must stay small: 16 is added where a
// type's codes are signed and small, nothing where the kernel takes signs.
var gemmKernels = [...][64]gemmKernel{
	isa.AVX2: {
		quant.Q8_0:   {pack: packQ8_0AVX2, tileKernel: tileSignedAVX2},
		quant.IQ4_NL: {pack: packIQ4NLAVX2, tileKernel: tileSignedAVX2},
		quant.Q4_0:   {pack: packQ4_0AVX2, add: 16 - 8, tileKernel: tile32AVX2},
		quant.Q5_0:   {pack: packQ5_0AVX2, tileKernel: tile32AVX2},
		quant.MXFP4:  {pack: packMXFP4AVX2, add: 16, tileKernel: tile32AVX2},
		quant.Q4_1:   {pack: packQ4_1AVX2, tileKernel: tileMinAVX2},
		quant.Q5_1:   {pack: packQ5_1AVX2, tileKernel: tileMinAVX2},
		quant.Q4_K:   {pack: packQ4KAVX2, tileKernel: tileK32MinAVX2},
		quant.Q5_K:   {pack: packQ5KAVX2, tileKernel: tileK32MinAVX2},
		quant.Q2_K:   {pack: packQ2KAVX2, tileKernel: tileK16MinAVX2},
		quant.Q3_K:   {pack: packQ3KAVX2, add: 4, tileKernel: tileK16AVX2},
		quant.Q6_K:   {pack: packQ6KAVX2, add: 32, tileKernel: tileK16AVX2},
		quant.IQ4_XS: {pack: packIQ4XSAVX2, tileKernel: tileK32SignedAVX2},
	},
	isa.AVX512: {
		quant.Q8_0:   {pack: packQ8_0AVX512, add: 128, tileKernel: tile32AVX512},
		quant.IQ4_NL: {pack: packIQ4NLAVX512, add: 128, tileKernel: tile32AVX512},
		quant.Q4_0:   {pack: packQ4_0AVX512, add: 128 - 8, tileKernel: tile32AVX512},
		quant.Q5_0:   {pack: packQ5_0AVX512, add: 128 - 16, tileKernel: tile32AVX512},
		quant.MXFP4:  {pack: packMXFP4AVX512, add: 128, tileKernel: tile32AVX512},
		quant.Q4_1:   {pack: packQ4_1AVX512, tileKernel: tileMinAVX512},
		quant.Q5_1:   {pack: packQ5_1AVX512, tileKernel: tileMinAVX512},
		quant.Q4_K:   {pack: packQ4KAVX512, tileKernel: tileK32MinAVX512},
		quant.Q5_K:   {pack: packQ5KAVX512, tileKernel: tileK32MinAVX512},
		quant.Q2_K:   {pack: packQ2KAVX512, tileKernel: tileK16MinAVX512},
		quant.Q3_K:   {pack: packQ3KAVX512, add: 4, tileKernel: tileK16AVX512},
		quant.Q6_K:   {pack: packQ6KAVX512, add: 32, tileKernel: tileK16AVX512},
		quant.IQ4_XS: {pack: packIQ4XSAVX512, add: 128, tileKernel: tileK32AVX512},
	},
}

// unpackedGemm is the same for rows that have been taken apart; their codes are
// at most 62 in magnitude.
var unpackedGemm = [...]gemmKernel{
	isa.AVX2:   {pack: packUnpackedAVX2, add: 64, tileKernel: tileK16WideAVX2},
	isa.AVX512: {pack: packUnpackedAVX512, add: 128, tileKernel: tileK16AVX512},
}

// unpackKernels are indexed by instruction set and quant.Type.
var unpackKernels = [...][64]unpackKernel{
	isa.AVX2: {
		quant.IQ2_XXS: unpackIQ2XXSAVX2,
		quant.IQ2_XS:  unpackIQ2XSAVX2,
		quant.IQ2_S:   unpackIQ2SAVX2,
		quant.IQ3_XXS: unpackIQ3XXSAVX2,
		quant.IQ3_S:   unpackIQ3SAVX2,
		quant.IQ1_S:   unpackIQ1SAVX2,
		quant.IQ1_M:   unpackIQ1MAVX2,
		quant.TQ1_0:   unpackTQ10AVX2,
		quant.TQ2_0:   unpackTQ20AVX2,
	},
	isa.AVX512: {
		quant.IQ2_XXS: unpackIQ2XXSAVX2,
		quant.IQ2_XS:  unpackIQ2XSAVX2,
		quant.IQ2_S:   unpackIQ2SAVX2,
		quant.IQ3_XXS: unpackIQ3XXSAVX2,
		quant.IQ3_S:   unpackIQ3SAVX2,
		quant.IQ1_S:   unpackIQ1SAVX2,
		quant.IQ1_M:   unpackIQ1MAVX2,
		quant.TQ1_0:   unpackTQ10AVX2,
		quant.TQ2_0:   unpackTQ20AVX2,
	},
}
