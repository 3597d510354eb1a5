package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps returns by how many units of the last place of want a float32 differs.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	unit := float64(math.Nextafter32(float32(math.Abs(float64(w))), math.MaxFloat32)) - math.Abs(float64(w))
	return math.Abs(float64(got)-want) / unit
}

func TestExp32IsWithinTwoUlps(t *testing.T) {
	worst, at := 0.0, float32(0)
	for i := -1_000_000; i < 875_000; i++ {
		x := float32(i) * (1.0 / 10000) // -100 to 87.5
		if e := ulps(Exp32(x), math.Exp(float64(x))); e > worst {
			worst, at = e, x
		}
	}
	t.Logf("worst error %.2f ulp at %v", worst, at)
	if worst > 1.6 {
		t.Fatalf("Exp32(%v) is off by %.2f ulp", at, worst)
	}
}

func TestExp32Limits(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct{ x, want float32 }{
		{0, 1}, {float32(math.Copysign(0, -1)), 1}, {inf, inf}, {-inf, 0}, {89, inf}, {1e30, inf}, {-104, 0}, {-1e30, 0},
		{88.72283, 3.4027982e38}, {1e-30, 1},
	} {
		if got := Exp32(c.x); got != c.want && ulps(got, float64(c.want)) > 2 {
			t.Errorf("Exp32(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if got := Exp32(float32(math.NaN())); got == got {
		t.Errorf("Exp32(NaN) = %v", got)
	}
	// The smallest results are subnormal, and do not jump to 0.
	if got, want := Exp32(-103), float32(math.Exp(-103)); got != want {
		t.Errorf("Exp32(-103) = %v, want %v", got, want)
	}
}

func TestSigmoidFamily(t *testing.T) {
	for i := -2000; i <= 2000; i++ {
		x := float64(i) / 50
		sig := 1 / (1 + math.Exp(-x))
		y := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		for _, c := range []struct {
			name      string
			got       float32
			want, tol float64
		}{
			{"sigmoid", Sigmoid32(float32(x)), sig, 3e-7},
			{"silu", Silu32(float32(x)), x * sig, 3e-7 * math.Abs(x)},
			{"gelu", Gelu32(float32(x)), x / 2 * (1 + math.Tanh(y)), 1e-6 * max(1, math.Abs(x))},
		} {
			if d := math.Abs(float64(c.got) - c.want); d > c.tol+1e-30 {
				t.Errorf("%s(%v) = %v, want %v", c.name, x, c.got, c.want)
			}
		}
	}
}

func TestSincos(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(x float64) {
		sin, cos := sincos(x)
		ws, wc := math.Sincos(x)
		if math.Abs(sin-ws) > 3e-16 || math.Abs(cos-wc) > 3e-16 {
			t.Fatalf("sincos(%v) = %v, %v, want %v, %v", x, sin, cos, ws, wc)
		}
	}
	for i := range 200_000 {
		check(rng.Float64() * math.Pow(2, float64(i%50)-25))
		check(-rng.Float64() * 100)
		check(float64(i) * (math.Pi / 4))
	}
}

func TestExpAndLog64(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		x := rng.Float64()*80 - 40
		if got, want := exp64(x), math.Exp(x); math.Abs(got/want-1) > 1e-15 {
			t.Fatalf("exp64(%v) = %v, want %v", x, got, want)
		}
		y := math.Exp(x)
		if got, want := log64(y), math.Log(y); math.Abs(got-want) > 3e-16*max(1, math.Abs(want)) {
			t.Fatalf("log64(%v) = %v, want %v", y, got, want)
		}
	}
}

// These bits are the same on every processor. They were recorded from this
// code: what the test guards is that amd64, arm64 and the generic path agree.
func TestBitsAreTheSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var h uint64 = 14695981039346656037
	mix := func(b uint64) {
		h = (h ^ b) * 1099511628211
	}
	for range 50_000 {
		x := float32(rng.Float64()*200 - 100)
		mix(uint64(math.Float32bits(Exp32(x))))
		mix(uint64(math.Float32bits(Silu32(x))))
		mix(uint64(math.Float32bits(Gelu32(x))))
		s, c := sincos(rng.Float64() * 1e5)
		mix(math.Float64bits(s))
		mix(math.Float64bits(c))
		mix(math.Float64bits(exp64(float64(x))))
		mix(math.Float64bits(log64(rng.Float64() * 1e4)))
	}
	const want = 0x1ada45149e8dc908
	if h != want {
		t.Fatalf("the functions' bits hash to %#x, want %#x", h, uint64(want))
	}
}
