package kernel

import "bmoe/engine/quant"

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
type tile struct{ m, n, depth, ldd, lda, ldb int }

func (t tile) f32Generic(dst, a, b []float32) {
	for r := range t.m {
		row, ar := dst[r*t.ldd:][:t.n], a[r*t.lda:][:t.depth]
		for j := 0; j+4 <= len(row); j += 4 {
			to, bj := row[j:][:4], b[j/panel*t.ldb+j%panel:]
			c0, c1, c2, c3 := to[0], to[1], to[2], to[3]
			for k, x := range ar {
				bk := bj[k*panel:][:4]
				c0 += float32(x * bk[0])
				c1 += float32(x * bk[1])
				c2 += float32(x * bk[2])
				c3 += float32(x * bk[3])
			}
			to[0], to[1], to[2], to[3] = c0, c1, c2, c3
		}
	}
}

// wideDepth is how many rows of a panel the generic tiles widen at once.
const wideDepth = 64

func (t tile) f16Generic(dst, a []float32, b []uint16) {
	var wide [wideDepth * panel]float32
	for j := 0; j < t.n; j += panel {
		for k := 0; k < t.depth; k += wideDepth {
			part := tile{t.m, panel, min(wideDepth, t.depth-k), t.ldd, t.lda, 0}
			for i, h := range b[j/panel*t.ldb+k*panel:][:part.depth*panel] {
				wide[i] = quant.F16ToF32(h)
			}
			part.f32Generic(dst[j:], a[k:], wide[:])
		}
	}
}

func (t tile) i8Generic(dst, a []float32, b []int8) {
	var wide [wideDepth * panel]float32
	for j := 0; j < t.n; j += panel {
		for k := 0; k < t.depth; k += wideDepth {
			part := tile{t.m, panel, min(wideDepth, t.depth-k), t.ldd, t.lda, 0}
			for i, v := range b[j/panel*t.ldb+k*panel:][:part.depth*panel] {
				wide[i] = float32(v)
			}
			part.f32Generic(dst[j:], a[k:], wide[:])
		}
	}
}
