package stats

import "math"

// Student returns the q-quantile (0.5 to 1) of Student's t distribution with so
// many degrees of freedom. With t = sqrt(n)*tan(a) the distribution function is an
// integral of cos(a)^(n-1), which is smooth and ends at pi/2; it is inverted by
// bisection.
func Student(freedom int, q float64) float64 {
	if freedom < 1 || q < 0.5 || q >= 1 {
		return math.NaN()
	}
	area := func(a float64) float64 { // Simpson's rule
		const steps = 128
		h := a / steps
		f := func(x float64) float64 { return math.Pow(math.Cos(x), float64(freedom-1)) }
		s := f(0) + f(a)
		for i := 1; i < steps; i++ {
			s += f(float64(i)*h) * float64(2+2*(i%2))
		}
		return s * h / 3
	}
	whole := area(math.Pi / 2)
	low, high := 0.0, math.Pi/2
	for range 45 {
		if mid := (low + high) / 2; 0.5+0.5*area(mid)/whole < q {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Sqrt(float64(freedom)) * math.Tan((low+high)/2)
}

// pairedLeast is how many pairs a claim needs: of two the interval spans
// everything.
const pairedLeast = 3

// Paired holds runs against each other that were made in turns: base[i] and
// other[i], speeds in any unit, belong to one round, so that what drifts from round
// to round is in both. The interval is Student's over the logarithms of the pairs'
// ratios. looks is how often the same pairs are looked at while they grow: each look
// must then be surer, by Bonferroni's rule, for all of them together to be 95 % sure.
// Half is half the interval's width, as a share of the base's speed; infinite while
// there are too few pairs.
func Paired(base, other []float64, looks int) (d Difference, half float64) {
	n := min(len(base), len(other))
	if n < pairedLeast {
		return Difference{Verdict: NotComparable, Why: "fewer than three undisturbed pairs"}, math.Inf(1)
	}
	ratios := make([]float64, n)
	for i := range ratios {
		ratios[i] = math.Log(other[i] / base[i])
	}
	mean := Mean(ratios)
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return Difference{Verdict: NotComparable, Why: "a run's time is not known"}, math.Inf(1)
	}
	var squares float64
	for _, r := range ratios {
		squares += (r - mean) * (r - mean)
	}
	wide := Student(n-1, 1-0.025/float64(max(looks, 1))) * math.Sqrt(squares/float64(n-1)/float64(n))
	d = Difference{Low: math.Expm1(mean - wide), High: math.Expm1(mean + wide)}
	switch by := math.Expm1(mean); {
	case d.Low > 0 && by >= claimChange:
		d.Verdict = Faster
	case d.High < 0 && by <= -claimChange:
		d.Verdict = Slower
	}
	return d, (d.High - d.Low) / 2
}
