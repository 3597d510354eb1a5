package kernel

import (
	"encoding/binary"

	"bmoe/engine/quant"
)

func wordsQ4K(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[144]byte)(w[144*b:])
		var sum, mins int32
		for a := range 4 {
			qs, y := (*[32]byte)(q[16+32*a:]), (*[16]int64)(p[64*b+16*a:])
			v0, v1, v2, v3 := u64(qs[0:]), u64(qs[8:]), u64(qs[16:]), u64(qs[24:])
			s0 := quadSum(int64(v0&fourNibs)*y[0]+int64(v0>>8&fourNibs)*y[1]+int64(v1&fourNibs)*y[2]+int64(v1>>8&fourNibs)*y[3]) +
				quadSum(int64(v2&fourNibs)*y[4]+int64(v2>>8&fourNibs)*y[5]+int64(v3&fourNibs)*y[6]+int64(v3>>8&fourNibs)*y[7])
			s1 := quadSum(int64(v0>>4&fourNibs)*y[8]+int64(v0>>12&fourNibs)*y[9]+int64(v1>>4&fourNibs)*y[10]+int64(v1>>12&fourNibs)*y[11]) +
				quadSum(int64(v2>>4&fourNibs)*y[12]+int64(v2>>12&fourNibs)*y[13]+int64(v3>>4&fourNibs)*y[14]+int64(v3>>12&fourNibs)*y[15])
			sc0, m0 := quant.ScaleMinK4(q[4:16], 2*a)
			sc1, m1 := quant.ScaleMinK4(q[4:16], 2*a+1)
			sum += int32(sc0)*s0 + int32(sc1)*s1
			mins += int32(m0)*int32(xb.sum32[2*a]) + int32(m1)*int32(xb.sum32[2*a+1])
		}
		acc += withMin(sum, f16(q[:]), mins, f16(q[2:]), xb.scale)
	}
	return acc
}

func wordsQ5K(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[176]byte)(w[176*b:])
		const ones = 0x0101010101010101
		var sum, mins int32
		for a := range 4 {
			var s0, s1 int32
			for k := range 4 {
				v, h := u64(q[48+32*a+8*k:]), u64(q[16+8*k:])>>(2*a)
				y := (*[10]int64)(p[64*b+16*a+2*k:])
				s0 += quadSum(eight(v&nibs|h&ones<<4, (*[2]int64)(y[0:])))
				s1 += quadSum(eight(v>>4&nibs|h>>1&ones<<4, (*[2]int64)(y[8:])))
			}
			sc0, m0 := quant.ScaleMinK4(q[4:16], 2*a)
			sc1, m1 := quant.ScaleMinK4(q[4:16], 2*a+1)
			sum += int32(sc0)*s0 + int32(sc1)*s1
			mins += int32(m0)*int32(xb.sum32[2*a]) + int32(m1)*int32(xb.sum32[2*a+1])
		}
		acc += withMin(sum, f16(q[:]), mins, f16(q[2:]), xb.scale)
	}
	return acc
}

const (
	threes    = 0x0303030303030303
	fourTwos  = 0x0003000300030003
	fourEachB = 0x0404040404040404
)

func wordsQ2K(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[84]byte)(w[84*b:])
		var sum, mins int32
		for g := range 16 {
			qs, y := (*[16]byte)(q[16+g/8*32+g%2*16:]), (*[4]int64)(p[64*b+4*g:])
			v0, v1 := u64(qs[:])>>(g/2%4*2), u64(qs[8:])>>(g/2%4*2)
			s := quadSum(int64(v0&fourTwos)*y[0] + int64(v0>>8&fourTwos)*y[1] + int64(v1&fourTwos)*y[2] + int64(v1>>8&fourTwos)*y[3])
			sum += int32(q[g]&15) * s
			mins += int32(q[g]>>4) * int32(xb.sum16[g])
		}
		acc += withMin(sum, f16(q[80:]), mins, f16(q[82:]), xb.scale)
	}
	return acc
}

func wordsQ3K(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[110]byte)(w[110*b:])
		var sum int32
		for g := range 16 {
			hm, qs := (*[16]byte)(q[g%2*16:]), (*[16]byte)(q[32+g/8*32+g%2*16:])
			y := (*[4]int64)(p[64*b+4*g:])
			v0 := u64(qs[:])>>(g/2%4*2)&threes | u64(hm[:])>>(g/2)<<2&fourEachB
			v1 := u64(qs[8:])>>(g/2%4*2)&threes | u64(hm[8:])>>(g/2)<<2&fourEachB
			s := quadSum(eight(v0, (*[2]int64)(y[0:])) + eight(v1, (*[2]int64)(y[2:])))
			sum += int32(quant.ScaleQ3K(q[96:108], g)) * (s - 4*int32(xb.sum16[g]))
		}
		acc += scaled(sum, f16(q[108:]), xb.scale)
	}
	return acc
}

func wordsQ6K(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[210]byte)(w[210*b:])
		var sum int32
		for g := range 16 {
			a, c := g/8, g/2%4
			lo := (*[16]byte)(q[64*a+c%2*32+g%2*16:])
			hi := (*[16]byte)(q[128+32*a+g%2*16:])
			y := (*[4]int64)(p[64*b+4*g:])
			v0 := u64(lo[:])>>(c/2*4)&nibs | u64(hi[:])>>(2*c)&threes<<4
			v1 := u64(lo[8:])>>(c/2*4)&nibs | u64(hi[8:])>>(2*c)&threes<<4
			// Less 32, a weight is at most 32 in magnitude, and two products fit.
			s := quadSum((int64(v0&fourBytes)-0x0020002000200020)*y[0]+(int64(v0>>8&fourBytes)-0x0020002000200020)*y[1]) +
				quadSum((int64(v1&fourBytes)-0x0020002000200020)*y[2]+(int64(v1>>8&fourBytes)-0x0020002000200020)*y[3])
			sum += int32(int8(q[192+g])) * s
		}
		acc += scaled(sum, f16(q[208:]), xb.scale)
	}
	return acc
}

func wordsIQ4XS(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.k {
		xb, q := &x.k[b], (*[136]byte)(w[136*b:])
		high := binary.LittleEndian.Uint16(q[2:])
		var sum int32
		for g := range 8 {
			ls := int32(q[4+g/2]>>(g%2*4)&15) | int32(high>>(2*g)&3)<<4
			sum += (ls - 32) * wordsTable(nl4Pairs, (*[16]byte)(q[8+16*g:]), (*[16]int64)(p[128*b+16*g:]))
		}
		acc += scaled(sum, f16(q[:]), xb.scale)
	}
	return acc
}
