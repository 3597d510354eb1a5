package kernel

import "bmoe/engine/quant"

// The code-book types go through their dequantised values. These are a grid
// value or a small fraction times a scale; dividing by the superblock's factor
// would give back integers, but only the order of the additions has to be
// fixed, and it is: entries in order, in float64, rounded once a superblock.

// dotDequantized multiplies superblocks of 256 by way of their values.
func dotDequantized(t quant.Type, w []byte, x *vec) float32 {
	var acc float32
	var v [256]float32
	bytes := t.BlockBytes()
	for b := range x.k {
		xb := &x.k[b]
		dequantize(t, v[:], w[bytes*b:bytes*(b+1)])
		var sum float64
		for i, c := range &xb.q {
			// 24 bits times 8 bits: the product is exact.
			sum += float64(v[i]) * float64(c)
		}
		acc += float32(float32(sum) * xb.scale)
	}
	return acc
}

func dotIQ1S(w []byte, x *vec) float32   { return dotDequantized(quant.IQ1_S, w, x) }
func dotIQ1M(w []byte, x *vec) float32   { return dotDequantized(quant.IQ1_M, w, x) }
func dotIQ2XXS(w []byte, x *vec) float32 { return dotDequantized(quant.IQ2_XXS, w, x) }
func dotIQ2XS(w []byte, x *vec) float32  { return dotDequantized(quant.IQ2_XS, w, x) }
func dotIQ2S(w []byte, x *vec) float32   { return dotDequantized(quant.IQ2_S, w, x) }
func dotIQ3XXS(w []byte, x *vec) float32 { return dotDequantized(quant.IQ3_XXS, w, x) }
func dotIQ3S(w []byte, x *vec) float32   { return dotDequantized(quant.IQ3_S, w, x) }
func dotTQ1(w []byte, x *vec) float32    { return dotDequantized(quant.TQ1_0, w, x) }
func dotTQ2(w []byte, x *vec) float32    { return dotDequantized(quant.TQ2_0, w, x) }
