package quant

import (
	"encoding/binary"
	"sync"
)

// Unpacked is a superblock of 256 weights taken apart into small integers:
// weight i is D * Scales[i/16] * Codes[i].
type Unpacked struct {
	Codes  [256]uint8 // int8, as their bits
	Scales [16]int16
	D      float32
}

// unpackFuncs take one superblock apart.
var unpackFuncs = [64]func(u *Unpacked, b []byte){
	IQ2_XXS: unpackIQ2XXS, IQ2_XS: unpackIQ2XS, IQ2_S: unpackIQ2S,
	IQ3_XXS: unpackIQ3XXS, IQ3_S: unpackIQ3S, IQ1_S: unpackIQ1S, IQ1_M: unpackIQ1M,
	TQ1_0: unpackTQ1, TQ2_0: unpackTQ2,
}

// Unpack takes a superblock of type t apart. It panics if t is not one of the
// code-book and ternary types that have superblocks of 256, or the block is short.
func Unpack(t Type, u *Unpacked, block []byte) { unpackFuncs[t](u, block) }

// wordSet holds the code books with an entry's values as the bytes of a word,
// the first in the lowest byte.
type wordSet struct {
	iq2xxs [256]uint64
	iq2xs  [512]uint64
	iq2s   [1024]uint64
	iq3xxs [256]uint32
	iq3s   [512]uint32
	iq1    [2][2048]uint64 // 8*value + 1, 8*value - 1
	minus  [256]uint64     // byte k is 255 where bit k is set
	even   [128]uint64     // the same of seven bits and the eighth that evenSigns adds
	five   [256][5]uint8   // the digits of a TQ1_0 byte, less 1
}

var wordsOnce = sync.OnceValue(func() *wordSet {
	g, w := grids(), new(wordSet)
	word := func(v []int8, mul, add int8) (x uint64) {
		for k, e := range v {
			x |= uint64(uint8(e*mul+add)) << (8 * k)
		}
		return x
	}
	for i := range w.iq2xxs {
		w.iq2xxs[i] = word(g.iq2xxs[i][:], 1, 0)
		w.iq3xxs[i] = uint32(word(g.iq3xxs[i][:], 1, 0))
		for k := range 8 {
			if i>>k&1 != 0 {
				w.minus[i] |= 0xff << (8 * k)
			}
		}
		w.even[i&127] = w.minus[evenSigns(uint8(i&127))]
		for n, p := range [5]uint8{1, 3, 9, 27, 81} {
			w.five[i][n] = uint8(uint16(uint8(i)*p)*3>>8) - 1
		}
	}
	for i := range w.iq2xs {
		w.iq2xs[i] = word(g.iq2xs[i][:], 1, 0)
		w.iq3s[i] = uint32(word(g.iq3s[i][:], 1, 0))
	}
	for i := range w.iq2s {
		w.iq2s[i] = word(g.iq2s[i][:], 1, 0)
	}
	for i := range w.iq1[0] {
		w.iq1[0][i] = word(g.iq1s[i][:], 8, 1)
		w.iq1[1][i] = word(g.iq1s[i][:], 8, -1)
	}
	return w
})

// put8 stores eight codes, negated where minus has 255. No value is 0, so adding
// 1 to an inverted byte never carries.
func put8(dst []uint8, v, minus uint64) {
	binary.LittleEndian.PutUint64(dst, v^minus+minus&0x0101010101010101)
}

func unpackIQ2XXS(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b) * 0.125
	for g := range 8 {
		idx, s := b[2+8*g:6+8*g], u32(b[6+8*g:])
		u.Scales[2*g] = int16(2*(s>>28) + 1)
		u.Scales[2*g+1] = u.Scales[2*g]
		for i := range 4 {
			put8(u.Codes[32*g+8*i:], w.iq2xxs[idx[i]], w.even[s>>(7*i)&127])
		}
	}
}

