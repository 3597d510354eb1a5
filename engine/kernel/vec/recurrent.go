package vec

import "math"

// MatrixCols is how many columns of a recurrent layer's matrix the kernels take at
// once: so many sums stay in registers, and 128 rows of them in the nearest cache.
const MatrixCols = 32

// MulRows sets dst to the sum of the rows of m [len(w) x len(dst)], each times its
// weight, in their order.
func MulRows(dst, m, w []float32) { best.MulRows(dst, m, w) }

func (on ops) MulRows(dst, m, w []float32) {
	if on.mulRows(dst, m, w) {
		return
	}
	clear(dst)
	for i, x := range w {
		on.AddScaled(dst, m[i*len(dst):][:len(dst)], x)
	}
}

// Renew is a step of a recurrent layer with a matrix for its state. Every row i of
// m [len(k) x len(dst)] becomes decay[i] * m[i] + k[i] * d, with one decay for all
// rows if there is only one, and dst the sum of the new rows, each times its q[i].
func Renew(dst, m, decay, k, q, d []float32) { best.Renew(dst, m, decay, k, q, d) }

func (on ops) Renew(dst, m, decay, k, q, d []float32) {
	q, d = q[:len(k)], d[:len(dst)]
	if on.renew(dst, m, decay, k, q, d) {
		return
	}
	clear(dst)
	for i := range k {
		row, by := m[i*len(dst):][:len(dst)], decay[0]
		if len(decay) > 1 {
			by = decay[i]
		}
		on.Blend(row, d, by, k[i])
		on.AddScaled(dst, row, q[i])
	}
}

// SigmoidMul sets dst[i] = up[i] * sigmoid(gate[i]), as a quotient. The slices have
// one length; dst may be one of the others.
func SigmoidMul(dst, gate, up []float32) { best.SigmoidMul(dst, gate, up) }

func (on ops) SigmoidMul(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := on.sigmoidMul(dst, gate, up); i < len(dst); i++ {
		dst[i] = up[i] / (1 + Exp32(-gate[i]))
	}
}

var ones = func() (x [256]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// Silu replaces x by silu(x).
func Silu(x []float32) { best.Silu(x) }

func (on ops) Silu(x []float32) {
	for len(x) > 0 {
		part := x[:min(len(x), len(ones))]
		on.SiluMul(part, part, ones[:len(part)])
		x = x[len(part):]
	}
}

// UnitLength multiplies x by scale / max(|x|, eps), |x| being its Euclidean norm.
func UnitLength(x []float32, eps, scale float32) { best.UnitLength(x, eps, scale) }

func (on ops) UnitLength(x []float32, eps, scale float32) {
	norm := max(float32(math.Sqrt(on.sumSquares(x))), eps)
	on.Rescale(x, scale/norm)
}

// UnitLengthPlus multiplies x by scale / sqrt(|x|^2 + eps).
func UnitLengthPlus(x []float32, eps, scale float32) {
	Rescale(x, scale/float32(math.Sqrt(best.sumSquares(x)+float64(eps))))
}

// Softplus32 returns log(1 + e^x), and x where that is more than 20.
func Softplus32(x float32) float32 {
	if x > 20 {
		return x
	}
	// log(1+e^x) = max(x, 0) + log(1+e) with e = e^-|x|, and the logarithm is
	// 2 artanh(s) with s = e/(2+e) of at most 1/3: s^17/17 is the first term left out.
	e := Exp32(-max(x, -x))
	s := e / (2 + e)
	z := float32(s * s)
	p := float32(1) / 15
	for _, c := range [...]float32{1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3} {
		p = float32(p*z) + c
	}
	log := float32(2*s) + float32(float32(2*s)*float32(z*p))
	return max(x, 0) + log
}
