package quant

// ScaleMinK4 unpacks the 6-bit scale and minimum of group j (0..7) from the 12
// bytes that Q4_K and Q5_K pack them into.
func ScaleMinK4(s []byte, j int) (scale, min uint8) {
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

// ScaleQ3K unpacks the scale of group j (0..15) from the 12 bytes of Q3_K; it
// lies in -32..31.
func ScaleQ3K(s []byte, j int) int8 {
	lo := s[j%8] >> (4 * (j / 8)) & 15
	hi := s[8+j%4] >> (2 * (j / 4)) & 3
	return int8(lo|hi<<4) - 32
}

func dequantQ2K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[84:] {
		d, dmin := f16(src[80:]), f16(src[82:])
		for g := range 16 {
			dl, ml := d*float32(src[g]&15), dmin*float32(src[g]>>4)
			a, b, l0 := g/8, g/2%4, g%2*16
			for l := range 16 {
				q := src[16+32*a+l0+l] >> (2 * b) & 3
				dst[16*g+l] = float32(dl*float32(q)) - ml
			}
		}
	}
}

func dequantQ3K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[110:] {
		d := f16(src[108:])
		hmask, qs, scales := src[:32], src[32:96], src[96:108]
		for g := range 16 {
			dl := d * float32(ScaleQ3K(scales, g))
			a, b, l0 := g/8, g/2%4, g%2*16
			for l := l0; l < l0+16; l++ {
				q := int(qs[32*a+l] >> (2 * b) & 3)
				if hmask[l]>>(4*a+b)&1 == 0 {
					q -= 4
				}
				dst[16*g+l-l0] = dl * float32(q)
			}
		}
	}
}

func dequantQ4K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[144:] {
		d, dmin := f16(src), f16(src[2:])
		for g := range 8 {
			sc, m := ScaleMinK4(src[4:16], g)
			dl, ml := d*float32(sc), dmin*float32(m)
			for l, q := range src[16+g/2*32 : 48+g/2*32] {
				dst[32*g+l] = float32(dl*float32(q>>(g%2*4)&15)) - ml
			}
		}
	}
}

func dequantQ5K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[176:] {
		d, dmin := f16(src), f16(src[2:])
		qh := src[16:48]
		for g := range 8 {
			sc, m := ScaleMinK4(src[4:16], g)
			dl, ml := d*float32(sc), dmin*float32(m)
			for l, q := range src[48+g/2*32 : 80+g/2*32] {
				v := q>>(g%2*4)&15 | qh[l]>>g&1<<4
				dst[32*g+l] = float32(dl*float32(v)) - ml
			}
		}
	}
}

func dequantQ6K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[210:] {
		d := f16(src[208:])
		for g := range 16 {
			dl := d * float32(int8(src[192+g]))
			a, b, l0 := g/8, g/2%4, g%2*16
			for l := l0; l < l0+16; l++ {
				lo := src[64*a+b%2*32+l] >> (b / 2 * 4) & 15
				hi := src[128+32*a+l] >> (2 * b) & 3
				dst[16*g+l-l0] = dl * float32(int(lo|hi<<4)-32)
			}
		}
	}
}

func dequantIQ4XS(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[136:] {
		d, high := f16(src), u16(src[2:])
		for g := range 8 {
			ls := int(src[4+g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			dl := d * float32(ls-32)
			for l, q := range src[8+16*g : 24+16*g] {
				dst[32*g+l] = dl * float32(NL4[q&15])
				dst[32*g+16+l] = dl * float32(NL4[q>>4])
			}
		}
	}
}
