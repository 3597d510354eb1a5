package quant

import "math"

// F16ToF32 widens an IEEE half-precision number. The result is exact.
func F16ToF32(h uint16) float32 {
	b := uint32(h&0x8000)<<16 | uint32(h&0x7fff)<<13
	switch h & 0x7c00 {
	default: // the exponents' biases differ
		return math.Float32frombits(b + 112<<23)
	case 0: // zero or subnormal: frac * 2^-24, which float32 holds exactly
		return math.Float32frombits(b&0x80000000 | math.Float32bits(float32(h&0x3ff)*(1.0/(1<<24))))
	case 0x7c00: // as the processors do: a signalling NaN becomes a quiet one
		if h&0x3ff != 0 {
			b |= 0x400000
		}
		return math.Float32frombits(b | 0x7f800000)
	}
}

// F32ToF16 rounds to half precision, to nearest with ties to even; what is too
// large becomes infinite.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // 65520 and up round to infinity
		return sign | 0x7c00
	case b < 0x38800000: // subnormal in half precision
		// Adding 0.5 puts the unit of the last place at 2^-24, the spacing of
		// subnormal halves: the addition rounds as wanted.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// BF16ToF32 widens a bfloat16 number. The result is exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to bfloat16, to nearest with ties to even.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// E8M0Half returns 2^(e-128): the power of two that the MXFP4 scale byte e
// stands for, halved because the value table holds doubled values.
func E8M0Half(e uint8) float32 {
	if e < 2 { // 2^-128 and 2^-127 are subnormal
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// UE4M3 returns the value of an unsigned float with 4 exponent and 3 mantissa
// bits, as NVFP4 scales are; the codes 0 and 0x7f stand for 0.
func UE4M3(c uint8) float32 {
	if c == 0 || c == 0x7f {
		return 0
	}
	exp, man := int(c>>3)&15, float32(c&7)
	if exp == 0 {
		return man * (1.0 / 512) // man/8 * 2^-6
	}
	return (1 + man*0.125) * math.Float32frombits(uint32(exp-7+127)<<23)
}
