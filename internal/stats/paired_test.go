package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Against a table of Student's distribution.
func TestStudentAtOtherLevels(t *testing.T) {
	for _, c := range []struct {
		freedom int
		q, want float64
	}{{1, 0.975, 12.706}, {2, 0.995, 9.925}, {4, 0.99, 3.747}, {7, 0.995, 3.499}, {11, 0.995, 3.106}, {30, 0.975, 2.042}, {5, 0.5, 0}} {
		if got := Student(c.freedom, c.q); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%d degrees, %v: %.3f, want %.3f", c.freedom, c.q, got, c.want)
		}
	}
}

// A drift that is twenty times the effect is in both runs of a pair and hides
// nothing.
func TestPairsTakeDriftOut(t *testing.T) {
	var base, other []float64
	for i := range 5 {
		drift := 1 + float64(i)
		base, other = append(base, 10*drift), append(other, 10.5*drift*(1+0.001*float64(i%2)))
	}
	if d, half := Paired(base, other, 4); d.Verdict != Faster || d.Low > 0.0506 || d.High < 0.0505 || half > 0.01 {
		t.Errorf("%v, half %v", d, half)
	}
	if d, _ := Paired(other, base, 4); d.Verdict != Slower {
		t.Errorf("%v", d)
	}
	if d, half := Paired(base[:2], other[:2], 4); d.Verdict != NotComparable || !math.IsInf(half, 1) {
		t.Errorf("of two pairs: %v, half %v", d, half)
	}
}

// With four looks at growing pairs of equal runs, at most one of twenty claims
// anything, by the intervals alone.
func TestLooksDoNotAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	const trials = 400
	for range trials {
		var a, b []float64
		claimed := false
		for n := 1; n <= 12; n++ {
			a, b = append(a, math.Exp(0.2*random.NormFloat64())), append(b, math.Exp(0.2*random.NormFloat64()))
			if n == 3 || n == 5 || n == 8 || n == 12 {
				d, _ := Paired(a, b, 4)
				claimed = claimed || d.Low > 0 || d.High < 0
			}
		}
		if claimed {
			wrong++
		}
	}
	if wrong > trials/20 {
		t.Errorf("%d of %d", wrong, trials)
	}
}
