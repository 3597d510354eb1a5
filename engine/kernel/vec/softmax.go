package vec

import "bmoe/engine/quant"

// Softmax replaces x by e^x / sum(e^x), computed relative to the maximum.
func Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	top := x[0]
	for _, v := range x[1:] {
		if v > top {
			top = v
		}
	}
	var sum [Partials]float32
	for i := range x {
		x[i] = Exp32(x[i] - top)
		sum[i%Partials] += x[i]
	}
	Scale(x, 1/Fold(&sum))
}

// TopK puts the positions of the len(ids) largest entries of x into ids, the
// largest first, the lower position first among equals. len(ids) must not
// exceed len(x). It is meant for a router: few of a few hundred.
func TopK(ids []int32, x []float32) {
	n := 0
	for i, v := range x {
		j := n
		for j > 0 && v > x[ids[j-1]] {
			j--
		}
		if j == len(ids) {
			continue
		}
		if n < len(ids) {
			n++
		}
		copy(ids[j+1:n], ids[j:n-1])
		ids[j] = int32(i)
	}
}

// SoftmaxLen is how many scores SoftmaxBlock takes.
const SoftmaxLen = 64

// SoftmaxBlock turns a block of scores, -Inf where a key is not seen, into
// weights relative to the largest scaled score so far (m before this block),
// which it returns with the sum of the block's weights. half rounds the weights
// to half precision first.
func SoftmaxBlock(s *[SoftmaxLen]float32, scale, m float32, half bool) (top, sum float32) {
	return best.softmaxBlock(s, scale, m, half)
}

// softmaxBlockGeneric is the readable form of the kernels.
func softmaxBlockGeneric(s *[SoftmaxLen]float32, scale, m float32, half bool) (top, sum float32) {
	top = m
	for j, v := range s {
		v *= scale
		s[j] = v
		if v > top {
			top = v
		}
	}
	var part [Partials]float32
	for j, v := range s {
		p := Exp32(v - top)
		if half {
			p = quant.F16ToF32(quant.F32ToF16(p))
		}
		s[j] = p
		part[j%Partials] += p
	}
	return top, Fold(&part)
}
