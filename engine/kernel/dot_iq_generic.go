package kernel

import (
	"unsafe"

	"bmoe/engine/quant"
)

// The code-book and ternary types are taken apart into small integers first
// (quant.Unpacked), superblock by superblock; from there on they are one type.

// dotUnpacked returns the definition of a product for such a type.
func dotUnpacked(t quant.Type) func(w []byte, x *actVec) float32 {
	return func(w []byte, x *actVec) float32 {
		var acc float32
		var u quant.Unpacked
		for b := range x.k {
			xb := &x.k[b]
			quant.Unpack(t, &u, w[t.BlockBytes()*b:])
			var sum int32
			for g, sc := range u.Scales {
				s := int32(0)
				for i := 16 * g; i < 16*g+16; i++ {
					s += int32(int8(u.Codes[i])) * int32(xb.q[i])
				}
				sum += int32(sc) * s
			}
			acc += scaled(sum, u.D, xb.scale)
		}
		return acc
	}
}

// wordsUnpacked gives the same result for a row that has been taken apart.
func wordsUnpacked(row []quant.Unpacked, x *actVec, p []int64) float32 {
	var acc float32
	for b := range row {
		u, xb := &row[b], &x.k[b]
		const flip = 0x8080808080808080 // plus 128
		var sum int32
		for g, sc := range u.Scales {
			y := (*[8]int64)(p[128*b+8*g:])
			s := eightBytes(u64(u.Codes[16*g:])^flip, (*[4]int64)(y[0:])) + eightBytes(u64(u.Codes[16*g+8:])^flip, (*[4]int64)(y[4:]))
			sum += int32(sc) * (pairSum(s) - 128*int32(xb.sum16[g]))
		}
		acc += scaled(sum, u.D, xb.scale)
	}
	return acc
}

// unpackedBytes is the size of a superblock that has been taken apart.
const unpackedBytes = int(unsafe.Sizeof(quant.Unpacked{}))

// unpackKernel does what quant.Unpack does for blocks of one type.
type unpackKernel func(dst, w *byte, blocks int)

// unpackRow takes row r apart.
func (c *call) unpackRow(dst []quant.Unpacked, r int) {
	t := c.w.Type
	bytes, rb := t.BlockBytes(), c.w.RowBytes()
	row := c.w.Data[r*rb : (r+1)*rb]
	if k := unpackKernels[c.a.set][t]; k != nil && len(dst) > 0 {
		k((*byte)(unsafe.Pointer(&dst[0])), &row[0], len(dst))
		return
	}
	for b := range dst {
		quant.Unpack(t, &dst[b], row[b*bytes:])
	}
}

// unpacked computes the call for a type that is taken apart first, in plain Go.
func (c *call) unpacked() {
	s := getScratch()
	defer putScratch(s)
	row := s.rows(c.w.Cols / 256)
	for j := range c.n {
		s.x = c.a.vec(c.form, c.token(j))
		s.words = packPairs.packVec(s.words[:0], &s.x)
		for r := c.r0; r < c.r1; r++ {
			c.unpackRow(row, r)
			c.dst[j*c.stride+r-c.row0] = wordsUnpacked(row, &s.x, s.words)
		}
	}
}

func (s *scratch) rows(n int) []quant.Unpacked {
	if len(s.units) < n {
		s.units = make([]quant.Unpacked, n)
	}
	return s.units[:n]
}
