package vec

import (
	"errors"
	"fmt"
	"math"
)

// RopeKind says which entries of a head turn together.
type RopeKind uint8

const (
	RopeNeox RopeKind = iota // entry i with entry i + dims/2
	RopeNorm                 // entry 2i with entry 2i + 1
)

// RopeScaling says how angles are changed to reach beyond the context that the
// model was trained on.
type RopeScaling uint8

const (
	RopeUnscaled RopeScaling = iota
	RopeLinear               // every angle divided by the factor
	RopeYarn                 // fast pairs as they are, slow ones divided, a ramp between
)

// RopeSpec is what a model says about its rotary position embedding. Formulas
// and defaults are those of llama.cpp.
type RopeSpec struct {
	Kind    RopeKind
	Dims    int       // entries of a head that turn, the first ones; even
	Base    float64   // rope.freq_base
	Factors []float32 // rope_freqs.weight: divides the angle of each pair; nil: none

	Scaling    RopeScaling
	Factor     float64 // rope.scaling.factor
	OrigCtx    int     // rope.scaling.original_context_length (YaRN)
	AttnFactor float64 // rope.scaling.attn_factor (YaRN); 0 stands for 1

	// Magnitude multiplies cosines and sines. With YaRN it replaces 1 + 0.1 ln(Factor),
	// for families that put it elsewhere. 0: 1, or with YaRN no replacement.
	Magnitude float64
}

// Rope turns head vectors by angles that grow with the position.
type Rope struct {
	kind RopeKind
	dims int
	freq []float64 // angle of each pair per position
	mag  float64
}

// NewRope prepares the frequencies.
func NewRope(s RopeSpec) (*Rope, error) {
	switch {
	case s.Dims < 2 || s.Dims%2 != 0:
		return nil, fmt.Errorf("rope over %d entries: want an even number of them", s.Dims)
	case !(s.Base > 0) || math.IsInf(s.Base, 0):
		return nil, fmt.Errorf("rope with base %v: want a positive number", s.Base)
	case s.Factors != nil && len(s.Factors) < s.Dims/2:
		return nil, fmt.Errorf("rope over %d entries has only %d frequency factors", s.Dims, len(s.Factors))
	case s.Kind > RopeNorm || s.Scaling > RopeYarn:
		return nil, errors.New("unknown kind of rope or of rope scaling")
	case s.Scaling != RopeUnscaled && (!(s.Factor > 0) || math.IsInf(s.Factor, 0)):
		return nil, fmt.Errorf("rope scaling by %v: want a positive number", s.Factor)
	case s.Scaling == RopeYarn && s.OrigCtx < 1:
		return nil, fmt.Errorf("yarn rope scaling with an original context of %d", s.OrigCtx)
	}
	for i, f := range s.Factors {
		if !(f > 0) {
			return nil, fmt.Errorf("rope frequency factor %d is %v: want a positive number", i, f)
		}
	}
	r := &Rope{kind: s.Kind, dims: s.Dims, freq: make([]float64, s.Dims/2), mag: 1}
	if s.Magnitude != 0 {
		r.mag = s.Magnitude
	}
	lnBase := log64(s.Base)
	var lo, width float64
	if s.Scaling == RopeYarn {
		lo = max(0, math.Floor(yarnCorner(32, s, lnBase)))
		hi := min(float64(s.Dims-1), math.Ceil(yarnCorner(1, s, lnBase)))
		width = max(0.001, hi-lo)
		r.mag = 1 + float64(0.1*log64(s.Factor))
		if s.Magnitude != 0 {
			r.mag = s.Magnitude
		}
		if s.AttnFactor != 0 {
			r.mag *= s.AttnFactor
		}
	}
	for i := range r.freq {
		f := exp64(float64(-2*float64(i)/float64(s.Dims)) * lnBase)
		if s.Factors != nil {
			f /= float64(s.Factors[i])
		}
		switch s.Scaling {
		case RopeLinear:
			f /= s.Factor
		case RopeYarn:
			keep := 1 - min(max((float64(i)-lo)/width, 0), 1)
			f = float64(f/s.Factor*(1-keep)) + float64(f*keep)
		}
		r.freq[i] = f
	}
	return r, nil
}

// yarnCorner returns the pair that turns the given number of times over the
// original context (Peng et al., YaRN, arXiv 2309.00071, section 3.2).
func yarnCorner(turns float64, s RopeSpec, lnBase float64) float64 {
	return float64(s.Dims) * log64(float64(s.OrigCtx)/(turns*2*math.Pi)) / (2 * lnBase)
}

// Dims returns how many entries of a head turn.
func (r *Rope) Dims() int { return r.dims }

// TableLen returns the length of a Table of n positions.
func (r *Rope) TableLen(n int) int { return n * r.dims }

// Table fills table with the cosines and sines of positions pos to pos+n-1. A
// position takes Dims entries: the cosine of each pair, then the sine of each.
// The table serves all layers and heads with this Rope.
func (r *Rope) Table(table []float32, pos, n int) {
	half := r.dims / 2
	for t := range n {
		row := table[t*r.dims:][:r.dims]
		for i, f := range r.freq {
			sin, cos := sincos(float64(float64(pos+t) * f))
			row[i] = float32(float64(cos * r.mag))
			row[half+i] = float32(float64(sin * r.mag))
		}
	}
}

// Apply turns every head of x, [heads x headDim] of one position, in place, by
// that position's row of a Table. Entries of a head beyond Dims stay. headDim is
// at least Dims.
func (r *Rope) Apply(x []float32, headDim int, row []float32) {
	half := r.dims / 2
	cos, sin := row[:half], row[half:r.dims]
	for ; len(x) > 0; x = x[headDim:] {
		if r.kind == RopeNeox {
			best.turnNeox(x[:half], x[half:r.dims], cos, sin)
		} else {
			turnNorm(x[:r.dims], cos, sin)
		}
	}
}

func (on ops) turnNeox(lo, hi, cos, sin []float32) {
	for i := on.ropeNeox(lo, hi, cos, sin); i < len(cos); i++ {
		a, b := lo[i], hi[i]
		lo[i] = float32(a*cos[i]) - float32(b*sin[i])
		hi[i] = float32(a*sin[i]) + float32(b*cos[i])
	}
}

func turnNorm(x, cos, sin []float32) {
	sin = sin[:len(cos)]
	for i, c := range cos {
		a, b := x[2*i], x[2*i+1]
		x[2*i] = float32(a*c) - float32(b*sin[i])
		x[2*i+1] = float32(a*sin[i]) + float32(b*c)
	}
}
