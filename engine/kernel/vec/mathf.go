package vec

import "math"

// The functions here give the same bits on every processor: each product is
// rounded to float32 before it is added, so that no compiler may fuse the two,
// and the SIMD forms follow them operation by operation.

const (
	expHigh = 89   // exp of more is infinite
	expLow  = -104 // exp of less is 0
	log2e   = 1.44269504088896341

	// ln 2 in two parts. The first has 9 bits, so that its product with an
	// exponent is exact.
	ln2High = 355.0 / 512
	ln2Low  = math.Ln2 - ln2High

	// RoundMagic is 1.5 * 2^23: adding it rounds a float32 of less than 2^22 to
	// an integer, which then stands in the low bits.
	RoundMagic = 12582912

	// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2, interpolated at Chebyshev nodes:
	// the relative error of e^r is below 0.2 * 2^-24.
	expC2 = 0.5
	expC3 = 0.16666576266288757
	expC4 = 0.041666556149721146
	expC5 = 0.008363203145563602
	expC6 = 0.0013926213141530752
)

// Exp32 returns e^x to within 2 units of the last place, with the exact limits
// 0 and +Inf. NaN gives NaN.
func Exp32(x float32) float32 {
	if x > expHigh {
		x = expHigh
	}
	if x < expLow {
		x = expLow
	}
	t := float32(x*log2e) + RoundMagic
	k := t - RoundMagic
	r := x - float32(k*ln2High)
	r -= float32(k * ln2Low)
	p := float32(r*expC6) + expC5
	p = float32(p*r) + expC4
	p = float32(p*r) + expC3
	p = float32(p*r) + expC2
	p = float32(float32(r*r)*p) + r
	p++
	// 2^k in two factors, since the scale alone may be out of range where the
	// result is not.
	n := int32(math.Float32bits(t)) - int32(math.Float32bits(RoundMagic))
	half := n >> 1
	p *= math.Float32frombits(uint32(half+127) << 23)
	return p * math.Float32frombits(uint32(n-half+127)<<23)
}

// Sigmoid32 returns 1 / (1 + e^-x).
func Sigmoid32(x float32) float32 { return 1 / (1 + Exp32(-x)) }

// Silu32 returns x * Sigmoid32(x), as a quotient.
func Silu32(x float32) float32 { return x / (1 + Exp32(-x)) }

// Gelu32 returns the tanh form of GELU, x/2 * (1 + tanh(y)) with
// y = sqrt(2/pi) * (x + 0.044715 x^3), as the equal x / (1 + e^-2y).
func Gelu32(x float32) float32 {
	const c = 2 * 0.79788456
	cube := float32(float32(float32(x*x)*x) * 0.044715)
	return x / (1 + Exp32(float32(-c*(x+cube))))
}

// The float64 functions below serve the tables of RoPE. Go's math package is
// not the same everywhere: some processors have it in assembly, and compilers
// fuse inside it.

// Coefficients of the Taylor series of sin(r)/r and cos(r) in r^2, without
// their leading 1, the highest power first.
var (
	sinTerms = [8]float64{1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800,
		1. / 362880, -1. / 5040, 1. / 120, -1. / 6}
	cosTerms = [8]float64{1. / 20922789888000, -1. / 87178291200, 1. / 479001600, -1. / 3628800,
		1. / 40320, -1. / 720, 1. / 24, -1. / 2}
)

// sincos returns sin and cos of x for |x| < 2^26, to about 1e-16.
func sincos(x float64) (sin, cos float64) {
	// pi/2 in three parts. The first two have 27 bits, so that their products
	// with k < 2^26 are exact.
	const (
		p1 = 0x1.921fb54p+0
		p2 = 0x1.10b461p-30
		p3 = 0x1.a62633145c06ep-58
	)
	k := math.RoundToEven(float64(x * (2 / math.Pi)))
	r := x - float64(k*p1)
	r -= float64(k * p2)
	r -= float64(k * p3)
	// Taylor series: with |r| <= pi/4 the first terms left out are below 1e-17.
	z := float64(r * r)
	var s, c float64
	for i := range sinTerms {
		s = float64((s + sinTerms[i]) * z)
		c = float64((c + cosTerms[i]) * z)
	}
	s = r + float64(r*s)
	c++
	switch int64(k) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// exp64 returns e^x for |x| < 700, to about 1e-16 of it.
func exp64(x float64) float64 {
	const (
		high = 0x1.62e42fep-1 // ln 2 in two parts; the first has 29 bits
		low  = 0x1.f473de6af278fp-30
	)
	k := math.RoundToEven(float64(x / math.Ln2))
	r := x - float64(k*high)
	r -= float64(k * low)
	sum := 0.0
	for i := 16; i > 0; i-- {
		sum = float64((1 + sum) * r / float64(i))
	}
	return (1 + sum) * math.Float64frombits(uint64(int64(k)+1023)<<52)
}

// log64 returns the natural logarithm of a normal x > 0, to about 1e-16 of it
// or of 1, whichever is larger.
func log64(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	// ln m = 2 artanh(s); |s| < 0.172, so s^25/25 is the first term left out.
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for i := 23; i > 1; i -= 2 {
		sum = float64((sum + 1/float64(i)) * z)
	}
	return float64(2*s) + float64(2*s*sum) + float64(float64(e)*math.Ln2)
}
