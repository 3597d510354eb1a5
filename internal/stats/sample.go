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

// SortedQuantile is Quantile for whole numbers in rising order, rounded down, and
// allocates nothing. Of no values it is 0.
func SortedQuantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	low := int(at)
	next := min(low+1, len(sorted)-1)
	return sorted[low] + int64((at-float64(low))*float64(sorted[next]-sorted[low]))
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

// MeanOf returns a sum's mean over n, or false for no values.
func MeanOf(sum, n int64) (int64, bool) {
	if n <= 0 {
		return 0, false
	}
	return sum / n, true
}

// PerSecond returns n per second of ns, or false if no time has passed.
func PerSecond(n, ns int64) (float64, bool) {
	if ns <= 0 {
		return 0, false
	}
	return float64(n) * 1e9 / float64(ns), true
}

// Ceiling returns the tokens a second that would be if flash were free: n tokens
// that took wall ns less the stall ns of them. It is false if no time is left.
func Ceiling(n, wall, stall int64) (float64, bool) { return PerSecond(n, wall-stall) }

// Percent returns part in percent of whole, or false if there is no whole.
func Percent(part, whole int64) (float64, bool) {
	if whole == 0 {
		return 0, false
	}
	return 100 * float64(part) / float64(whole), true
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
