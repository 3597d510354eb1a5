package kernel

import (
	"encoding/binary"

	"bmoe/engine/quant"
)

// Superblocks of 256 with integer scales for groups of 16 or 32: the groups'
// sums are weighted by their scales in integers too, so there is one float
// product a superblock, and a second one where the type has minima.

// withMin is the contribution of a superblock that has minima.
func withMin(sum int32, d float32, mins int32, dmin, x float32) float32 {
	return scaled(sum, d, x) - scaled(mins, dmin, x)
}

func dotQ4K(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[144]byte)(w[144*b:])
		q := &xb.q
		var sum, mins int32
		for a := range 4 {
			qs := (*[32]byte)(p[16+32*a:])
			x0, x1 := (*[32]int8)(q[64*a:]), (*[32]int8)(q[64*a+32:])
			var s0, s1 int32
			for i, v := range qs {
				s0 += int32(v&15) * int32(x0[i])
				s1 += int32(v>>4) * int32(x1[i])
			}
			sc0, m0 := quant.ScaleMinK4(p[4:16], 2*a)
			sc1, m1 := quant.ScaleMinK4(p[4:16], 2*a+1)
			sum += int32(sc0)*s0 + int32(sc1)*s1
			mins += int32(m0)*int32(xb.sum32[2*a]) + int32(m1)*int32(xb.sum32[2*a+1])
		}
		acc += withMin(sum, f16(p[:]), mins, f16(p[2:]), xb.scale)
	}
	return acc
}

func dotQ5K(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[176]byte)(w[176*b:])
		q := &xb.q
		qh := (*[32]byte)(p[16:])
		var sum, mins int32
		for a := range 4 {
			qs := (*[32]byte)(p[48+32*a:])
			x0, x1 := (*[32]int8)(q[64*a:]), (*[32]int8)(q[64*a+32:])
			var s0, s1 int32
			for i, v := range qs {
				h := qh[i] >> (2 * a)
				s0 += int32(v&15|h&1<<4) * int32(x0[i])
				s1 += int32(v>>4|h>>1&1<<4) * int32(x1[i])
			}
			sc0, m0 := quant.ScaleMinK4(p[4:16], 2*a)
			sc1, m1 := quant.ScaleMinK4(p[4:16], 2*a+1)
			sum += int32(sc0)*s0 + int32(sc1)*s1
			mins += int32(m0)*int32(xb.sum32[2*a]) + int32(m1)*int32(xb.sum32[2*a+1])
		}
		acc += withMin(sum, f16(p[:]), mins, f16(p[2:]), xb.scale)
	}
	return acc
}

func dotQ2K(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[84]byte)(w[84*b:])
		q, s16 := &xb.q, &xb.sum16
		var sum, mins int32
		for g := range 16 {
			qs := (*[16]byte)(p[16+g/8*32+g%2*16:])
			xs, shift := (*[16]int8)(q[16*g:]), g/2%4*2
			s := int32(0)
			for i, v := range qs {
				s += int32(v>>shift&3) * int32(xs[i])
			}
			sum += int32(p[g]&15) * s
			mins += int32(p[g]>>4) * int32(s16[g])
		}
		acc += withMin(sum, f16(p[80:]), mins, f16(p[82:]), xb.scale)
	}
	return acc
}

func dotQ3K(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[110]byte)(w[110*b:])
		q, s16 := &xb.q, &xb.sum16
		var sum int32
		for g := range 16 {
			hm := (*[16]byte)(p[g%2*16:])
			qs := (*[16]byte)(p[32+g/8*32+g%2*16:])
			xs, shift, bit := (*[16]int8)(q[16*g:]), g/2%4*2, g/2
			s := int32(0)
			for i, v := range qs {
				s += int32(v>>shift&3|hm[i]>>bit&1<<2) * int32(xs[i])
			}
			sum += int32(quant.ScaleQ3K(p[96:108], g)) * (s - 4*int32(s16[g]))
		}
		acc += scaled(sum, f16(p[108:]), xb.scale)
	}
	return acc
}

func dotQ6K(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[210]byte)(w[210*b:])
		q, s16 := &xb.q, &xb.sum16
		var sum int32
		for g := range 16 {
			a, c := g/8, g/2%4
			lo := (*[16]byte)(p[64*a+c%2*32+g%2*16:])
			hi := (*[16]byte)(p[128+32*a+g%2*16:])
			xs, ls, hs := (*[16]int8)(q[16*g:]), c/2*4, 2*c
			s := int32(0)
			for i, v := range lo {
				s += int32(v>>ls&15|hi[i]>>hs&3<<4) * int32(xs[i])
			}
			sum += int32(int8(p[192+g])) * (s - 32*int32(s16[g]))
		}
		acc += scaled(sum, f16(p[208:]), xb.scale)
	}
	return acc
}

func dotIQ4XS(w []byte, x *actVec) float32 {
	var acc float32
	for b := range x.k {
		xb := &x.k[b]
		p := (*[136]byte)(w[136*b:])
		q := &xb.q
		high := binary.LittleEndian.Uint16(p[2:])
		var sum int32
		for g := range 8 {
			ls := int32(p[4+g/2]>>(g%2*4)&15) | int32(high>>(2*g)&3)<<4
			sum += (ls - 32) * dotTable(&quant.NL4, (*[16]byte)(p[8+16*g:]), (*[32]int8)(q[32*g:]))
		}
		acc += scaled(sum, f16(p[:]), xb.scale)
	}
	return acc
}
