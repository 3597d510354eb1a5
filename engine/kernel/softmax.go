package kernel

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
	var sum [lanes]float32
	for i := range x {
		x[i] = Exp32(x[i] - top)
		sum[i%lanes] += x[i]
	}
	Scale(x, 1/fold(&sum))
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
