// Package vec holds the small steps over vectors of floats: activations, norms,
// softmax, RoPE. Each gives the same bits on every processor.
package vec

import (
	"math"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

// ops are the steps as an instruction set does them. The exported functions are those
// of the best one.
type ops isa.Set

var best = ops(isa.Best())

// Partials is the number of partial sums of every float reduction over a vector.
// Element i belongs to sum i mod Partials, and a sum adds its elements in order;
// then sum j takes sum j+8, j+4, j+2 and j+1. Vectors of 4, 8 and 16 elements
// can all follow this.
const Partials = 16

// SiluMul sets dst[i] = silu(gate[i]) * up[i]. The slices have one length; dst
// may be one of the others.
func SiluMul(dst, gate, up []float32) { best.SiluMul(dst, gate, up) }

func (on ops) SiluMul(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := on.siluMul(dst, gate, up); i < len(dst); i++ {
		dst[i] = Silu32(gate[i]) * up[i]
	}
}

// GeluMul sets dst[i] = gelu(gate[i]) * up[i], gelu in its tanh form. The slices
// have one length; dst may be one of the others.
func GeluMul(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := range dst {
		dst[i] = Gelu32(gate[i]) * up[i]
	}
}

// SoftCap sets x[i] = limit * tanh(x[i] / limit).
func SoftCap(x []float32, limit float32) {
	for i, v := range x {
		// tanh(y) = 1 - 2 / (e^2y + 1)
		x[i] = limit - float32(2*limit)/(Exp32(float32(2*(v/limit)))+1)
	}
}

// Add sets dst[i] += x[i].
func Add(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

// AddScaled sets dst[i] += w * x[i], the product rounded first.
func AddScaled(dst, x []float32, w float32) { best.AddScaled(dst, x, w) }

func (on ops) AddScaled(dst, x []float32, w float32) {
	x = x[:len(dst)]
	for i := on.addScaled(dst, x, w); i < len(dst); i++ {
		dst[i] += float32(w * x[i])
	}
}

// Scale sets x[i] *= w.
func Scale(x []float32, w float32) {
	for i := range x {
		x[i] *= w
	}
}

// Rescale multiplies x by f. The sum turns -0 into 0: attention counts on that,
// for there weights of 0, which rows get that do not see a key, must not change
// a bit.
func Rescale(x []float32, f float32) { best.Rescale(x, f) }

func (on ops) Rescale(x []float32, f float32) {
	for i := on.rescalePart(x, f); i < len(x); i++ {
		x[i] = float32(x[i]*f) + 0
	}
}

// Blend sets dst[i] = a * dst[i] + b * x[i], the products rounded first.
func Blend(dst, x []float32, a, b float32) { best.Blend(dst, x, a, b) }

func (on ops) Blend(dst, x []float32, a, b float32) {
	x = x[:len(dst)]
	for i := on.blendPart(dst, x, a, b); i < len(dst); i++ {
		dst[i] = float32(dst[i]*a) + float32(x[i]*b)
	}
}

// AddProducts sets dst[i] += a[i] * b[i], the product rounded first.
func AddProducts(dst, a, b []float32) { best.AddProducts(dst, a, b) }

func (on ops) AddProducts(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := on.addProductsPart(dst, a, b); i < len(dst); i++ {
		dst[i] += float32(a[i] * b[i])
	}
}

// Products16 sets dst[i] = a[i] * b[i], rounded to 16 bits of mantissa: its
// product with an int8 is exact in float32.
func Products16(dst, a, b []float32) { best.Products16(dst, a, b) }

func (on ops) Products16(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := on.products16Part(dst, a, b); i < len(dst); i++ {
		dst[i] = Round16(a[i] * b[i])
	}
}

// Round16 rounds to 16 bits of mantissa, halves away from 0.
func Round16(x float32) float32 {
	return math.Float32frombits((math.Float32bits(x) + 0x80) &^ 0xff)
}

// ToHalf rounds src to half precision.
func ToHalf(dst []uint16, src []float32) { best.ToHalf(dst, src) }

func (on ops) ToHalf(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i := on.toHalfPart(dst, src); i < len(src); i++ {
		dst[i] = quant.F32ToF16(src[i])
	}
}

// RoundHalf sets dst to src rounded to half precision.
func RoundHalf(dst, src []float32) { best.RoundHalf(dst, src) }

func (on ops) RoundHalf(dst, src []float32) {
	dst = dst[:len(src)]
	for i := on.roundHalfPart(dst, src); i < len(src); i++ {
		dst[i] = quant.F16ToF32(quant.F32ToF16(src[i]))
	}
}

// Dot returns the product of two vectors, in partial sums.
func Dot(a, b []float32) float32 {
	var part [Partials]float32
	b = b[:len(a)]
	for i, x := range a {
		part[i%Partials] += float32(x * b[i])
	}
	return Fold(&part)
}

// Fold adds up the partial sums in the fixed order.
func Fold(l *[Partials]float32) float32 {
	for w := Partials / 2; w > 0; w /= 2 {
		for j := range w {
			l[j] += l[j+w]
		}
	}
	return l[0]
}

func fold64(l *[Partials]float64) float64 {
	for w := Partials / 2; w > 0; w /= 2 {
		for j := range w {
			l[j] += l[j+w]
		}
	}
	return l[0]
}
