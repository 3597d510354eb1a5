package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// runOf makes a run of n tokens: neighbours share their luck, a whole run has
// its own, and all of it is scaled by a factor of the token's time.
func runOf(random *rand.Rand, n int, factor, within, between float64) []float32 {
	run := math.Exp(between * random.NormFloat64())
	out := make([]float32, n)
	var near float64
	for i := range out {
		near = 0.7*near + within*random.NormFloat64()
		out[i] = float32(0.1 * factor * run * math.Exp(near))
	}
	return out
}

func side(runs ...[]float32) Side { return Side{Runs: runs} }

func TestClaimWordsARealDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		factor float64
		want   string
	}{{1 / 1.46, "faster +"}, {1.46, "slower -"}, {1.3, "slower -"}} {
		d := Claim(side(runOf(random, 96, 1, 0.1, 0.01)), side(runOf(random, 96, c.factor, 0.1, 0.01)), nil)
		if !strings.HasPrefix(d.String(), c.want) || d.Tokens != 96 {
			t.Errorf("a factor of %v: %q over %d tokens", c.factor, d, d.Tokens)
		}
		if true := 1/c.factor - 1; d.Low > true || d.High < true {
			t.Errorf("a factor of %v: %v to %v does not hold %v", c.factor, d.Low, d.High, true)
		}
	}
	for _, c := range []struct {
		d    Difference
		want string
	}{
		{Difference{Verdict: Faster, Low: 0.441, High: 0.4849}, "faster +44..+48 %"},
		{Difference{Verdict: Faster, Low: 0.0312, High: 0.2}, "faster +3.1..+20.0 %"},
		{Difference{Verdict: Slower, Low: -0.305, High: -0.28}, "slower -30..-28 %"},
		{Difference{Low: -0.1, High: 0.1}, "no clear change"},
		{Difference{Verdict: NotComparable, Why: "disturbed: CPU"}, "not comparable: disturbed: CPU"},
	} {
		if got := c.d.String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.d, got, c.want)
		}
	}
}

// Of pairs of equal runs at most one in ten is claimed, whether runs of a
// session differ by little or by much, and however many have been seen.
func TestEqualRunsAreHardlyEverClaimed(t *testing.T) {
	const pairs = 100
	for _, between := range []float64{0.005, 0.03, 0.10} {
		for _, seen := range []int{0, 2, 6} {
			if seen == 0 && between > 0.05 {
				continue // nobody can know: 10 % is what a quiet machine keeps
			}
			for _, runs := range []int{1, 3} {
				random := rand.New(rand.NewPCG(uint64(seen), math.Float64bits(between)))
				claims := 0
				for range pairs {
					var equal [][]float64
					if seen > 0 {
						pool := make([][]float32, seen)
						for i := range pool {
							pool[i] = runOf(random, 64, 1, 0.1, between)
						}
						equal = append(equal, speeds(pool, 64))
					}
					var a, b Side
					for range runs {
						a.Runs = append(a.Runs, runOf(random, 64, 1, 0.1, between))
						b.Runs = append(b.Runs, runOf(random, 64, 1, 0.1, between))
					}
					if runs > 1 {
						equal = append(equal, speeds(a.Runs, 64), speeds(b.Runs, 64))
					}
					if v := Claim(a, b, equal).Verdict; v != NoClearChange {
						claims++
					}
				}
				if claims > pairs/10 {
					t.Errorf("runs differing by %v, %d seen, %d a side: %d of %d equal pairs claimed", between, seen, runs, claims, pairs)
				}
			}
		}
	}
}

// A real effect of a third is seen in every pair on a quiet machine.
func TestARealEffectIsAlwaysClaimed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 100 { // every second with two equal runs seen before
		var equal [][]float64
		if i%2 == 1 {
			equal = [][]float64{speeds([][]float32{runOf(random, 96, 1, 0.05, 0.02), runOf(random, 96, 1, 0.05, 0.02)}, 96)}
		}
		d := Claim(side(runOf(random, 96, 1, 0.05, 0.02)), side(runOf(random, 96, 1/1.4, 0.05, 0.02)), equal)
		if d.Verdict != Faster {
			t.Errorf("pair %d: %v (%v to %v)", i, d, d.Low, d.High)
		}
	}
}

func TestASmallChangeIsNotClaimed(t *testing.T) {
	steady := func(v float32) []float32 {
		out := make([]float32, 64)
		for i := range out {
			out[i] = v
		}
		return out
	}
	three := func(v float32) Side { return side(steady(v), steady(v), steady(v)) }
	if d := Claim(three(1), three(1/1.02), nil); d.Verdict != NoClearChange {
		t.Errorf("2 %% without any noise: %v", d)
	}
	if d := Claim(three(1), three(1/1.05), nil); d.Verdict != Faster {
		t.Errorf("5 %% without any noise: %v", d)
	}
	if d := Claim(side(steady(1)), side(steady(1/1.05)), nil); d.Verdict != NoClearChange {
		t.Errorf("5 %% of one run a side, where equal runs may differ by 10 %%: %v", d)
	}
}

func TestWhatCannotBeComparedSaysWhy(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	run := func(n int) []float32 { return runOf(random, n, 1, 0.1, 0) }
	for _, c := range []struct {
		a, b Side
		why  string
	}{
		{Side{[][]float32{run(64)}, "disturbed: CPU"}, side(run(64)), "disturbed: CPU"},
		{side(run(64)), Side{[][]float32{run(64)}, "disturbed: drive"}, "disturbed: drive"},
		{side(run(64)), side(run(15)), "15 decoded tokens in common"},
		{side(run(64)), side(), "no run to compare with"},
		{side(make([]float32, 64)), side(run(64)), "time is not known"},
	} {
		d := Claim(c.a, c.b, nil)
		if d.Verdict != NotComparable || !strings.Contains(d.Why, c.why) {
			t.Errorf("%q, want %q", d, c.why)
		}
	}
	// A run stopped early is compared over the tokens that both have: here the
	// first 40, in which the two are equal.
	long := run(40)
	slow := append(append([]float32{}, long...), make([]float32, 60)...)
	for i := range slow[40:] {
		slow[40+i] = 5
	}
	if d := Claim(side(slow), side(long), nil); d.Verdict != NoClearChange || d.Tokens != 40 {
		t.Errorf("%v over %d tokens", d, d.Tokens)
	}
}

func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 10: 2.228, 11: 2.201, 30: 2.042, 1000: 1.962} {
		if got := Student(freedom, 0.975); math.Abs(got-want) > 0.003 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

func BenchmarkClaim(b *testing.B) {
	random := rand.New(rand.NewPCG(7, 8))
	x, y := runOf(random, 4096, 1, 0.1, 0), runOf(random, 4096, 1, 0.1, 0)
	for b.Loop() {
		Claim(side(x), side(y), nil)
	}
}
