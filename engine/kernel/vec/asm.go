//go:build (amd64 || arm64) && !noasm

package vec

import (
	"math"

	"bmoe/engine/kernel/isa"
)

// The kernels take a positive multiple of vecStep elements (sumSquaresVec of
// Partials) and mirror the generic forms operation by operation.
const vecStep = 8

// expTable holds the constants of Exp32 for the kernels, each over a whole vector.
//
//lint:ignore U1000 the assembly reads it
var expTable = func() (t [14][8]float32) {
	for i, c := range [14]float32{expHigh, expLow, log2e, RoundMagic, ln2High, ln2Low, expC6, expC5, expC4, expC3, expC2, 1,
		math.Float32frombits(127), math.Float32frombits(1 << 31)} {
		for j := range t[i] {
			t[i][j] = c
		}
	}
	return t
}()

//go:noescape
func siluMulVec(dst, gate, up *float32, n int)

//go:noescape
func sigmoidMulVec(dst, gate, up *float32, n int)

// mulRowsVec and renewVec take MatrixCols columns and at least one row; step is the
// size of a row's decay, or 0 for one that serves all.
//
//go:noescape
func mulRowsVec(dst, m, w *float32, rows int)

//go:noescape
func renewVec(dst, m, decay, k, q, d *float32, rows, step int)

//go:noescape
func sumSquaresVec(sum *float64, x *float32, n int)

//go:noescape
func scaleMulVec(dst, x, w *float32, scale float32, n int)

//go:noescape
func ropeNeoxVec(lo, hi, cos, sin *float32, n int)

//go:noescape
func addScaledVec(dst, x *float32, w float32, n int)

//go:noescape
func toHalfVec(dst *uint16, src *float32, n int)

//go:noescape
func roundHalfVec(dst, src *float32, n int)

//go:noescape
func addProductsVec(dst, a, b *float32, n int)

//go:noescape
func products16Vec(dst, a, b *float32, n int)

//go:noescape
func rescaleVec(x *float32, f float32, n int)

//go:noescape
func blendVec(dst, x *float32, a, b float32, n int)

// vecLen is how many of n elements the kernels do. The generic form does the rest.
func (on ops) vecLen(n, step int) int {
	if on == ops(isa.Generic) {
		return 0
	}
	return n - n%step
}

func (on ops) siluMul(dst, gate, up []float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		siluMulVec(&dst[0], &gate[:n][0], &up[:n][0], n)
	}
	return n
}

func (on ops) sigmoidMul(dst, gate, up []float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		sigmoidMulVec(&dst[0], &gate[:n][0], &up[:n][0], n)
	}
	return n
}

func (on ops) mulRows(dst, m, w []float32) bool {
	if on == ops(isa.Generic) || len(dst) != MatrixCols || len(w) == 0 {
		return false
	}
	mulRowsVec(&dst[0], &m[:len(w)*MatrixCols][0], &w[0], len(w))
	return true
}

func (on ops) renew(dst, m, decay, k, q, d []float32) bool {
	if on == ops(isa.Generic) || len(dst) != MatrixCols || len(k) == 0 {
		return false
	}
	step := 0
	if len(decay) > 1 {
		step, decay = 4, decay[:len(k)]
	}
	renewVec(&dst[0], &m[:len(k)*MatrixCols][0], &decay[0], &k[0], &q[0], &d[0], len(k), step)
	return true
}

func (on ops) sumSquares16(sum *[Partials]float64, x []float32) int {
	n := on.vecLen(len(x), Partials)
	if n > 0 {
		sumSquaresVec(&sum[0], &x[0], n)
	}
	return n
}

func (on ops) scaleMul(dst, x, w []float32, scale float32) int {
	n := on.vecLen(len(x), vecStep)
	if n > 0 {
		scaleMulVec(&dst[:n][0], &x[0], &w[:n][0], scale, n)
	}
	return n
}

func (on ops) ropeNeox(lo, hi, cos, sin []float32) int {
	n := on.vecLen(len(cos), vecStep)
	if n > 0 {
		ropeNeoxVec(&lo[:n][0], &hi[:n][0], &cos[0], &sin[:n][0], n)
	}
	return n
}

func (on ops) addScaled(dst, x []float32, w float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		addScaledVec(&dst[0], &x[:n][0], w, n)
	}
	return n
}

func (on ops) toHalfPart(dst []uint16, src []float32) int {
	n := on.vecLen(len(src), vecStep)
	if n > 0 {
		toHalfVec(&dst[:n][0], &src[0], n)
	}
	return n
}

func (on ops) roundHalfPart(dst, src []float32) int {
	n := on.vecLen(len(src), vecStep)
	if n > 0 {
		roundHalfVec(&dst[:n][0], &src[0], n)
	}
	return n
}

func (on ops) addProductsPart(dst, a, b []float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		addProductsVec(&dst[0], &a[:n][0], &b[:n][0], n)
	}
	return n
}

func (on ops) products16Part(dst, a, b []float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		products16Vec(&dst[0], &a[:n][0], &b[:n][0], n)
	}
	return n
}

func (on ops) rescalePart(x []float32, f float32) int {
	n := on.vecLen(len(x), vecStep)
	if n > 0 {
		rescaleVec(&x[0], f, n)
	}
	return n
}

func (on ops) blendPart(dst, x []float32, a, b float32) int {
	n := on.vecLen(len(dst), vecStep)
	if n > 0 {
		blendVec(&dst[0], &x[:n][0], a, b, n)
	}
	return n
}

//go:noescape
func softmaxBlockVec(s *float32, scale, m float32, half bool) (top, sum float32)

func (on ops) softmaxBlock(s *[SoftmaxLen]float32, scale, m float32, half bool) (top, sum float32) {
	if on == ops(isa.Generic) {
		return softmaxBlockGeneric(s, scale, m, half)
	}
	return softmaxBlockVec(&s[0], scale, m, half)
}
