//go:build !noasm

package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"

	"bmoe/engine/quant"
)

// A tile of the arm64 kernels is eight rows: slots of 32 bytes hold four bytes
// of every row. Step k of a block is the slot of entries 4k to 4k+3, as signed
// codes. This is plain Go on 32-bit words; a tile meets many vectors.

const tileWidth = 8

// rowTile is a block of a tile, to be filled row by row.
type rowTile []uint32

func (t rowTile) put(slot, row int, v uint32) { t[slot*tileWidth+row] = v }

func (t rowTile) putFloat(slot, row int, f float32) { t.put(slot, row, math.Float32bits(f)) }

// putHalf stores an int16 in the area that starts at a slot, which holds one for
// each row and group.
func (t rowTile) putHalf(slot, group, row int, v int16) {
	i := slot*tileWidth + group*tileWidth/2 + row/2
	if row%2 == 0 {
		t[i] = t[i]&0xffff0000 | uint32(uint16(v))
	} else {
		t[i] = t[i]&0xffff | uint32(uint16(v))<<16
	}
}

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// minus subtracts n from each byte of v, which must be below 128.
func minus(v uint32, n uint32) uint32 {
	const top = 0x80808080
	return (v | top) - n*0x01010101 ^ top
}

// packTile writes rows of consecutive blocks as tiles of slots slots each; put
// writes one row's block into its place.
func packTile(dst, w *byte, rowBytes, blocks, blockBytes, slots int, put func(t rowTile, row int, b []byte)) {
	data := unsafe.Slice(w, tileWidth*rowBytes)
	all := rowTile(unsafe.Slice((*uint32)(unsafe.Pointer(dst)), blocks*slots*tileWidth))
	for row := range tileWidth {
		r := data[row*rowBytes:][:blocks*blockBytes]
		for b := range blocks {
			put(all[b*slots*tileWidth:(b+1)*slots*tileWidth], row, r[b*blockBytes:(b+1)*blockBytes])
		}
	}
}

// putNibbles puts the codes of 16 bytes, less n, into eight slots.
func (t rowTile) putNibbles(slot, row int, qs []byte, n uint32) {
	for k := range 4 {
		v := u32(qs[4*k:])
		t.put(slot+k, row, minus(v&0x0f0f0f0f, n))
		t.put(slot+4+k, row, minus(v>>4&0x0f0f0f0f, n))
	}
}

// putTable puts the values of 16 bytes of codes into eight slots.
func (t rowTile) putTable(slot, row int, qs []byte, values *[16]int8) {
	for k := range 4 {
		var lo, hi uint32
		for i, q := range qs[4*k : 4*k+4] {
			lo |= uint32(uint8(values[q&15])) << (8 * i)
			hi |= uint32(uint8(values[q>>4])) << (8 * i)
		}
		t.put(slot+k, row, lo)
		t.put(slot+4+k, row, hi)
	}
}

// putFives puts codes with fifth bits, less n, into eight slots.
func (t rowTile) putFives(slot, row int, high uint32, qs []byte, n uint32) {
	for k := range 4 {
		v := u32(qs[4*k:])
		lo := v&0x0f0f0f0f | uint32(spreadBits[high>>(4*k)&15])<<4
		hi := v>>4&0x0f0f0f0f | uint32(spreadBits[high>>(16+4*k)&15])<<4
		t.put(slot+k, row, minus(lo, n))
		t.put(slot+4+k, row, minus(hi, n))
	}
}

func tileQ8_0(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 34, q32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		for k := range 8 {
			t.put(1+k, row, u32(b[2+4*k:]))
		}
	})
}

func tileQ4_0(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 18, q32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		t.putNibbles(1, row, b[2:], 8)
	})
}

func tileQ5_0(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 22, q32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		t.putFives(1, row, u32(b[2:]), b[6:], 16)
	})
}

func tileIQ4NL(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 18, q32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		t.putTable(1, row, b[2:], &quant.NL4)
	})
}

func tileMXFP4(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 17, q32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, quant.E8M0Half(b[0]))
		t.putTable(1, row, b[1:], &quant.E2M1)
	})
}

func tileQ4_1(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 20, q32MinSlots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		t.putFloat(1, row, f16(b[2:]))
		t.putNibbles(2, row, b[4:], 0)
	})
}

func tileQ5_1(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 24, q32MinSlots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		t.putFloat(1, row, f16(b[2:]))
		t.putFives(2, row, u32(b[4:]), b[8:], 0)
	})
}

