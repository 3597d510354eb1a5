package quant

// affine holds the scales of a superblock whose groups are stored as
// scale*code - minimum.
type affine struct {
	scale, min [16]byte    // integer scale and minimum of each group
	dl, ml     [16]float32 // the same in floats, as a reader will see them
}

// fitAffine chooses scales for groups of size values with codes 0..top and
// integer scales 0..limit, storing the two f16 factors in d and dmin.
func fitAffine(x []float32, size, top, limit int, d, dmin []byte) (a affine) {
	var s, m [16]float32
	n := len(x) / size
	for g := range n {
		lo, hi := bounds(x[g*size : (g+1)*size])
		s[g], m[g] = (hi-lo)/float32(top), -lo
	}
	fd := putF16(d, largest(s[:n])/float32(limit))
	fm := putF16(dmin, largest(m[:n])/float32(limit))
	for g := range n {
		a.scale[g] = byte(code(s[g], fd, 0, limit))
		a.min[g] = byte(code(m[g], fm, 0, limit))
		a.dl[g], a.ml[g] = fd*float32(a.scale[g]), fm*float32(a.min[g])
	}
	return a
}

// putScaleMinK4 packs eight 6-bit scales and minima as ScaleMinK4 reads them.
func putScaleMinK4(dst []byte, a *affine) {
	for j := range 4 {
		dst[j] = a.scale[j] | a.scale[j+4]>>4<<6
		dst[j+4] = a.min[j] | a.min[j+4]>>4<<6
		dst[j+8] = a.scale[j+4]&15 | a.min[j+4]<<4
	}
}

func quantQ2K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[84:], src[256:] {
		clear(dst[:84])
		a := fitAffine(src[:256], 16, 3, 15, dst[80:], dst[82:])
		for i, x := range src[:256] {
			g := i / 16
			dst[g] = a.scale[g] | a.min[g]<<4
			dst[16+i/128*32+i%32] |= byte(code(x+a.ml[g], a.dl[g], 0, 3)) << (2 * (i / 32 % 4))
		}
	}
}

func quantQ4K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[144:], src[256:] {
		clear(dst[:144])
		a := fitAffine(src[:256], 32, 15, 63, dst, dst[2:])
		putScaleMinK4(dst[4:16], &a)
		for i, x := range src[:256] {
			g := i / 32
			dst[16+i/64*32+i%32] |= byte(code(x+a.ml[g], a.dl[g], 0, 15)) << (g % 2 * 4)
		}
	}
}

func quantQ5K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[176:], src[256:] {
		clear(dst[:176])
		a := fitAffine(src[:256], 32, 31, 63, dst, dst[2:])
		putScaleMinK4(dst[4:16], &a)
		for i, x := range src[:256] {
			g := i / 32
			q := byte(code(x+a.ml[g], a.dl[g], 0, 31))
			dst[16+i%32] |= q >> 4 << g
			dst[48+i/64*32+i%32] |= q & 15 << (g % 2 * 4)
		}
	}
}

// fitSigned chooses integer scales in -limit..limit-1 for groups of size
// values whose extreme goes to the code low, storing the f16 factor in d. It
// returns the integer scales, and in floats as a reader will see them.
func fitSigned(x []float32, size, low, limit int, d []byte) (scale [16]int, dl [16]float32) {
	var s [16]float32
	n := len(x) / size
	for g := range n {
		s[g] = largest(x[g*size:(g+1)*size]) / float32(low)
	}
	fd := putF16(d, largest(s[:n])/float32(-limit))
	for g := range n {
		scale[g] = code(s[g], fd, -limit, limit-1)
		dl[g] = fd * float32(scale[g])
	}
	return scale, dl
}

func quantQ3K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[110:], src[256:] {
		clear(dst[:110])
		scale, dl := fitSigned(src[:256], 16, -4, 32, dst[108:])
		for j := range 16 {
			s := byte(scale[j] + 32)
			dst[96+j%8] |= s & 15 << (4 * (j / 8))
			dst[104+j%4] |= s >> 4 << (2 * (j / 4))
		}
		for i, x := range src[:256] {
			q := byte(code(x, dl[i/16], -4, 3) + 4)
			dst[i%32] |= q >> 2 << (i / 32)
			dst[32+i/128*32+i%32] |= q & 3 << (2 * (i / 32 % 4))
		}
	}
}

func quantQ6K(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[210:], src[256:] {
		clear(dst[:210])
		scale, dl := fitSigned(src[:256], 16, -32, 128, dst[208:])
		for j, s := range scale {
			dst[192+j] = byte(s)
		}
		for i, x := range src[:256] {
			q := byte(code(x, dl[i/16], -32, 31) + 32)
			a, b, l := i/128, i/32%4, i%32
			dst[64*a+b%2*32+l] |= q & 15 << (b / 2 * 4)
			dst[128+32*a+l] |= q >> 4 << (2 * b)
		}
	}
}

func quantIQ4XS(dst []byte, src []float32) {
	for ; len(src) > 0; dst, src = dst[136:], src[256:] {
		clear(dst[:136])
		scale, dl := fitSigned(src[:256], 32, -127, 32, dst)
		var high uint16
		for g := range 8 {
			s := uint16(scale[g] + 32)
			dst[4+g/2] |= byte(s&15) << (g % 2 * 4)
			high |= s >> 4 << (2 * g)
			putNL4(dst[8+16*g:24+16*g], src[32*g:], dl[g])
		}
		putU16(dst[2:], high)
	}
}
