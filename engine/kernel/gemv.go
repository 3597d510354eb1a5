package kernel

import (
	"unsafe"

	"bmoe/engine/kernel/vec"
)

// gemvKernel multiplies groups of gemvRows rows of the given number of blocks with
// one vector, of block8 or blockK.
type gemvKernel func(dst *float32, w *byte, rowBytes, blocks, groups int, x *byte)

// floatKernel multiplies groups of floatRows rows of 16*steps floats with one
// vector.
type floatKernel func(dst *float32, w *byte, rowBytes, steps, groups int, x *float32)

// floatRows is the number of rows in a group of the float kernels.
const floatRows = 4

// asmBytes bounds the weights that one assembly call goes through: it cannot be
// interrupted, and at the slowest rate that a core reads memory (some 3 GB/s)
// this takes 100 us.
const asmBytes = 256 << 10

// codes returns where a quantised vector starts.
func (x *actVec) codes() *byte {
	if x.k != nil {
		return (*byte)(unsafe.Pointer(&x.k[0]))
	}
	return (*byte)(unsafe.Pointer(&x.q8[0]))
}

// simd computes the call with the kernels of the activations' instruction set. It reports
// false, and does nothing, if there is none for the call.
func (c *call) simd() bool {
	t, set := c.w.Type, c.a.set
	if c.w.Cols == 0 {
		return false
	}
	if c.a.bufs[c.form].f != nil {
		k := floatKernels[set][t]
		if k == nil || c.w.Rows < floatRows || c.w.Cols%vec.Partials != 0 {
			return false
		}
		c.inGroups(floatRows, func(dst *float32, w *byte, rb, groups int, x *actVec) {
			k(dst, w, rb, len(x.f)/vec.Partials, groups, &x.f[0])
		})
		return true
	}
	unpack := products[t].unpack
	gk := &gemmKernels[set][t]
	if unpack {
		fillBooks()
		gk = &unpackedGemm[set]
	}
	if gk.mul != nil && c.n >= gemmFrom && c.w.Rows >= gk.rows {
		c.gemm(gk, unpack)
		return true
	}
	k := gemvKernels[set][t]
	if k == nil || c.w.Rows < gemvRows {
		return false
	}
	blocks := c.w.Cols / t.BlockLen()
	c.inGroups(gemvRows, func(dst *float32, w *byte, rb, groups int, x *actVec) {
		k(dst, w, rb, blocks, groups, x.codes())
	})
	return true
}

// inGroups goes through rows and tokens, with groups of n rows for kernel. The
// matrix has at least n rows.
func (c *call) inGroups(n int, kernel func(dst *float32, w *byte, rowBytes, groups int, x *actVec)) {
	s := getScratch()
	defer putScratch(s)
	rb := c.w.RowBytes()
	groups := max(1, asmBytes/(n*rb))
	if c.n > 1 {
		groups = 1 // the rows should stay in the nearest cache for the next token
	}
	for r := c.r0; r < c.r1; r += groups * n {
		g := min(groups, (c.r1-r)/n)
		rest := min(r+groups*n, c.r1) - r - g*n
		for j := range c.n {
			s.x = c.a.vec(c.form, c.token(j))
			out := c.dst[j*c.stride+r-c.row0:]
			if g > 0 {
				kernel(&out[0], &c.w.Data[r*rb], rb, g, &s.x)
			}
			if rest > 0 {
				// The last rows go through a whole group, which starts early
				// enough.
				first := min(r+g*n, c.w.Rows-n)
				kernel(&s.tail[0], &c.w.Data[first*rb], rb, 1, &s.x)
				copy(out[g*n:g*n+rest], s.tail[r+g*n-first:])
			}
		}
	}
}
