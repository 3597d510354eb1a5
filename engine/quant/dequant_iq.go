package quant

// The types of this file store groups of 8 (or 4) entries as an index into a
// code book, with signs beside it.

// signed applies a sign byte (bit k set: entry k is negative) to eight grid
// values and scales them.
func signed(dst []float32, grid *[8]int8, signs uint8, dl float32) {
	for k, v := range grid {
		x := dl * float32(v)
		if signs>>k&1 != 0 {
			x = -x
		}
		dst[k] = x
	}
}

// evenSigns completes seven stored sign bits: the eighth makes their number
// even.
func evenSigns(seven uint8) uint8 {
	p := seven ^ seven>>4
	p ^= p >> 2
	p ^= p >> 1
	return seven&127 | p<<7
}

func dequantIQ2XXS(dst []float32, src []byte) {
	grid := grids().iq2xxs
	for ; len(dst) > 0; dst, src = dst[256:], src[66:] {
		d := f16(src)
		for g := range 8 {
			idx, s := src[2+8*g:6+8*g], u32(src[6+8*g:])
			dl := d * (0.5 + float32(s>>28)) * 0.25
			for i := range 4 {
				signed(dst[32*g+8*i:], &grid[idx[i]], evenSigns(uint8(s>>(7*i)&127)), dl)
			}
		}
	}
}

func dequantIQ2XS(dst []float32, src []byte) {
	grid := grids().iq2xs
	for ; len(dst) > 0; dst, src = dst[256:], src[74:] {
		d := f16(src)
		for i := range 32 {
			q := u16(src[2+2*i:])
			sc := src[66+i/4] >> (i / 2 % 2 * 4) & 15
			dl := d * (0.5 + float32(sc)) * 0.25
			signed(dst[8*i:], &grid[q&511], evenSigns(uint8(q>>9)), dl)
		}
	}
}

func dequantIQ2S(dst []float32, src []byte) {
	grid := grids().iq2s
	for ; len(dst) > 0; dst, src = dst[256:], src[82:] {
		d := f16(src)
		for i := range 32 {
			idx := int(src[2+i]) | int(src[66+i/4]>>(i%4*2)&3)<<8
			sc := src[74+i/4] >> (i / 2 % 2 * 4) & 15
			dl := d * (0.5 + float32(sc)) * 0.25
			signed(dst[8*i:], &grid[idx], src[34+i], dl)
		}
	}
}

// pair puts two grid entries of four values side by side.
func pair(a, b *[4]int8) (p [8]int8) {
	copy(p[:4], a[:])
	copy(p[4:], b[:])
	return p
}

func dequantIQ3XXS(dst []float32, src []byte) {
	grid := grids().iq3xxs
	for ; len(dst) > 0; dst, src = dst[256:], src[98:] {
		d := f16(src)
		for g := range 8 {
			idx, s := src[2+8*g:10+8*g], u32(src[66+4*g:])
			dl := d * (0.5 + float32(s>>28)) * 0.5
			for i := range 4 {
				v := pair(&grid[idx[2*i]], &grid[idx[2*i+1]])
				signed(dst[32*g+8*i:], &v, evenSigns(uint8(s>>(7*i)&127)), dl)
			}
		}
	}
}

func dequantIQ3S(dst []float32, src []byte) {
	grid := grids().iq3s
	for ; len(dst) > 0; dst, src = dst[256:], src[110:] {
		d := f16(src)
		qs, qh, signs, scales := src[2:66], src[66:74], src[74:106], src[106:110]
		at := func(i int) *[4]int8 { return &grid[int(qs[i])|int(qh[i/8]>>(i%8)&1)<<8] }
		for i := range 32 {
			dl := d * float32(1+2*(scales[i/8]>>(i/4%2*4)&15))
			v := pair(at(2*i), at(2*i+1))
			signed(dst[8*i:], &v, signs[i], dl)
		}
	}
}

func dequantIQ1S(dst []float32, src []byte) {
	grid := grids().iq1s
	for ; len(dst) > 0; dst, src = dst[256:], src[50:] {
		d := f16(src)
		for g := range 8 {
			h := u16(src[34+2*g:])
			dl := d * float32(2*(h>>12&7)+1)
			delta := float32(0.125)
			if h>>15 != 0 {
				delta = -delta
			}
			for i := range 4 {
				idx := int(src[2+4*g+i]) | int(h>>(3*i)&7)<<8
				for k, v := range grid[idx] {
					dst[32*g+8*i+k] = dl * (float32(v) + delta)
				}
			}
		}
	}
}

// IQ1MScale gathers the f16 scale of an IQ1_M block from the top nibbles of
// the four 16-bit words that hold its 3-bit scales.
func IQ1MScale(scales []byte) float32 {
	return F16ToF32(u16(scales)>>12 | u16(scales[2:])>>12<<4 | u16(scales[4:])>>12<<8 | u16(scales[6:])>>12<<12)
}

func dequantIQ1M(dst []float32, src []byte) {
	grid := grids().iq1s
	for ; len(dst) > 0; dst, src = dst[256:], src[56:] {
		scales := src[48:56]
		d := IQ1MScale(scales)
		for i := range 32 {
			h := src[32+i/2] >> (i % 2 * 4) & 15
			s := u16(scales[i/8*2:]) >> (i / 2 % 4 * 3) & 7
			dl := d * float32(2*s+1)
			delta := float32(0.125)
			if h>>3 != 0 {
				delta = -delta
			}
			for k, v := range grid[int(src[i])|int(h&7)<<8] {
				dst[8*i+k] = dl * (float32(v) + delta)
			}
		}
	}
}
