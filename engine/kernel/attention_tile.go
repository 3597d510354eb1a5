package kernel

import "bmoe/engine/quant"

// A tile adds to dst[r][j] the sum over k of a[r][k] * b[k][j], term after term
// from k = 0 on, for m rows, n columns (a multiple of 16) and depth terms. lda,
// ldb and ldd are the distances between rows. Where b is half precision or int8 the caller
// sees to it that every product is exact in float32, so that fusing it with the
// sum changes nothing; with float32 each product is rounded first.
type tile struct{ m, n, depth, ldd, lda, ldb int }

// tileColumns and tileDepth bound what the generic tiles widen at once.
const (
	tileColumns = 16
	tileDepth   = 64
)

func (t tile) f32(dst, a, b []float32) {
	for r := range t.m {
		row, ar := dst[r*t.ldd:][:t.n], a[r*t.lda:][:t.depth]
		for j := 0; j+4 <= len(row); j += 4 {
			to := row[j:][:4]
			c0, c1, c2, c3 := to[0], to[1], to[2], to[3]
			for k, x := range ar {
				bk := b[k*t.ldb+j:][:4]
				c0 += float32(x * bk[0])
				c1 += float32(x * bk[1])
				c2 += float32(x * bk[2])
				c3 += float32(x * bk[3])
			}
			to[0], to[1], to[2], to[3] = c0, c1, c2, c3
		}
	}
}

func (t tile) f16(dst, a []float32, b []uint16) {
	var wide [tileDepth * tileColumns]float32
	for j := 0; j < t.n; j += tileColumns {
		for k0 := 0; k0 < t.depth; k0 += tileDepth {
			part := tile{t.m, tileColumns, min(tileDepth, t.depth-k0), t.ldd, t.lda, tileColumns}
			for k := range part.depth {
				to := wide[k*tileColumns:][:tileColumns]
				for i, h := range b[(k0+k)*t.ldb+j:][:tileColumns] {
					to[i] = quant.F16ToF32(h)
				}
			}
			part.f32(dst[j:], a[k0:], wide[:])
		}
	}
}

func (t tile) i8(dst, a []float32, b []int8) {
	var wide [tileDepth * tileColumns]float32
	for j := 0; j < t.n; j += tileColumns {
		for k0 := 0; k0 < t.depth; k0 += tileDepth {
			part := tile{t.m, tileColumns, min(tileDepth, t.depth-k0), t.ldd, t.lda, tileColumns}
			for k := range part.depth {
				to := wide[k*tileColumns:][:tileColumns]
				for i, v := range b[(k0+k)*t.ldb+j:][:tileColumns] {
					to[i] = float32(v)
				}
			}
			part.f32(dst[j:], a[k0:], wide[:])
		}
	}
}