func unpackIQ2XS(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b) * 0.125
	for i := range 32 {
		q := u16(b[2+2*i:])
		put8(u.Codes[8*i:], w.iq2xs[q&511], w.even[q>>9])
	}
	for g := range 16 {
		u.Scales[g] = int16(b[66+g/2]>>(g%2*4)&15)*2 + 1
	}
}

func unpackIQ2S(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b) * 0.125
	for i := range 32 {
		idx := int(b[2+i]) | int(b[66+i/4]>>(i%4*2)&3)<<8
		put8(u.Codes[8*i:], w.iq2s[idx], w.minus[b[34+i]])
	}
	for g := range 16 {
		u.Scales[g] = int16(b[74+g/2]>>(g%2*4)&15)*2 + 1
	}
}

func unpackIQ3XXS(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b) * 0.25
	for g := range 8 {
		idx, s := b[2+8*g:10+8*g], u32(b[66+4*g:])
		u.Scales[2*g] = int16(2*(s>>28) + 1)
		u.Scales[2*g+1] = u.Scales[2*g]
		for i := range 4 {
			v := uint64(w.iq3xxs[idx[2*i]]) | uint64(w.iq3xxs[idx[2*i+1]])<<32
			put8(u.Codes[32*g+8*i:], v, w.even[s>>(7*i)&127])
		}
	}
}

func unpackIQ3S(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b)
	qs, qh, signs, scales := b[2:66], b[66:74], b[74:106], b[106:110]
	for i := range 32 {
		h := uint(qh[i/4]) >> (i % 4 * 2)
		v := uint64(w.iq3s[uint(qs[2*i])|h&1<<8]) | uint64(w.iq3s[uint(qs[2*i+1])|h>>1&1<<8])<<32
		put8(u.Codes[8*i:], v, w.minus[signs[i]])
	}
	for g := range 16 {
		u.Scales[g] = int16(scales[g/4]>>(g/2%2*4)&15)*2 + 1
	}
}

func unpackIQ1S(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b) * 0.125
	for g := range 8 {
		h := u16(b[34+2*g:])
		u.Scales[2*g] = int16(h>>12&7)*2 + 1
		u.Scales[2*g+1] = u.Scales[2*g]
		book := &w.iq1[h>>15]
		for i := range 4 {
			binary.LittleEndian.PutUint64(u.Codes[32*g+8*i:], book[uint(b[2+4*g+i])|uint(h>>(3*i)&7)<<8])
		}
	}
}

func unpackIQ1M(u *Unpacked, b []byte) {
	w := wordsOnce()
	scales := b[48:56]
	u.D = IQ1MScale(scales) * 0.125
	for i := range 32 {
		h := uint(b[32+i/2]) >> (i % 2 * 4) & 15
		binary.LittleEndian.PutUint64(u.Codes[8*i:], w.iq1[h>>3][uint(b[i])|h&7<<8])
	}
	for g := range 16 {
		u.Scales[g] = int16(u16(scales[g/4*2:])>>(g%4*3)&7)*2 + 1
	}
}

func unpackTQ1(u *Unpacked, b []byte) {
	w := wordsOnce()
	u.D = f16(b[52:])
	for g := range u.Scales {
		u.Scales[g] = 1
	}
	o := 0
	for _, part := range [3]struct{ from, to, planes int }{{0, 32, 5}, {32, 48, 5}, {48, 52, 4}} {
		for n := range part.planes {
			for _, q := range b[part.from:part.to] {
				u.Codes[o] = w.five[q][n]
				o++
			}
		}
	}
}

func unpackTQ2(u *Unpacked, b []byte) {
	u.D = f16(b[64:])
	for g := range u.Scales {
		u.Scales[g] = 1
	}
	for i := 0; i < 256; i += 8 {
		v := binary.LittleEndian.Uint64(b[i/128*32+i%32:]) >> (2 * (i / 32 % 4)) & 0x0303030303030303
		// 0, 1, 2 less 1, byte by byte: with the top bits set nothing borrows.
		binary.LittleEndian.PutUint64(u.Codes[i:], (v|0x8080808080808080-0x0101010101010101)^0x8080808080808080)
	}
}
