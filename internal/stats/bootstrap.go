package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a confidence interval. Both ends are NaN if there was nothing to
// resample.
type Interval struct{ Low, High float64 }

// Bootstrap is how an interval is computed: how often the sample is redrawn,
// what share of the results the interval holds, and the generator's seed, so
// that the same sample always gives the same interval.
type Bootstrap struct {
	Rounds int     // redraws; 0 means 2000
	Level  float64 // 0 to 1; 0 means 0.95
	Seed   uint64
}

func (b Bootstrap) rounds() int {
	if b.Rounds <= 0 {
		return 2000
	}
	return b.Rounds
}

func (b Bootstrap) level() float64 {
	if b.Level <= 0 || b.Level >= 1 {
		return 0.95
	}
	return b.Level
}

// Interval returns the percentile bootstrap interval (Efron 1979) of a statistic
// of one sample. The statistic gets a slice that it may reorder. For paired
// measurements, pass the pairs' differences or ratios as the sample.
func (b Bootstrap) Interval(values []float64, statistic func([]float64) float64) Interval {
	if len(values) == 0 {
		return Interval{math.NaN(), math.NaN()}
	}
	random := b.generator()
	drawn := make([]float64, len(values))
	return b.percentiles(func() float64 {
		redraw(random, drawn, values)
		return statistic(drawn)
	})
}

// Interval2 is Interval for a statistic of two independent samples, such as the
// ratio of their medians; each is redrawn from itself.
func (b Bootstrap) Interval2(a, c []float64, statistic func(a, c []float64) float64) Interval {
	if len(a) == 0 || len(c) == 0 {
		return Interval{math.NaN(), math.NaN()}
	}
	random := b.generator()
	drawnA, drawnC := make([]float64, len(a)), make([]float64, len(c))
	return b.percentiles(func() float64 {
		redraw(random, drawnA, a)
		redraw(random, drawnC, c)
		return statistic(drawnA, drawnC)
	})
}

// RatioOfMedians is the statistic Median(c) / Median(a), for Interval2.
func RatioOfMedians(a, c []float64) float64 { return Median(c) / Median(a) }

func (b Bootstrap) generator() *rand.Rand { return rand.New(rand.NewPCG(b.Seed, 0x626d6f65)) }

func redraw(random *rand.Rand, dst, src []float64) {
	for i := range dst {
		dst[i] = src[random.IntN(len(src))]
	}
}

// percentiles calls once for every round and cuts the tails off the results.
// Rounds whose statistic is undefined (NaN) are left out.
func (b Bootstrap) percentiles(once func() float64) Interval {
	results := make([]float64, 0, b.rounds())
	for range b.rounds() {
		if v := once(); !math.IsNaN(v) {
			results = append(results, v)
		}
	}
	slices.Sort(results)
	tail := (1 - b.level()) / 2
	return Interval{quantileSorted(results, tail), quantileSorted(results, 1-tail)}
}
