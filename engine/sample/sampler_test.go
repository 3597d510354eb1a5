package sample

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
)

func mustNew(t testing.TB, o Options, vocab int) *Sampler {
	t.Helper()
	s, err := New(o, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain are options that change nothing but the temperature.
func plain(temp float64) Options {
	return Options{Temp: temp, TopP: 1, RepeatPenalty: 1, RepeatLastN: 64, Seed: 1}
}

func TestGreedyTakesTheLargestAndTheLowestOfEquals(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1, 3, 2}, 1}, {[]float32{2, 5, 5, 5}, 1}, {[]float32{-7}, 0}, {[]float32{inf, inf, -3, inf}, 2}, {[]float32{0, float32(math.Copysign(0, -1))}, 0},
	} {
		s := mustNew(t, Defaults(), len(c.logits))
		for range 3 {
			if got, err := s.Sample(c.logits); err != nil || got != c.want {
				t.Errorf("%v gives %d, %v, want %d", c.logits, got, err, c.want)
			}
		}
	}
}

func TestBrokenLogitsAreAnError(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, o := range []Options{Defaults(), plain(1), {Temp: 1, TopK: 2, TopP: 0.9, RepeatPenalty: 1.2, RepeatLastN: 4}} {
		for _, logits := range [][]float32{{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}, {inf, 1, 2}, {1, 2, inf}, {-inf, -inf, -inf}, {nan, nan, nan}, {1, 2}, {}} {
			s := mustNew(t, o, 3)
			s.Accept(1)
			if id, err := s.Sample(logits); err == nil {
				t.Errorf("%v gives token %d", logits, id)
			}
		}
	}
}

func TestOptionsOutOfRange(t *testing.T) {
	bad := func(name string, change func(*Options)) {
		o := Defaults()
		change(&o)
		if _, err := New(o, 10); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: error %v, want one about %s", o, err, name)
		}
	}
	bad("temperature", func(o *Options) { o.Temp = -1 })
	bad("temperature", func(o *Options) { o.Temp = math.NaN() })
	bad("temperature", func(o *Options) { o.Temp = math.Inf(1) })
	bad("top-k", func(o *Options) { o.TopK = -1 })
	bad("top-p", func(o *Options) { o.TopP = 1.5 })
	bad("top-p", func(o *Options) { o.TopP = math.NaN() })
	bad("min-p", func(o *Options) { o.MinP = -0.1 })
	bad("repeat penalty", func(o *Options) { o.RepeatPenalty = 0 })
	bad("repeat last", func(o *Options) { o.RepeatLastN = -1 })
	if _, err := New(Defaults(), 0); err == nil {
		t.Error("an empty vocabulary was accepted")
	}
}

