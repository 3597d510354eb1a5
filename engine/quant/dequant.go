package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize writes the values of src, whole blocks of type t, to dst. The
// results are llama.cpp's to the bit. It is an error if the type has no values
// (integers, unknown types) or if the lengths do not belong together.
func Dequantize(t Type, dst []float32, src []byte) error {
	f := t.layout().values
	if f == nil {
		return fmt.Errorf("dequantize: no values can be had from %v", t)
	}
	want, err := t.RowBytes(int64(len(dst)))
	if err != nil {
		return fmt.Errorf("dequantize: %w", err)
	}
	if int64(len(src)) != want {
		return fmt.Errorf("dequantize: %d %v values take %d bytes, got %d", len(dst), t, want, len(src))
	}
	f(dst, src)
	return nil
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func f16(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

func dequantF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func dequantF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(u32(src[4*i:]))
	}
}

func dequantF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = F16ToF32(u16(src[2*i:]))
	}
}

func dequantBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(u16(src[2*i:]))
	}
}

func dequantQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[34:] {
		d := f16(src)
		for i, q := range src[2:34] {
			dst[i] = d * float32(int8(q))
		}
	}
}

func dequantQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d := f16(src)
		for i, q := range src[2:18] {
			dst[i] = float32(int(q&15)-8) * d
			dst[i+16] = float32(int(q>>4)-8) * d
		}
	}
}

func dequantQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[20:] {
		d, m := f16(src), f16(src[2:])
		for i, q := range src[4:20] {
			dst[i] = float32(float32(q&15)*d) + m
			dst[i+16] = float32(float32(q>>4)*d) + m
		}
	}
}

func dequantQ5_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[22:] {
		d, h := f16(src), u32(src[2:])
		for i, q := range src[6:22] {
			lo := int(q&15) | int(h>>i&1)<<4
			hi := int(q>>4) | int(h>>(i+16)&1)<<4
			dst[i] = float32(lo-16) * d
			dst[i+16] = float32(hi-16) * d
		}
	}
}

func dequantQ5_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[24:] {
		d, m, h := f16(src), f16(src[2:]), u32(src[4:])
		for i, q := range src[8:24] {
			lo := int(q&15) | int(h>>i&1)<<4
			hi := int(q>>4) | int(h>>(i+16)&1)<<4
			dst[i] = float32(float32(lo)*d) + m
			dst[i+16] = float32(float32(hi)*d) + m
		}
	}
}

// NL4 is the table of IQ4_NL and IQ4_XS: sixteen values spaced for weights
// that are distributed normally (ggml's kvalues_iq4nl).
var NL4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// E2M1 holds the sixteen values of a 4-bit float with 2 exponent bits and 1
// mantissa bit, doubled so that they are integers (ggml's kvalues_mxfp4).
var E2M1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func dequantIQ4NL(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d := f16(src)
		for i, q := range src[2:18] {
			dst[i] = d * float32(NL4[q&15])
			dst[i+16] = d * float32(NL4[q>>4])
		}
	}
}

func dequantMXFP4(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[17:] {
		d := E8M0Half(src[0])
		for i, q := range src[1:17] {
			dst[i] = float32(E2M1[q&15]) * d
			dst[i+16] = float32(E2M1[q>>4]) * d
		}
	}
}

func dequantNVFP4(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[64:], src[36:] {
		for s := range 4 {
			d := UE4M3(src[s]) * 0.5
			for i, q := range src[4+8*s : 12+8*s] {
				dst[16*s+i] = float32(E2M1[q&15]) * d
				dst[16*s+8+i] = float32(E2M1[q>>4]) * d
			}
		}
	}
}

// TQ1_0 packs five base-3 digits into a byte, as the fraction q/256 so that
// multiplying by 3 and taking the carry yields the next digit.
func dequantTQ1(dst []float32, src []byte) {
	pow3 := [5]uint8{1, 3, 9, 27, 81}
	for ; len(dst) > 0; dst, src = dst[256:], src[54:] {
		d := f16(src[52:])
		out := dst[:0:256]
		for _, part := range []struct {
			q      []byte
			planes int
		}{{src[:32], 5}, {src[32:48], 5}, {src[48:52], 4}} {
			for n := range part.planes {
				for _, q := range part.q {
					digit := uint16(q*pow3[n]) * 3 >> 8
					out = append(out, float32(int(digit)-1)*d)
				}
			}
		}
	}
}

func dequantTQ2(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[66:] {
		d := f16(src[64:])
		for i := range 256 {
			q := src[i/128*32+i%32] >> (2 * (i / 32 % 4)) & 3
			dst[i] = float32(int(q)-1) * d
		}
	}
}
