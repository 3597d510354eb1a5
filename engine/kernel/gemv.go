package kernel

import "unsafe"

// gemvKernel multiplies groups of gemvRows rows with one vector; each row has
// the given number of blocks. sum points to what stands beside the codes: the
// sums of codes (Q8_0: int32; Q8_K: int16) or s (Q8_1: float32).
type gemvKernel func(dst *float32, w *byte, rowBytes, blocks, groups int, q *int8, scale *float32, sum *int32)

const gemvRows = 8

// asmBytes bounds the weights that one assembly call goes through: it cannot be
// interrupted, and at the slowest rate that a core reads memory (some 3 GB/s)
// this takes 100 us.
const asmBytes = 256 << 10

func (x *vec) beside() *int32 {
	switch {
	case x.s != nil:
		return (*int32)(unsafe.Pointer(&x.s[0]))
	case x.sum16 != nil:
		return (*int32)(unsafe.Pointer(&x.sum16[0]))
	}
	return &x.sum[0]
}

// gemv computes the call token by token with a kernel.
func (c *call) gemv(k gemvKernel) {
	s := getScratch()
	defer putScratch(s)
	rb := c.w.RowBytes()
	groups := max(1, asmBytes/(gemvRows*rb))
	if c.n > 1 {
		groups = 1 // the rows should stay in the nearest cache for the next token
	}
	for r := c.r0; r < c.r1; r += groups * gemvRows {
		g := min(groups, (c.r1-r)/gemvRows)
		for j := range c.n {
			x := c.a.vec(c.form, c.token(j))
			blocks := len(x.scale)
			if g > 0 {
				k(&c.dst[j*c.stride+r-c.row0], &c.w.Data[r*rb], rb, blocks, g, &x.q[0], &x.scale[0], x.beside())
			}
			if left := min(r+groups*gemvRows, c.r1) - r - g*gemvRows; left > 0 {
				// The last rows once more go through a whole group, which
				// starts early enough.
				r2 := r + g*gemvRows
				first := min(r2, c.w.Rows-gemvRows)
				k(&s.tail[0], &c.w.Data[first*rb], rb, blocks, 1, &x.q[0], &x.scale[0], x.beside())
				copy(c.dst[j*c.stride+r2-c.row0:][:left], s.tail[r2-first:])
			}
		}
	}
}