// reference returns the probabilities that the options leave, from the
// definitions, by full sort and in float64.
func reference(o Options, logits []float32, recent []int32) []float64 {
	l := make([]float64, len(logits))
	for i, v := range logits {
		l[i] = float64(v)
		if slices.Contains(recent, int32(i)) {
			if v > 0 {
				l[i] /= o.RepeatPenalty
			} else {
				l[i] *= o.RepeatPenalty
			}
		}
	}
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return l[order[a]] > l[order[b]] })
	if o.TopK > 0 {
		order = order[:min(o.TopK, len(order))]
	}
	top := l[order[0]]
	total := 0.0
	for _, i := range order {
		total += math.Exp(l[i] - top)
	}
	if o.TopP < 1 {
		sum := 0.0
		for n, i := range order {
			if sum += math.Exp(l[i] - top); sum >= o.TopP*total {
				order = order[:n+1]
				break
			}
		}
	}
	p := make([]float64, len(l))
	total = 0
	for _, i := range order {
		if math.Exp(l[i]-top) >= o.MinP {
			p[i] = math.Exp((l[i] - top) / o.Temp)
			total += p[i]
		}
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

func TestDrawsFollowTheDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	logits := make([]float32, 60)
	for i := range logits {
		logits[i] = float32(rng.Float64()*8 - 3)
	}
	logits[17] = float32(math.Inf(-1))
	recent := []int32{5, 9, 9, 30, 5}
	for _, o := range []Options{
		plain(1), plain(0.5), plain(3),
		{Temp: 1, TopK: 8, TopP: 1, RepeatPenalty: 1, Seed: 3},
		{Temp: 1.3, TopP: 0.8, RepeatPenalty: 1, Seed: 4},
		{Temp: 1.3, TopK: 20, TopP: 0.6, RepeatPenalty: 1, Seed: 5},
		{Temp: 2, TopP: 1, MinP: 0.2, RepeatPenalty: 1, Seed: 6},
		{Temp: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.5, RepeatLastN: 5, Seed: 7},
		{Temp: 1, TopK: 1000, TopP: 0, RepeatPenalty: 1, Seed: 8},
	} {
		s := mustNew(t, o, len(logits))
		s.Accept(recent...)
		given := slices.Clone(logits)
		var hist []int32
		if o.RepeatPenalty != 1 {
			hist = recent
		}
		want := reference(o, logits, hist)
		const draws = 40_000
		counts := make([]int, len(logits))
		for range draws {
			id, err := s.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
		}
		for i, c := range counts {
			share := float64(c) / draws
			// Five standard deviations.
			if tol := 5*math.Sqrt(want[i]*(1-want[i])/draws) + 1e-9; math.Abs(share-want[i]) > tol {
				t.Errorf("%+v: token %d was drawn in %.4f of cases, want %.4f", o, i, share, want[i])
			}
		}
		if !slices.Equal(given, logits) {
			t.Errorf("%+v: the logits were changed", o)
		}
	}
}

// The candidates are those of a full sort, in its order, on large and on nasty
// vocabularies.
func TestSelectionsEqualAFullSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	for round := range 300 {
		n := 1 + rng.IntN(3000)
		logits := make([]float32, n)
		for i := range logits {
			switch round % 3 {
			case 0:
				logits[i] = float32(rng.Float64()*30 - 20)
			case 1:
				logits[i] = float32(rng.IntN(9)) // ties
			case 2:
				logits[i] = float32(math.Exp(rng.Float64()*12) - 1000)
			}
		}
		o := Options{Temp: 1, TopK: rng.IntN(60), TopP: []float64{1, 0.95, 0.5, 0}[rng.IntN(4)], MinP: []float64{0, 0.05}[rng.IntN(2)], RepeatPenalty: 1}
		s := mustNew(t, o, n)
		if _, err := s.Sample(logits); err != nil {
			t.Fatal(err)
		}
		want := reference(o, logits, nil)
		got := make(map[int32]bool)
		for _, c := range s.cands {
			if got[c.id] || c.logit != logits[c.id] {
				t.Fatalf("candidate %+v", c)
			}
			got[c.id] = true
		}
		for i, p := range want {
			if (o.TopK == 0 || o.TopK >= n) && o.TopP == 1 && o.MinP == 0 {
				break // all are, and no list of them is made
			}
			// The reference's weights underflow where the logit is far below the top.
			if p > 1e-30 && !got[int32(i)] || p == 0 && got[int32(i)] && (o.TopK > 0 || o.TopP < 1) && math.Exp(float64(logits[i]-slices.Max(logits))) > 0 {
				t.Fatalf("round %d %+v: token %d with %g is a candidate: %v", round, o, i, p, got[int32(i)])
			}
		}
	}
}

func TestSeedsRepeatAndDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 500)
	for i := range logits {
		logits[i] = float32(rng.Float64())
	}
	run := func(s *Sampler) (ids []int32) {
		for range 50 {
			id, err := s.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(id)
			ids = append(ids, id)
		}
		return ids
	}
	o := plain(1)
	o.RepeatPenalty = 1.3
	first := run(mustNew(t, o, len(logits)))
	if other := run(mustNew(t, o, len(logits))); !slices.Equal(first, other) {
		t.Error("the same seed gives other tokens")
	}
	o.Seed = 2
	if other := run(mustNew(t, o, len(logits))); slices.Equal(first, other) {
		t.Error("another seed gives the same tokens")
	}
	// What seed 1 draws is part of what a run promises to repeat.
	if want := []int32{463, 361, 449, 440}; !slices.Equal(first[:4], want) {
		t.Errorf("seed 1 draws %v, want %v", first[:4], want)
	}
}

func TestRepeatPenaltyLooksBackLastNTokens(t *testing.T) {
	o := Defaults()
	o.RepeatPenalty, o.RepeatLastN = 2, 3
	logits := []float32{4, 3, -1, -1.5}
	s := mustNew(t, o, 4)
	step := func(want int32) {
		t.Helper()
		if id, err := s.Sample(logits); err != nil || id != want {
			t.Fatalf("got %d, %v, want %d", id, err, want)
		}
	}
	step(0)
	s.Accept(0, 0, -5, 99) // twice penalises once; ids outside are left out
	step(1)                // 4/2 < 3
	s.Accept(2)
	step(1)
	s.Accept(3) // 0 still in the window: 0 2 3
	step(1)
	s.Accept(3) // 2 3 3: 0 has left
	step(0)
	s.Accept(1, 0)
	step(0) // 3 1 0: 4/2 against 3/2

	s = mustNew(t, o, 4)
	negative := []float32{-3, -2, -5, -5}
	s.Accept(1)
	if id, err := s.Sample(negative); err != nil || id != 0 {
		t.Fatalf("a negative logit is not made smaller: %d, %v", id, err)
	}
}

func TestTinyTemperatureIsGreedy(t *testing.T) {
	logits := []float32{1, 1.0001, 0.5}
	for _, temp := range []float64{1e-300, 1e-45, 1e-40, 1e-7} {
		s := mustNew(t, plain(temp), 3)
		if id, err := s.Sample(logits); err != nil || id != 1 {
			t.Errorf("temperature %g: %d, %v", temp, id, err)
		}
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 20000)
	for i := range logits {
		logits[i] = float32(rng.Float64() * 20)
	}
	for _, o := range []Options{Defaults(), plain(1), {Temp: 1, TopK: 40, TopP: 0.9, MinP: 0.1, RepeatPenalty: 1.1, RepeatLastN: 64}, {Temp: 1, TopP: 0.9, RepeatPenalty: 1}} {
		s := mustNew(t, o, len(logits))
		best := uint64(1 << 62)
		for range 3 {
			var a, b runtime.MemStats
			runtime.ReadMemStats(&a)
			for range 50 {
				id, err := s.Sample(logits)
				if err != nil {
					t.Fatal(err)
				}
				s.Accept(id)
			}
			runtime.ReadMemStats(&b)
			best = min(best, b.Mallocs-a.Mallocs)
		}
		if best > 5 {
			t.Errorf("%+v: 50 samples allocate %d times", o, best)
		}
	}
}

// BenchmarkSample is one token over Qwen3's vocabulary, logits like a model's.
func BenchmarkSample(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64()*2.5 + 1)
	}
	for i := range 20 {
		logits[rng.IntN(len(logits))] = float32(12 + i)
	}
	for name, o := range map[string]Options{
		"greedy":   Defaults(),
		"defaults": {Temp: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, RepeatLastN: 64},
		"top-p":    {Temp: 0.8, TopP: 0.95, RepeatPenalty: 1},
		"all":      plain(1),
	} {
		b.Run(name, func(b *testing.B) {
			s := mustNew(b, o, len(logits))
			for b.Loop() {
				id, err := s.Sample(logits)
				if err != nil {
					b.Fatal(err)
				}
				s.Accept(id)
			}
		})
	}
}
