package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/kerneltest"
)

// referenceAngles follows the formulas of the conformance set's README with
// Go's math package.
func referenceAngles(s RopeSpec, pos int) (theta []float64, mag float64) {
	n := float64(s.Dims)
	theta = make([]float64, s.Dims/2)
	mag = 1
	for i := range theta {
		th := float64(pos) * math.Pow(s.Base, -2*float64(i)/n)
		if s.Factors != nil {
			th /= float64(s.Factors[i])
		}
		switch s.Scaling {
		case RopeLinear:
			th /= s.Factor
		case RopeYarn:
			corr := func(b float64) float64 {
				return n * math.Log(float64(s.OrigCtx)/(2*math.Pi*b)) / (2 * math.Log(s.Base))
			}
			lo, hi := max(0, math.Floor(corr(32))), min(n-1, math.Ceil(corr(1)))
			r := 1 - min(1, max(0, (float64(i)-lo)/max(0.001, hi-lo)))
			th = th/s.Factor*(1-r) + th*r
			mag = 1 + 0.1*math.Log(s.Factor)
			if s.Magnitude != 0 {
				mag = s.Magnitude
			}
			if s.AttnFactor != 0 {
				mag *= s.AttnFactor
			}
		}
		theta[i] = th
	}
	return theta, mag
}

func TestRopeFollowsTheFormulas(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	factors := func(n int) []float32 {
		f := make([]float32, n)
		for i := range f {
			f[i] = 1 + float32(i)
		}
		f[n-1] = 1e30 // gemma4: not turned
		return f
	}
	for name, s := range map[string]RopeSpec{
		"neox":              {Kind: RopeNeox, Dims: 128, Base: 1e6},
		"norm":              {Kind: RopeNorm, Dims: 64, Base: 10000},
		"neox partial":      {Kind: RopeNeox, Dims: 20, Base: 10000},
		"norm factors":      {Kind: RopeNorm, Dims: 16, Base: 500000, Factors: factors(8)},
		"linear factors":    {Kind: RopeNorm, Dims: 16, Base: 10000, Factors: factors(8), Scaling: RopeLinear, Factor: 4},
		"yarn":              {Kind: RopeNeox, Dims: 32, Base: 1e6, Scaling: RopeYarn, Factor: 4, OrigCtx: 64},
		"yarn gpt-oss":      {Kind: RopeNeox, Dims: 64, Base: 150000, Scaling: RopeYarn, Factor: 32, OrigCtx: 4096},
		"yarn attn factor":  {Kind: RopeNeox, Dims: 64, Base: 150000, Scaling: RopeYarn, Factor: 32, OrigCtx: 4096, AttnFactor: 0.7},
		"yarn deepseek":     {Kind: RopeNorm, Dims: 64, Base: 10000, Scaling: RopeYarn, Factor: 40, OrigCtx: 4096, Magnitude: 1},
		"yarn tiny context": {Kind: RopeNeox, Dims: 16, Base: 10000, Scaling: RopeYarn, Factor: 2, OrigCtx: 4},
	} {
		r, err := NewRope(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const headDim, heads = 128, 3
		for _, pos := range []int{0, 1, 23, 4097, 131071} {
			table := make([]float32, r.TableLen(3))
			r.Table(table, pos, 3)
			for k := range 3 {
				x := kerneltest.Randoms(rng, heads*headDim, 2)
				got := append([]float32(nil), x...)
				r.Apply(got, headDim, table[k*r.dims:][:r.dims])
				theta, mag := referenceAngles(s, pos+k)
				want := make([]float64, len(x))
				for i := range x {
					want[i] = float64(x[i])
				}
				for h := range heads {
					for i, th := range theta {
						a, b := h*headDim+i, h*headDim+i+s.Dims/2
						if s.Kind == RopeNorm {
							a, b = h*headDim+2*i, h*headDim+2*i+1
						}
						sin, cos := math.Sincos(th)
						want[a] = mag * (float64(x[a])*cos - float64(x[b])*sin)
						want[b] = mag * (float64(x[a])*sin + float64(x[b])*cos)
					}
				}
				for i := range want {
					if math.Abs(float64(got[i])-want[i]) > 2e-6 {
						t.Fatalf("%s: position %d entry %d is %v, want %v", name, pos+k, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestRopeTableDoesNotDependOnTheBatch(t *testing.T) {
	r, err := NewRope(RopeSpec{Dims: 48, Base: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]float32, r.TableLen(50))
	r.Table(whole, 7, 50)
	one := make([]float32, r.TableLen(1))
	for p := range 50 {
		r.Table(one, 7+p, 1)
		for i, v := range one {
			if v != whole[p*48+i] {
				t.Fatalf("position %d entry %d differs", 7+p, i)
			}
		}
	}
}

func TestRopeRefusesNonsense(t *testing.T) {
	for _, s := range []RopeSpec{
		{Dims: 0, Base: 1e4}, {Dims: 7, Base: 1e4}, {Dims: 8}, {Dims: 8, Base: math.NaN()}, {Dims: 8, Base: math.Inf(1)}, {Dims: 8, Base: -1},
		{Dims: 8, Base: 1e4, Factors: []float32{1, 2}}, {Dims: 2, Base: 1e4, Factors: []float32{0}},
		{Dims: 8, Base: 1e4, Scaling: RopeLinear}, {Dims: 8, Base: 1e4, Scaling: RopeYarn, Factor: 2},
		{Dims: 8, Base: 1e4, Kind: 9}, {Dims: 8, Base: 1e4, Scaling: 9, Factor: 1},
	} {
		if _, err := NewRope(s); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}
