package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func TestBucketsCoverTheRangeWithoutGapOrOverlap(t *testing.T) {
	next := uint64(0)
	for i := range bucketCount {
		low, width := bucketBounds(i)
		if low != next {
			t.Fatalf("bucket %d starts at %d, want %d", i, low, next)
		}
		if got := bucketOf(low); got != i {
			t.Fatalf("bucketOf(%d) = %d, want %d", low, got, i)
		}
		if got := bucketOf(low + width - 1); got != i {
			t.Fatalf("bucketOf(%d) = %d, want %d", low+width-1, got, i)
		}
		next = low + width
	}
	if next != 1<<maxExponent {
		t.Fatalf("the buckets end at %d, want 2^%d", next, maxExponent)
	}
	if got := bucketOf(math.MaxInt64); got != bucketCount-1 {
		t.Fatalf("the largest value falls into bucket %d, want the last", got)
	}
}

func TestHistogramQuantilesAgreeWithTheSortedValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var values []int64
	for range 20_000 {
		v := int64(math.Exp(random.NormFloat64()*1.5 + 14)) // around 1.2 ms, with a long tail
		values = append(values, v)
		h.Record(v)
	}
	slices.Sort(values)
	for _, q := range []float64{0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		want := values[max(int(math.Ceil(q*float64(len(values))))-1, 0)]
		got, ok := h.Quantile(q)
		if !ok || math.Abs(float64(got-want)) > 0.008*float64(want) {
			t.Errorf("Quantile(%v) = %d %v, want %d within 0.8%%", q, got, ok, want)
		}
	}
	least, _ := h.Quantile(0)
	most, _ := h.Quantile(1)
	if least != values[0] || most != values[len(values)-1] {
		t.Errorf("range %d..%d, want %d..%d", least, most, values[0], values[len(values)-1])
	}
}

func TestHistogramEmptyAndExtremes(t *testing.T) {
	var h Histogram
	if _, ok := h.Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	if _, ok := h.Mean(); ok {
		t.Error("an empty histogram has a mean")
	}
	h.Record(-5)
	h.Record(math.MaxInt64)
	for q, want := range map[float64]int64{0: 0, 0.5: 0, 1: math.MaxInt64} {
		if got, _ := h.Quantile(q); got != want {
			t.Errorf("Quantile(%v) = %d, want %d", q, got, want)
		}
	}
}

func TestHistogramMergeEqualsRecordingIntoOne(t *testing.T) {
	var a, b, all Histogram
	for i := range int64(1000) {
		v := i * i * 37
		all.Record(v)
		if i%3 == 0 {
			a.Record(v)
		} else {
			b.Record(v)
		}
	}
	a.Merge(&b)
	if a != all {
		t.Fatal("merging two halves differs from recording everything into one")
	}
	var empty Histogram
	a.Merge(&empty)
	if a != all {
		t.Fatal("merging an empty histogram changed something")
	}
	copied := a
	a.Reset()
	if a != (Histogram{}) || copied != all {
		t.Fatal("reset left something behind, or reached into a copy")
	}
}

func TestHistogramCopyWhileOthersRecord(t *testing.T) {
	const writers, each = 4, 5000
	var h, seen Histogram
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range int64(each) {
				h.Record(i*1000 + int64(w))
			}
		})
	}
	for range 50 {
		h.CopyTo(&seen)
		var total uint64
		for _, c := range seen.counts {
			total += c
		}
		if total != seen.n {
			t.Fatalf("the copy counts %d records but holds %d", seen.n, total)
		}
	}
	wg.Wait()
	if h.Count() != writers*each {
		t.Fatalf("%d records, want %d", h.Count(), writers*each)
	}
}

