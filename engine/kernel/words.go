package kernel

import (
	"encoding/binary"

	"bmoe/engine/quant"
)

// On processors without kernels the products of quantised weights go through
// 64-bit words. A word that holds weights a, b at bits 0 and 32, times one that
// holds activations y, x there, has a*x + b*y at bit 32; with four fields of 16
// bits the sum of four products appears at bit 48. The activations are put into
// such words once for all rows, weights need only a mask and a shift, and
// products are added before the field is cut out. The integers are the same as
// in the dot functions, which define the result; the floats follow them.

// packing is a way to put 32 codes into words.
type packing uint8

const (
	packPairs  packing = 1 + iota // entries k and k+4 of every eight: 16 words
	packHalves                    // entries i and i+16: 16 words
	packQuads                     // entries k, k+2, k+4, k+6 of every eight: 8 words
)

// pack appends the words of 32 codes to dst.
func (p packing) pack(dst []int64, q []int8) []int64 {
	switch p {
	case packPairs:
		for o := 0; o < 32; o += 8 {
			for k := o; k < o+4; k++ {
				dst = append(dst, int64(q[k])<<32+int64(q[k+4]))
			}
		}
	case packHalves:
		for i := range 16 {
			dst = append(dst, int64(q[i])<<32+int64(q[i+16]))
		}
	case packQuads:
		for o := 0; o < 32; o += 8 {
			for k := o; k < o+2; k++ {
				dst = append(dst, int64(q[k])<<48+int64(q[k+2])<<32+int64(q[k+4])<<16+int64(q[k+6]))
			}
		}
	}
	return dst
}

// packVec does it for a whole vector.
func (p packing) packVec(dst []int64, x *actVec) []int64 {
	for i := range x.q8 {
		dst = p.pack(dst, x.q8[i].q[:])
	}
	for i := range x.k {
		for o := 0; o < 256; o += 32 {
			dst = p.pack(dst, x.k[i].q[o:o+32])
		}
	}
	return dst
}

const (
	twoBytes  = 0x000000ff000000ff // bytes at bits 0 and 32
	fourBytes = 0x00ff00ff00ff00ff
	fourNibs  = 0x000f000f000f000f
	nibs      = 0x0f0f0f0f0f0f0f0f
)

// pairSum and quadSum cut out the sum; what stands below it may be negative.
func pairSum(p int64) int32 { return int32((p + 1<<31) >> 32) }
func quadSum(p int64) int32 { return int32((p + 1<<47) >> 48) }

func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// eightBytes multiplies eight bytes with packPairs words.
func eightBytes(v uint64, x *[4]int64) int64 {
	return int64(v&twoBytes)*x[0] + int64(v>>8&twoBytes)*x[1] + int64(v>>16&twoBytes)*x[2] + int64(v>>24&twoBytes)*x[3]
}

// eight multiplies eight bytes with packQuads words.
func eight(v uint64, x *[2]int64) int64 {
	return int64(v&fourBytes)*x[0] + int64(v>>8&fourBytes)*x[1]
}

func wordsQ8_0(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q, y := &x.q8[b], (*[34]byte)(w[34*b:]), (*[16]int64)(p[16*b:])
		const flip = 0x8080808080808080 // plus 128: 255 * 127 * 32 fits the field
		s := eightBytes(u64(q[2:])^flip, (*[4]int64)(y[0:])) + eightBytes(u64(q[10:])^flip, (*[4]int64)(y[4:])) +
			eightBytes(u64(q[18:])^flip, (*[4]int64)(y[8:])) + eightBytes(u64(q[26:])^flip, (*[4]int64)(y[12:]))
		acc += scaled(pairSum(s)+128*xb.nsum, f16(q[:]), xb.scale)
	}
	return acc
}

