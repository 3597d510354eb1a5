package kernel

import (
	"encoding/binary"
	"math"

	"bmoe/engine/quant"
)

// The dot functions are the readable reference of a row of weights times a
// vector. For quantised weights the order is: inside a block everything is
// summed in integers, which is exact; the block's sum becomes a float32, is
// multiplied by the product of the two scales, and is added to one accumulator,
// block after block. Integer sums may be taken in any order, and the rest has
// but one, so vectors of any width (over rows, or over tokens) give the same
// bits. Every product is rounded before it is added.

func f16(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }

// mulAdd adds w*x to the lanes, element by element. len(w) is a multiple of
// lanes, or this is a row's last piece.
func mulAdd(part *[lanes]float32, w, x []float32) {
	x = x[:len(w)]
	for len(w) >= lanes {
		a, b := (*[lanes]float32)(w), (*[lanes]float32)(x)
		for i := range part {
			part[i] += float32(a[i] * b[i])
		}
		w, x = w[lanes:], x[lanes:]
	}
	for i := range w {
		part[i] += float32(w[i] * x[i])
	}
}

func dotF32(w []byte, x *vec) float32 {
	var part [lanes]float32
	for i, v := range x.f {
		part[i%lanes] += float32(math.Float32frombits(binary.LittleEndian.Uint32(w[4*i:])) * v)
	}
	return fold(&part)
}

func dotF16(w []byte, x *vec) float32 {
	var part [lanes]float32
	for i, v := range x.f {
		part[i%lanes] += float32(f16(w[2*i:]) * v)
	}
	return fold(&part)
}

func dotBF16(w []byte, x *vec) float32 {
	var part [lanes]float32
	for i, v := range x.f {
		part[i%lanes] += float32(quant.BF16ToF32(binary.LittleEndian.Uint16(w[2*i:])) * v)
	}
	return fold(&part)
}

// scaled is a block's contribution. The outer conversion keeps compilers from
// fusing the product with the addition that follows.
func scaled(sum int32, w, x float32) float32 { return float32(float32(sum) * float32(w*x)) }

func dotQ8_0(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := (*[34]byte)(w[34*b:])
		sum := int32(0)
		for i, c := range &xb.q {
			sum += int32(int8(p[2+i])) * int32(c)
		}
		acc += scaled(sum, f16(p[:]), xb.scale)
	}
	return acc
}

// dotNibbles multiplies sixteen bytes of two codes each, entries 0 to 15 in the
// low halves and 16 to 31 in the high ones.
func dotNibbles(w *[16]byte, q *[32]int8) (sum int32) {
	for i, p := range w {
		sum += int32(p&15)*int32(q[i]) + int32(p>>4)*int32(q[i+16])
	}
	return sum
}

// dotTable multiplies entries of a table, numbered as in dotNibbles.
func dotTable(table *[16]int8, w *[16]byte, q *[32]int8) (sum int32) {
	for i, p := range w {
		sum += int32(table[p&15])*int32(q[i]) + int32(table[p>>4])*int32(q[i+16])
	}
	return sum
}

func dotQ4_0(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[18*b:]
		sum := dotNibbles((*[16]byte)(p[2:]), &xb.q) + 8*xb.nsum
		acc += scaled(sum, f16(p), xb.scale)
	}
	return acc
}

func dotQ4_1(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[20*b:]
		sum := dotNibbles((*[16]byte)(p[4:]), &xb.q)
		acc += scaled(sum, f16(p), xb.scale) + float32(f16(p[2:])*xb.s)
	}
	return acc
}

// dotFives adds to dotNibbles a fifth bit of each code, entry i's in bit i.
func dotFives(high uint32, w *[16]byte, q *[32]int8) (sum int32) {
	for i, c := range q {
		sum += int32(high>>i&1) * int32(c)
	}
	return sum*16 + dotNibbles(w, q)
}

func dotQ5_0(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[22*b:]
		sum := dotFives(binary.LittleEndian.Uint32(p[2:]), (*[16]byte)(p[6:]), &xb.q) + 16*xb.nsum
		acc += scaled(sum, f16(p), xb.scale)
	}
	return acc
}

func dotQ5_1(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[24*b:]
		sum := dotFives(binary.LittleEndian.Uint32(p[4:]), (*[16]byte)(p[8:]), &xb.q)
		acc += scaled(sum, f16(p), xb.scale) + float32(f16(p[2:])*xb.s)
	}
	return acc
}

func dotIQ4NL(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[18*b:]
		acc += scaled(dotTable(&quant.NL4, (*[16]byte)(p[2:]), &xb.q), f16(p), xb.scale)
	}
	return acc
}

func dotMXFP4(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[17*b:]
		acc += scaled(dotTable(&quant.E2M1, (*[16]byte)(p[1:]), &xb.q), quant.E8M0Half(p[0]), xb.scale)
	}
	return acc
}

// dotNVFP4 has a scale for every 16 entries, half a block of activations.
func dotNVFP4(w []byte, x *vec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[b/2*36:]
		for s := b % 2 * 2; s < b%2*2+2; s++ {
			q, sum := xb.q[s%2*16:], int32(0)
			for i, c := range p[4+8*s : 12+8*s] {
				sum += int32(quant.E2M1[c&15])*int32(q[i]) + int32(quant.E2M1[c>>4])*int32(q[i+8])
			}
			acc += scaled(sum, quant.UE4M3(p[s])*0.5, xb.scale)
		}
	}
	return acc
}
