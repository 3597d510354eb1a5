package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Side is one side of a comparison: runs that were equal in all that the user
// chose, and what is known against them.
type Side struct {
	Runs    [][]float32 // of each run the time of each of its tokens, in order
	Spoiled string      // why the times are not the runs' own: "disturbed: CPU". Empty: nothing is known
}

// Verdict is what a comparison came to.
type Verdict uint8

// The verdicts.
const (
	NoClearChange Verdict = iota
	Faster
	Slower
	NotComparable
)

// Difference is the outcome of a comparison. Low and High bound the change of
// speed, as a share of the base's: 0.44 is 44 % more tokens a second.
type Difference struct {
	Verdict   Verdict
	Low, High float64
	Tokens    int    // compared, of each run
	Why       string // not comparable
}

// String words the difference: "faster +44..+48 %", "slower -31..-28 %", "no
// clear change", "not comparable: disturbed: CPU".
func (d Difference) String() string {
	switch d.Verdict {
	case Faster:
		return "faster " + d.interval()
	case Slower:
		return "slower " + d.interval()
	case NotComparable:
		return "not comparable: " + d.Why
	}
	return "no clear change"
}

func (d Difference) interval() string {
	low, high := 100*d.Low, 100*d.High
	if min(math.Abs(low), math.Abs(high)) < 9.95 {
		return fmt.Sprintf("%+.1f..%+.1f %%", low, high)
	}
	return fmt.Sprintf("%+.0f..%+.0f %%", low, high)
}

const (
	// claimBlock is how many neighbouring tokens are redrawn together: they share
	// what the cache held.
	claimBlock = 8
	// claimLeast is how many tokens two runs must share: two blocks, or there is
	// nothing to redraw.
	claimLeast = 2 * claimBlock
	// claimBlocks bounds the work for long answers; beyond it blocks grow.
	claimBlocks = 512
	// claimChange is the least change worth a word.
	claimChange = 0.03
	// claimNoise is by how much equal runs are taken to differ while nobody has
	// seen two.
	claimNoise = 0.10
	// claimMedians is from how many runs a side on the runs speak for themselves.
	claimMedians = 3
)

// Claim holds two sides against each other and says only what their runs bear
// out. A difference is claimed if its 95 % interval excludes no change and it is
// at least 3 %.
//
// With three or more runs a side the interval is that of the ratio of the runs'
// medians. With fewer, the tokens of both sides are paired and redrawn in blocks
// of 8. Tokens of one run say nothing of how much one run differs from the next,
// so the interval is widened by what runs of equal settings in this session
// differed by, or by 10 % if there were no such. equal holds, for every set of
// equal runs, the runs' speeds in any unit.
func Claim(base, other Side, equal [][]float64) Difference {
	none := func(why string) Difference { return Difference{Verdict: NotComparable, Why: why} }
	for _, s := range []Side{base, other} {
		if s.Spoiled != "" {
			return none(s.Spoiled)
		}
		if len(s.Runs) == 0 {
			return none("there is no run to compare with")
		}
	}
	tokens := math.MaxInt
	for _, s := range []Side{base, other} {
		for _, r := range s.Runs {
			tokens = min(tokens, len(r))
		}
	}
	if tokens < claimLeast {
		return none(fmt.Sprintf("too short: %d decoded tokens in common, %d are needed", tokens, claimLeast))
	}
	a, b := speeds(base.Runs, tokens), speeds(other.Runs, tokens)
	if slices.Min(a) <= 0 || slices.Min(b) <= 0 || math.IsInf(slices.Max(a), 0) || math.IsInf(slices.Max(b), 0) {
		return none("a run's time is not known")
	}
	n1, n2 := len(a), len(b)
	// Changes are added up as logarithms: +50 % and -33 % undo each other.
	var change float64
	var at Interval
	noise, seen := runNoise(equal, n1, n2)
	if min(n1, n2) >= claimMedians {
		ratio := func(a, b []float64) float64 { return math.Log(RatioOfMedians(a, b)) }
		change = ratio(a, b)
		at = Bootstrap{}.Interval2(a, b, ratio)
		// Three runs redrawn are never further apart than they were: the spread of
		// all equal runs keeps their luck from passing for an effect.
		if seen {
			at = Interval{min(at.Low, change-noise), max(at.High, change+noise)}
		}
	} else {
		was, is := blocks(base.Runs, tokens), blocks(other.Runs, tokens)
		change = math.Log(sum(was) / sum(is))
		at = pairedBlocks(was, is)
		at = Interval{at.Low - noise, at.High + noise}
	}
	d := Difference{Low: math.Expm1(at.Low), High: math.Expm1(at.High), Tokens: tokens}
	switch by := math.Expm1(change); {
	case at.Low > 0 && by >= claimChange:
		d.Verdict = Faster
	case at.High < 0 && by <= -claimChange:
		d.Verdict = Slower
	}
	return d
}

// speeds returns each run's tokens a unit of time over its first tokens.
func speeds(runs [][]float32, tokens int) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		var t float64
		for _, v := range r[:tokens] {
			t += float64(v)
		}
		out[i] = float64(tokens) / t
	}
	return out
}

// blocks returns the time of each block of tokens, added up over the runs and
// divided by their number.
func blocks(runs [][]float32, tokens int) []float64 {
	size := max(claimBlock, (tokens+claimBlocks-1)/claimBlocks)
	out := make([]float64, (tokens+size-1)/size)
	for _, r := range runs {
		for i, v := range r[:tokens] {
			out[i/size] += float64(v) / float64(len(runs))
		}
	}
	return out
}

// pairedBlocks returns the interval of the logarithm of the speeds' ratio when
// the same blocks are redrawn on both sides.
func pairedBlocks(was, is []float64) Interval {
	b := Bootstrap{}
	random := b.generator()
	return b.percentiles(func() float64 { return drawnChange(random, was, is) })
}

func drawnChange(random *rand.Rand, was, is []float64) float64 {
	var a, c float64
	for range was {
		i := random.IntN(len(was))
		a += was[i]
		c += is[i]
	}
	return math.Log(a / c)
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// runNoise returns by how much n1 runs and n2 equal runs may differ, as a
// logarithm, at 95 %: Student's t over the spread of all equal runs. Few of them
// say little, and t then says too much: it is at most 10 %, or twice what was
// seen if that is more. seen is false if no runs were equal.
func runNoise(equal [][]float64, n1, n2 int) (noise float64, seen bool) {
	var squares, most float64
	freedom := 0
	for _, runs := range equal {
		if len(runs) < 2 || slices.Min(runs) <= 0 {
			continue
		}
		logs := make([]float64, len(runs))
		for i, v := range runs {
			logs[i] = math.Log(v)
		}
		mean := Mean(logs)
		for _, v := range logs {
			squares += (v - mean) * (v - mean)
		}
		freedom += len(runs) - 1
		most = max(most, slices.Max(logs)-slices.Min(logs))
	}
	cap := math.Log1p(claimNoise)
	if freedom == 0 {
		return cap, false
	}
	spread := math.Sqrt(squares / float64(freedom))
	return min(Student(freedom, 0.975)*spread*math.Sqrt(1/float64(n1)+1/float64(n2)), max(cap, 2*most)), true
}
