package vec

import "math"

// RMSNorm sets dst = x / sqrt(mean(x^2) + eps) * w. dst may be x. A nil w stands
// for ones. The squares are summed in float64, as llama.cpp does, in which they
// are exact.
func RMSNorm(dst, x, w []float32, eps float32) { best.RMSNorm(dst, x, w, eps) }

func (on ops) RMSNorm(dst, x, w []float32, eps float32) {
	scale := on.rmsScale(x, eps)
	dst = dst[:len(x)]
	if w == nil {
		for i, v := range x {
			dst[i] = v * scale
		}
		return
	}
	w = w[:len(x)]
	for i := on.scaleMul(dst, x, w, scale); i < len(x); i++ {
		dst[i] = float32(x[i]*scale) * w[i]
	}
}

// LayerNorm sets x = (x - mean) / sqrt(variance + eps) * w + b.
func LayerNorm(x, w, b []float32, eps float32) {
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	mean := float32(sum / float64(len(x)))
	for i := range x {
		x[i] -= mean
	}
	scale := best.rmsScale(x, eps)
	w, b = w[:len(x)], b[:len(x)]
	for i, v := range x {
		x[i] = float32(float32(v*scale)*w[i]) + b[i]
	}
}

// RMSNormHeads applies RMSNorm in place to each head of x, [heads x len(w)].
func RMSNormHeads(x, w []float32, eps float32) {
	for d := len(w); len(x) >= d && d > 0; x = x[d:] {
		RMSNorm(x[:d], x[:d], w, eps)
	}
}

// rmsScale returns 1 / sqrt(mean(x^2) + eps).
func (on ops) rmsScale(x []float32, eps float32) float32 {
	mean := float32(on.sumSquares(x) / float64(len(x)))
	return 1 / float32(math.Sqrt(float64(mean+eps)))
}

// sumSquares returns the sum of squares of x.
func (on ops) sumSquares(x []float32) float64 {
	var sum [Partials]float64
	x = x[on.sumSquares16(&sum, x):]
	for ; len(x) >= Partials; x = x[Partials:] {
		for j, v := range x[:Partials] {
			sum[j] += float64(v) * float64(v) // exact, so fusing changes nothing
		}
	}
	for j, v := range x {
		sum[j] += float64(v) * float64(v)
	}
	return fold64(&sum)
}