// Slots of a superblock: d, the factor of the minima, the minima; then for each
// group the scales and the steps.
const (
	k32MinFirst, k32MinSlots = 2 + 4, 2 + 4 + 8*9
	k16MinFirst, k16MinSlots = 2 + 8, 2 + 8 + 16*5
	k32First, k32Slots       = 1, 1 + 8*9
	k16First, k16Slots       = 1, 1 + 16*5
)

// putMins32 puts what Q4_K and Q5_K have before their codes.
func (t rowTile) putMins32(row int, b []byte) {
	t.putFloat(0, row, f16(b))
	t.putFloat(1, row, f16(b[2:]))
	for j := range 8 {
		sc, m := quant.ScaleMinK4(b[4:16], j)
		t.putHalf(2, j, row, int16(m))
		t.put(k32MinFirst+9*j, row, uint32(sc))
	}
}

func tileQ4K(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 144, k32MinSlots, func(t rowTile, row int, b []byte) {
		t.putMins32(row, b)
		for a := range 4 {
			for k := range 8 {
				v := u32(b[16+32*a+4*k:])
				t.put(k32MinFirst+18*a+1+k, row, v&0x0f0f0f0f)
				t.put(k32MinFirst+18*a+10+k, row, v>>4&0x0f0f0f0f)
			}
		}
	})
}

func tileQ5K(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 176, k32MinSlots, func(t rowTile, row int, b []byte) {
		t.putMins32(row, b)
		for a := range 4 {
			for k := range 8 {
				v, h := u32(b[48+32*a+4*k:]), u32(b[16+4*k:])>>(2*a)
				t.put(k32MinFirst+18*a+1+k, row, v&0x0f0f0f0f|h&0x01010101<<4)
				t.put(k32MinFirst+18*a+10+k, row, v>>4&0x0f0f0f0f|h>>1&0x01010101<<4)
			}
		}
	})
}

func tileQ2K(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 84, k16MinSlots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b[80:]))
		t.putFloat(1, row, f16(b[82:]))
		for g := range 16 {
			t.putHalf(2, g, row, int16(b[g]>>4))
			slot := k16MinFirst + 5*g
			t.put(slot, row, uint32(b[g]&15))
			for k := range 4 {
				v := u32(b[16+g/8*32+g%2*16+4*k:]) >> (g / 2 % 4 * 2)
				t.put(slot+1+k, row, v&0x03030303)
			}
		}
	})
}

func tileQ3K(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 110, k16Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b[108:]))
		for g := range 16 {
			slot := k16First + 5*g
			t.put(slot, row, uint32(quant.ScaleQ3K(b[96:108], g)))
			for k := range 4 {
				v := u32(b[32+g/8*32+g%2*16+4*k:]) >> (g / 2 % 4 * 2) & 0x03030303
				h := u32(b[g%2*16+4*k:]) >> (g / 2) << 2 & 0x04040404
				t.put(slot+1+k, row, minus(v|h, 4))
			}
		}
	})
}

func tileQ6K(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 210, k16Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b[208:]))
		for g := range 16 {
			slot, a, c := k16First+5*g, g/8, g/2%4
			t.put(slot, row, uint32(int8(b[192+g])))
			for k := range 4 {
				lo := u32(b[64*a+c%2*32+g%2*16+4*k:]) >> (c / 2 * 4) & 0x0f0f0f0f
				hi := u32(b[128+32*a+g%2*16+4*k:]) >> (2 * c) & 0x03030303
				t.put(slot+1+k, row, minus(lo|hi<<4, 32))
			}
		}
	})
}

func tileIQ4XS(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, 136, k32Slots, func(t rowTile, row int, b []byte) {
		t.putFloat(0, row, f16(b))
		high := binary.LittleEndian.Uint16(b[2:])
		for j := range 8 {
			ls := int32(b[4+j/2]>>(j%2*4)&15) | int32(high>>(2*j)&3)<<4
			t.put(k32First+9*j, row, uint32(ls-32))
			t.putTable(k32First+9*j+1, row, b[8+16*j:24+16*j], &quant.NL4)
		}
	})
}

// tileUnpacked packs rows of quant.Unpacked.
func tileUnpacked(dst, w *byte, rowBytes, blocks, _ int) {
	packTile(dst, w, rowBytes, blocks, unpackedBytes, k16Slots, func(t rowTile, row int, b []byte) {
		t.put(0, row, u32(b[288:]))
		for g := range 16 {
			slot := k16First + 5*g
			t.put(slot, row, uint32(int16(binary.LittleEndian.Uint16(b[256+2*g:]))))
			for k := range 4 {
				t.put(slot+1+k, row, u32(b[16*g+4*k:]))
			}
		}
	})
}