func TestHistogramDoesNotAllocate(t *testing.T) {
	var h, dst Histogram
	if n := testing.AllocsPerRun(100, func() {
		h.Record(123456)
		h.CopyTo(&dst)
		dst.Quantile(0.99)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestQuantileInterpolates(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.25: 1.75, 1: 4, -1: 1, 2: 4} {
		if got := Quantile(values, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if !slices.Equal(values, []float64{4, 1, 3, 2}) {
		t.Error("the sample was reordered")
	}
	if got := Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three is %v", got)
	}
	for name, got := range map[string]float64{"median": Median(nil), "mean": Mean(nil)} {
		if !math.IsNaN(got) {
			t.Errorf("%s of nothing is %v, want NaN", name, got)
		}
	}
}

func TestBootstrapIntervalsHoldTheTruthAsOftenAsTheyClaim(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	held := 0
	const trials = 200
	for range trials {
		sample := make([]float64, 40)
		for i := range sample {
			sample[i] = 10 + random.NormFloat64()
		}
		if in := (Bootstrap{Rounds: 400}).Interval(sample, Mean); in.Low <= 10 && 10 <= in.High {
			held++
		}
	}
	// The percentile method is slightly too narrow for small samples.
	if share := float64(held) / trials; share < 0.88 || share > 0.99 {
		t.Fatalf("95%% intervals hold the truth in %.0f%% of the trials", 100*share)
	}
}

func TestBootstrapOfTwoSamples(t *testing.T) {
	base := []float64{100, 104, 97, 101, 99, 103}
	faster := []float64{199, 204, 195, 208, 202, 200}
	b := Bootstrap{Seed: 3}
	got := b.Interval2(base, faster, RatioOfMedians)
	if got.Low > 2 || got.High < 2 || got.Low < 1.8 || got.High > 2.2 {
		t.Errorf("ratio of medians in %v, want a narrow interval around 2", got)
	}
	if again := b.Interval2(base, faster, RatioOfMedians); again != got {
		t.Errorf("the same seed gave %v and then %v", got, again)
	}
	if empty := b.Interval2(nil, faster, RatioOfMedians); !math.IsNaN(empty.Low) || !math.IsNaN(empty.High) {
		t.Errorf("an empty sample gave %v", empty)
	}
	if empty := b.Interval(nil, Median); !math.IsNaN(empty.Low) {
		t.Errorf("an empty sample gave %v", empty)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for i := range b.N {
		h.Record(int64(i) * 997)
	}
}

func TestSortedQuantilesAreThoseOfTheSample(t *testing.T) {
	for _, values := range [][]int64{{5}, {1, 9}, {1, 2, 3}, {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}} {
		floats := make([]float64, len(values))
		for i, v := range values {
			floats[i] = float64(v)
		}
		for _, q := range []float64{-1, 0, 0.5, 0.95, 1, 2} {
			if got, want := SortedQuantile(values, q), Quantile(floats, q); math.Abs(float64(got)-want) >= 1 {
				t.Errorf("the %v-quantile of %v is %d, want %v", q, values, got, want)
			}
		}
	}
}

func TestRatesOfNothingAreNotKnown(t *testing.T) {
	if v, ok := Ceiling(10, 3e9, 1e9); !ok || v != 5 {
		t.Errorf("10 tokens in 3 s, 1 of it stall: %v, %v", v, ok)
	}
	if _, ok := Ceiling(10, 1e9, 1e9); ok {
		t.Error("a ceiling of no time")
	}
	if _, ok := PerSecond(1, 0); ok {
		t.Error("a rate in no time")
	}
	if _, ok := MeanOf(5, 0); ok {
		t.Error("a mean of nothing")
	}
	if v, ok := Percent(1, 4); !ok || v != 25 {
		t.Errorf("%v, %v", v, ok)
	}
	if _, ok := Percent(0, 0); ok {
		t.Error("percent of nothing")
	}
}

// Bins hold every record once, on the right side of each bound.
func TestBins(t *testing.T) {
	var h Histogram
	for v := range int64(2000) {
		h.Record(v)
	}
	bins := make([]int64, 4)
	h.Bins([]int64{16, 128, 1024}, bins)
	for i, want := range []int64{16, 112, 896, 976} {
		if bins[i] != want {
			t.Errorf("bin %d has %d records, want %d", i, bins[i], want)
		}
	}
}
