//go:build (amd64 || arm64) && !noasm

package attn

import "bmoe/engine/kernel/isa"

// The kernels take four rows or one, whole panels, and at least one term.

//go:noescape
func tileF16x4(dst, a *float32, b *uint16, n, depth, ldd, lda, ldb int)

//go:noescape
func tileF16x1(dst, a *float32, b *uint16, n, depth, ldb int)

//go:noescape
func tileI8x4(dst, a *float32, b *int8, n, depth, ldd, lda, ldb int)

//go:noescape
func tileI8x1(dst, a *float32, b *int8, n, depth, ldb int)

//go:noescape
func tileF32x4(dst, a, b *float32, n, depth, ldd, lda, ldb int)

//go:noescape
func tileF32x1(dst, a, b *float32, n, depth, ldb int)

// check panics if the kernels would reach beyond dst, a or the b elements of b.
func (t tile) check(dst, a []float32, b int) {
	_ = dst[(t.m-1)*t.ldd+t.n-1]
	_ = a[(t.m-1)*t.lda+t.depth-1]
	if t.n%panel != 0 || t.depth < 1 || (t.n/panel-1)*t.ldb+t.depth*panel > b {
		panic("attn: tile beyond its matrix")
	}
}

func (t tile) f32(dst, a, b []float32) {
	if t.set == isa.Generic {
		t.f32Generic(dst, a, b)
		return
	}
	t.check(dst, a, len(b))
	r := 0
	for ; r+4 <= t.m; r += 4 {
		tileF32x4(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldd, t.lda, t.ldb)
	}
	for ; r < t.m; r++ {
		tileF32x1(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldb)
	}
}

func (t tile) f16(dst, a []float32, b []uint16) {
	if t.set == isa.Generic {
		t.f16Generic(dst, a, b)
		return
	}
	t.check(dst, a, len(b))
	r := 0
	for ; r+4 <= t.m; r += 4 {
		tileF16x4(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldd, t.lda, t.ldb)
	}
	for ; r < t.m; r++ {
		tileF16x1(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldb)
	}
}

func (t tile) i8(dst, a []float32, b []int8) {
	if t.set == isa.Generic {
		t.i8Generic(dst, a, b)
		return
	}
	t.check(dst, a, len(b))
	r := 0
	for ; r+4 <= t.m; r += 4 {
		tileI8x4(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldd, t.lda, t.ldb)
	}
	for ; r < t.m; r++ {
		tileI8x1(&dst[r*t.ldd], &a[r*t.lda], &b[0], t.n, t.depth, t.ldb)
	}
}
