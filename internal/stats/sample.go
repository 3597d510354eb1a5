// Package stats holds the statistics that bmoe's figures rest on: a histogram
// for the hot path, order statistics of small samples, and bootstrap intervals.
package stats

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile (0 to 1) of the values, interpolated linearly
// between the two nearest order statistics (Hyndman and Fan's type 7, the usual
// default). It is NaN for no values. The slice is left as it was.
func Quantile(values []float64, q float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return quantileSorted(sorted, q)
}

func quantileSorted(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	if low == len(sorted)-1 {
		return sorted[low]
	}
	share := at - float64(low)
	return sorted[low]*(1-share) + sorted[low+1]*share
}

// Median returns the middle of the values, the mean of the middle two if their
// number is even, and NaN if there are none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Mean returns the arithmetic mean, or NaN for no values.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
