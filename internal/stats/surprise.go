package stats

import "math"

// Surprise returns the negative logarithm of an id's probability under the softmax of
// logits, in nats, and the likeliest id, the first of equals.
func Surprise(logits []float32, id int32) (nll float64, best int32) {
	for i, v := range logits {
		if v > logits[best] {
			best = int32(i)
		}
	}
	most, sum := float64(logits[best]), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum) - float64(logits[id]), best
}
