package attn

import (
	"sync"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

// panel is the width of the panels that keys and values are stored in. A panel
// is a matrix of 16 columns, row after row; a kernel runs down it and keeps the
// sums of its columns in registers.
const panel = 16

// A tile adds to dst[r][j] the sum over k of a[r][k] * b[k][j], term after term
// from k = 0 on, for m rows, n columns (a multiple of 16) and depth terms, none of
// them 0. lda and
// ldd are the distances between rows of a and dst, ldb the distance between b's
// panels. Where b is half precision or int8 the caller sees to it that every
// product is exact in float32, so that fusing it with the sum changes nothing;
// with float32 each product is rounded first.
type tile struct {
	set                        isa.Set // of the kernels
	m, n, depth, ldd, lda, ldb int
}

func (t tile) f32Generic(dst, a, b []float32) {
	for r := range t.m {
		row, ar := dst[r*t.ldd:][:t.n], a[r*t.lda:][:t.depth]
		for j := 0; j+4 <= len(row); j += 4 {
			columns((*[4]float32)(row[j:]), ar, b[j/panel*t.ldb+j%panel:])
		}
	}
}

// columns does one row and four columns of a panel, two terms a step: more would
// not fit into the registers of amd64.
func columns(sum *[4]float32, a, b []float32) {
	c0, c1, c2, c3 := sum[0], sum[1], sum[2], sum[3]
	k := 0
	for ; k+2 <= len(a); k += 2 {
		bk := (*[panel + 4]float32)(b[k*panel:])
		x, y := a[k], a[k+1]
		c0 += float32(x * bk[0])
		c1 += float32(x * bk[1])
		c2 += float32(x * bk[2])
		c3 += float32(x * bk[3])
		c0 += float32(y * bk[panel])
		c1 += float32(y * bk[panel+1])
		c2 += float32(y * bk[panel+2])
		c3 += float32(y * bk[panel+3])
	}
	if k < len(a) {
		bk := (*[4]float32)(b[k*panel:])
		c0 += float32(a[k] * bk[0])
		c1 += float32(a[k] * bk[1])
		c2 += float32(a[k] * bk[2])
		c3 += float32(a[k] * bk[3])
	}
	sum[0], sum[1], sum[2], sum[3] = c0, c1, c2, c3
}

// wideDepth is how many rows of a panel the generic tiles widen at once.
const wideDepth = 64

func (t tile) f16Generic(dst, a []float32, b []uint16) {
	var wide [wideDepth * panel]float32
	values := halfValues()
	for j := 0; j < t.n; j += panel {
		for k := 0; k < t.depth; k += wideDepth {
			part := tile{t.set, t.m, panel, min(wideDepth, t.depth-k), t.ldd, t.lda, 0}
			for i, h := range b[j/panel*t.ldb+k*panel:][:part.depth*panel] {
				wide[i] = values[h]
			}
			part.f32Generic(dst[j:], a[k:], wide[:])
		}
	}
}

// halfValues returns the value of every half-precision number. Looking one up
// takes a third of the time of working it out.
var halfValues = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for h := range t {
		t[h] = quant.F16ToF32(uint16(h))
	}
	return t
})

func (t tile) i8Generic(dst, a []float32, b []int8) {
	var wide [wideDepth * panel]float32
	for j := 0; j < t.n; j += panel {
		for k := 0; k < t.depth; k += wideDepth {
			part := tile{t.set, t.m, panel, min(wideDepth, t.depth-k), t.ldd, t.lda, 0}
			for i, v := range b[j/panel*t.ldb+k*panel:][:part.depth*panel] {
				wide[i] = float32(v)
			}
			part.f32Generic(dst[j:], a[k:], wide[:])
		}
	}
}