// wordsNibbles multiplies sixteen bytes as dotNibbles does. Four products of
// codes up to 15 fit a field: 4 * 4 * 15 * 127 is 30480.
func wordsNibbles(w *[16]byte, x *[8]int64) int32 {
	v0, v1 := u64(w[:]), u64(w[8:])
	a := int64(v0&fourNibs)*x[0] + int64(v0>>8&fourNibs)*x[1] + int64(v0>>4&fourNibs)*x[4] + int64(v0>>12&fourNibs)*x[5]
	b := int64(v1&fourNibs)*x[2] + int64(v1>>8&fourNibs)*x[3] + int64(v1>>4&fourNibs)*x[6] + int64(v1>>12&fourNibs)*x[7]
	return quadSum(a) + quadSum(b)
}

func wordsQ4_0(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[18*b:]
		sum := wordsNibbles((*[16]byte)(q[2:]), (*[8]int64)(p[8*b:]))
		acc += scaled(sum+8*xb.nsum, f16(q), xb.scale)
	}
	return acc
}

func wordsQ4_1(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[20*b:]
		sum := wordsNibbles((*[16]byte)(q[4:]), (*[8]int64)(p[8*b:]))
		acc += scaled(sum, f16(q), xb.scale) + float32(f16(q[2:])*xb.s)
	}
	return acc
}

// spreadBits puts bit k of a byte into bit 0 of byte k.
var spreadBits = func() (t [256]uint64) {
	for i := range t {
		for k := range 8 {
			t[i] |= uint64(i>>k&1) << (8 * k)
		}
	}
	return t
}()

// wordsFives multiplies as dotFives does. Two products of codes up to 31 fit.
func wordsFives(high uint32, w *[16]byte, x *[8]int64) (sum int32) {
	for k := range 2 {
		v := u64(w[8*k:])
		lo := v&nibs | spreadBits[high>>(8*k)&255]<<4
		hi := v>>4&nibs | spreadBits[high>>(16+8*k)&255]<<4
		sum += quadSum(eight(lo, (*[2]int64)(x[2*k:]))) + quadSum(eight(hi, (*[2]int64)(x[4+2*k:])))
	}
	return sum
}

func wordsQ5_0(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[22*b:]
		sum := wordsFives(binary.LittleEndian.Uint32(q[2:]), (*[16]byte)(q[6:]), (*[8]int64)(p[8*b:]))
		acc += scaled(sum+16*xb.nsum, f16(q), xb.scale)
	}
	return acc
}

func wordsQ5_1(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[24*b:]
		sum := wordsFives(binary.LittleEndian.Uint32(q[4:]), (*[16]byte)(q[8:]), (*[8]int64)(p[8*b:]))
		acc += scaled(sum, f16(q), xb.scale) + float32(f16(q[2:])*xb.s)
	}
	return acc
}

// pairTable makes, of sixteen values, the words of all bytes of two codes.
func pairTable(values *[16]int8) *[256]int64 {
	t := new([256]int64)
	for i := range t {
		t[i] = int64(values[i&15]) + int64(values[i>>4])<<32
	}
	return t
}

var nl4Pairs, e2m1Pairs = pairTable(&quant.NL4), pairTable(&quant.E2M1)

// wordsTable multiplies as dotTable does.
func wordsTable(t *[256]int64, w *[16]byte, x *[16]int64) int32 {
	var a, b int64
	for i := 0; i < 16; i += 2 {
		a += t[w[i]] * x[i]
		b += t[w[i+1]] * x[i+1]
	}
	return pairSum(a + b)
}

func wordsIQ4NL(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[18*b:]
		acc += scaled(wordsTable(nl4Pairs, (*[16]byte)(q[2:]), (*[16]int64)(p[16*b:])), f16(q), xb.scale)
	}
	return acc
}

func wordsMXFP4(w []byte, x *actVec, p []int64) float32 {
	var acc float32
	for b := range x.q8 {
		xb, q := &x.q8[b], w[17*b:]
		acc += scaled(wordsTable(e2m1Pairs, (*[16]byte)(q[1:]), (*[16]int64)(p[16*b:])), quant.E8M0Half(q[0]), xb.scale)
	}
	return acc
}
