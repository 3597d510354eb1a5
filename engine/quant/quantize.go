package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The quantisers below choose scales by the plain rule (the extremes of a
// block land on the ends of the code range). They serve fixtures, tests and
// generated models; a file meant for use deserves llama.cpp's slower search.
var quantFuncs = map[Type]func(dst []byte, src []float32){
	F32: quantF32, F16: quantF16, BF16: quantBF16,
	Q8_0: quantQ8_0, Q4_0: quantQ4_0, Q4_1: quantQ4_1, Q5_0: quantQ5_0, Q5_1: quantQ5_1,
	IQ4_NL: quantIQ4NL, MXFP4: quantMXFP4,
	Q2_K: quantQ2K, Q3_K: quantQ3K, Q4_K: quantQ4K, Q5_K: quantQ5K, Q6_K: quantQ6K, IQ4_XS: quantIQ4XS,
}

// Quantize writes src as whole blocks of type t to dst, which must have
// exactly the size that t.RowBytes gives. Values that the type cannot hold are
// moved to the nearest it can; they must be finite.
func Quantize(t Type, dst []byte, src []float32) error {
	f := quantFuncs[t]
	if f == nil {
		return fmt.Errorf("quantize: writing %v is not supported", t)
	}
	want, err := t.RowBytes(int64(len(src)))
	if err != nil {
		return fmt.Errorf("quantize: %w", err)
	}
	if int64(len(dst)) != want {
		return fmt.Errorf("quantize: %d %v values take %d bytes, got %d", len(src), t, want, len(dst))
	}
	f(dst, src)
	return nil
}

func putU16(b []byte, v uint16) { binary.LittleEndian.PutUint16(b, v) }

// putF16 stores f as a half and returns the value that a reader will see, so
// that codes are chosen for the stored scale.
func putF16(b []byte, f float32) float32 {
	h := F32ToF16(f)
	putU16(b, h)
	return F16ToF32(h)
}

// code returns x/step rounded to the nearest integer, held within lo..hi. A
// step of 0 gives the code nearest to 0.
func code(x, step float32, lo, hi int) int {
	q := 0
	if step != 0 {
		q = int(max(-1e6, min(1e6, math.RoundToEven(float64(x/step)))))
	}
	return max(lo, min(hi, q))
}

// largest returns the value of greatest magnitude, with its sign.
func largest(x []float32) float32 {
	var m, a float32
	for _, v := range x {
		if b := float32(math.Abs(float64(v))); b > a {
			m, a = v, b
		}
	}
	return m
}

// bounds returns the smallest and the largest of x and 0.
func bounds(x []float32) (lo, hi float32) {
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func quantF32(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func quantF16(dst []byte, src []float32) {
	for i, v := range src {
		putU16(dst[2*i:], F32ToF16(v))
	}
}

func quantBF16(dst []byte, src []float32) {
	for i, v := range src {
		putU16(dst[2*i:], F32ToBF16(v))
	}
}

func quantQ8_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[34:], src[32:] {
		d := putF16(dst, float32(math.Abs(float64(largest(src[:32]))))/127)
		for i, x := range src[:32] {
			dst[2+i] = byte(code(x, d, -127, 127))
		}
	}
}

func quantQ4_0(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[18:], src[32:] {
		d := putF16(dst, largest(src[:32])/-8) // the code range is -8..7: the extreme goes to -8
		for i := range 16 {
			dst[2+i] = byte(code(src[i], d, -8, 7)+8) | byte(code(src[i+16], d, -8, 7)+8)<<4
		}
	}
}

func quantQ4_1(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[20:], src[32:] {
		lo, hi := extremes(src[:32])
		m := putF16(dst[2:], lo)
		d := putF16(dst, (hi-m)/15)
		for i := range 16 {
			dst[4+i] = byte(code(src[i]-m, d, 0, 15)) | byte(code(src[i+16]-m, d, 0, 15))<<4
		}
	}
}

// extremes returns the smallest and the largest of x.
func extremes(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// putFives stores 32 codes of 5 bits: the fifth bits in qh, the rest in qs.
func putFives(qh, qs []byte, codes *[32]byte) {
	var h uint32
	for i := range 16 {
		qs[i] = codes[i]&15 | codes[i+16]<<4
		h |= uint32(codes[i]>>4)<<i | uint32(codes[i+16]>>4)<<(i+16)
	}
	binary.LittleEndian.PutUint32(qh, h)
}

func quantQ5_0(dst []byte, src []float32) {
	var c [32]byte
	for ; len(src) > 0; dst, src = dst[22:], src[32:] {
		d := putF16(dst, largest(src[:32])/-16)
		for i, x := range src[:32] {
			c[i] = byte(code(x, d, -16, 15) + 16)
		}
		putFives(dst[2:6], dst[6:22], &c)
	}
}

func quantQ5_1(dst []byte, src []float32) {
	var c [32]byte
	for ; len(src) > 0; dst, src = dst[24:], src[32:] {
		lo, hi := extremes(src[:32])
		m := putF16(dst[2:], lo)
		d := putF16(dst, (hi-m)/31)
		for i, x := range src[:32] {
			c[i] = byte(code(x-m, d, 0, 31))
		}
		putFives(dst[4:8], dst[8:24], &c)
	}
}

// nearest returns the index of the table value closest to v.
func nearest(table *[16]int8, v float32) byte {
	best, dist := 0, math.Inf(1)
	for i, t := range table {
		if e := math.Abs(float64(v) - float64(t)); e < dist {
			best, dist = i, e
		}
	}
	return byte(best)
}

// putNL4 stores 32 entries of x/d as indices into the IQ4_NL table.
func putNL4(qs []byte, x []float32, d float32) {
	inv := float32(0)
	if d != 0 {
		inv = 1 / d
	}
	for i := range 16 {
		qs[i] = nearest(&NL4, x[i]*inv) | nearest(&NL4, x[i+16]*inv)<<4
	}
}

func quantIQ4NL(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[18:], src[32:] {
		d := putF16(dst, largest(src[:32])/-127)
		putNL4(dst[2:18], src, d)
	}
}

func quantMXFP4(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[17:], src[32:] {
		e := uint8(0)
		if m := math.Abs(float64(largest(src[:32]))); m > 0 {
			// The largest magnitude of E2M1 is 6 = 1.5 * 2^2.
			_, x := math.Frexp(m)
			e = uint8(max(0, min(254, x-1-2+127)))
		}
		d := E8M0Half(e)
		dst[0] = e
		for i := range 16 {
			dst[1+i] = nearest(&E2M1, src[i]/d) | nearest(&E2M1, src[i+16]/d)<<4
		}
	}
}
