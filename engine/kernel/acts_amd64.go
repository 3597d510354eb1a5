//go:build !noasm

package kernel

// prepareQ8SIMD does prepareQ8Generic's work and reports true, if it can.
func prepareQ8SIMD(v *vec, x []float32) bool {
	if active < isaAVX2 || len(v.scale) == 0 {
		return false
	}
	var s *float32
	if v.s != nil {
		s = &v.s[0]
	}
	prepareQ8AVX2(&x[0], len(v.scale), &v.q[0], &v.scale[0], &v.sum[0], s)
	return true
}

// prepareQ8KSIMD does prepareQ8KGeneric's work and reports true, if it can.
func prepareQ8KSIMD(v *vec, x []float32) bool {
	if active < isaAVX2 || len(v.scale) == 0 {
		return false
	}
	prepareQ8KAVX2(&x[0], len(v.scale), &v.q[0], &v.scale[0], &v.sum16[0])
	return true
}

// roundF16SIMD rounds a prefix of x to half precision and returns its length.
func roundF16SIMD(dst, x []float32) int {
	steps := len(x) / 8
	if active < isaAVX2 || steps == 0 {
		return 0
	}
	roundF16AVX2(&dst[0], &x[0], steps)
	return 8 * steps
}
