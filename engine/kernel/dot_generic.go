package kernel

import (
	"encoding/binary"
	"math"

	"bmoe/engine/kernel/vec"
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

// mulAdd adds w*x to the partial sums, element by element. len(w) is a multiple of
// vec.Partials, or this is a row's last piece.
func mulAdd(part *[vec.Partials]float32, w, x []float32) {
	x = x[:len(w)]
	whole := len(w) / vec.Partials * vec.Partials
	for l := 0; l < vec.Partials; l += 8 {
		// As many sums as there are registers for.
		p := (*[8]float32)(part[l:])
		p0, p1, p2, p3, p4, p5, p6, p7 := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
		for o := l; o < whole; o += vec.Partials {
			a, b := (*[8]float32)(w[o:]), (*[8]float32)(x[o:])
			p0 += float32(a[0] * b[0])
			p1 += float32(a[1] * b[1])
			p2 += float32(a[2] * b[2])
			p3 += float32(a[3] * b[3])
			p4 += float32(a[4] * b[4])
			p5 += float32(a[5] * b[5])
			p6 += float32(a[6] * b[6])
			p7 += float32(a[7] * b[7])
		}
		*p = [8]float32{p0, p1, p2, p3, p4, p5, p6, p7}
	}
	for i := whole; i < len(w); i++ {
		part[i-whole] += float32(w[i] * x[i])
	}
}

// dotFloats multiplies a row of floats.
func dotFloats(t quant.Type, w []byte, x []float32) float32 {
	var part [vec.Partials]float32
	var buf [16 * vec.Partials]float32
	for len(x) > 0 {
		n := min(len(buf), len(x))
		v := buf[:n]
		switch t {
		case quant.F32:
			for i := range v {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(w[4*i:]))
			}
		case quant.F16:
			for i := range v {
				h := binary.LittleEndian.Uint16(w[2*i:])
				if e := h & 0x7c00; e == 0 || e == 0x7c00 {
					v[i] = quant.F16ToF32(h)
					continue
				}
				v[i] = math.Float32frombits(uint32(h&0x8000)<<16 | (uint32(h&0x7fff)<<13 + 112<<23))
			}
		case quant.BF16:
			for i := range v {
				v[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(w[2*i:])) << 16)
			}
		}
		mulAdd(&part, v, x[:n])
		w, x = w[t.BlockBytes()*n:], x[n:]
	}
	return vec.Fold(&part)
}

func dotF32(w []byte, x *actVec) float32  { return dotFloats(quant.F32, w, x.f) }
func dotF16(w []byte, x *actVec) float32  { return dotFloats(quant.F16, w, x.f) }
func dotBF16(w []byte, x *actVec) float32 { return dotFloats(quant.BF16, w, x.f) }

// scaled is a block's contribution. The outer conversion keeps compilers from
// fusing the product with the addition that follows.
func scaled(sum int32, w, x float32) float32 { return float32(float32(sum) * float32(w*x)) }

func dotQ8_0(w []byte, x *actVec) float32 {
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

func dotQ4_0(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[18*b:]
		sum := dotNibbles((*[16]byte)(p[2:]), &xb.q) + 8*xb.nsum
		acc += scaled(sum, f16(p), xb.scale)
	}
	return acc
}

func dotQ4_1(w []byte, x *actVec) float32 {
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

func dotQ5_0(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[22*b:]
		sum := dotFives(binary.LittleEndian.Uint32(p[2:]), (*[16]byte)(p[6:]), &xb.q) + 16*xb.nsum
		acc += scaled(sum, f16(p), xb.scale)
	}
	return acc
}

func dotQ5_1(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[24*b:]
		sum := dotFives(binary.LittleEndian.Uint32(p[4:]), (*[16]byte)(p[8:]), &xb.q)
		acc += scaled(sum, f16(p), xb.scale) + float32(f16(p[2:])*xb.s)
	}
	return acc
}

func dotIQ4NL(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[18*b:]
		acc += scaled(dotTable(&quant.NL4, (*[16]byte)(p[2:]), &xb.q), f16(p), xb.scale)
	}
	return acc
}

func dotMXFP4(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.q8 {
		xb := &x.q8[b]
		p := w[17*b:]
		acc += scaled(dotTable(&quant.E2M1, (*[16]byte)(p[1:]), &xb.q), quant.E8M0Half(p[0]), xb.scale)
	}
	return acc
}

// dotNVFP4 has a scale for every 16 entries, half a block of activations.
func dotNVFP4(w []byte, x *actVec) float32 {
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
