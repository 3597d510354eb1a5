package model

import (
	"fmt"

	"bmoe/engine/kernel/vec"
)

// rotary is a rotary embedding with the angles of a batch. Layers that turn alike
// share one, so that the angles are computed once.
type rotary struct {
	spec    vec.RopeSpec
	factors *Weight // [dims/2] divides the angle of each pair; nil: none
	// long takes the place of factors in contexts longer than short, the one that the
	// model was first trained on; nil: nothing does.
	long  *Weight
	short int
	*vec.Rope
	table  []float32
	pos, n int // the batch that table is of
}

// rope returns a family's rotary embedding from the rope.* keys: over the
// first rope.dimension_count entries of a head (dims by default), with the
// scaling that the file asks for.
func (l *loader) rope(kind vec.RopeKind, dims int) *rotary {
	s := vec.RopeSpec{Kind: kind, Dims: l.keyOr("rope.dimension_count", dims), Base: l.floatOr("rope.freq_base", 10000)}
	switch t := l.stringOr("rope.scaling.type", "none"); t {
	case "none", "":
	case "linear":
		s.Scaling, s.Factor = vec.RopeLinear, l.floatOr("rope.scaling.factor", 1)
	case "yarn":
		s.Scaling, s.Factor = vec.RopeYarn, l.floatOr("rope.scaling.factor", 1)
		s.OrigCtx = l.keyOr("rope.scaling.original_context_length", l.keyOr("context_length", 4096))
		s.AttnFactor = l.floatOr("rope.scaling.attn_factor", 1)
	case "longrope":
		s.Magnitude = l.floatOr("rope.scaling.attn_factor", 1)
		r := l.checkedRope(s, dims, ropeKeys)
		r.short = l.keyOr("rope.scaling.original_context_length", l.keyOr("context_length", 4096))
		r.factors, r.long = l.vector("rope_factors_short.weight", s.Dims/2), l.vector("rope_factors_long.weight", s.Dims/2)
		return r
	default:
		l.fail(fmt.Errorf("%srope.scaling.type is %q; known: none, linear, yarn, longrope", l.prefix, t))
	}
	return l.checkedRope(s, dims, ropeKeys)
}

// windowRope returns the rotary embedding of a family's windowed layers, which has keys
// of its own, the given base by default, and no scaling.
func (l *loader) windowRope(kind vec.RopeKind, dims int, base float64) *rotary {
	s := vec.RopeSpec{Kind: kind, Dims: l.keyOr("rope.dimension_count_swa", dims), Base: l.floatOr("rope.freq_base_swa", base)}
	return l.checkedRope(s, dims, "rope.dimension_count_swa, freq_base_swa")
}

// ropeKeys are what most ropes are made of.
const ropeKeys = "rope.dimension_count, freq_base, scaling.factor"

// checkedRope returns the rotary embedding of a head of dims entries, which keys of
// the file describe.
func (l *loader) checkedRope(s vec.RopeSpec, dims int, keys string) *rotary {
	if s.Dims > dims {
		l.fail(fmt.Errorf("rope over %d entries of heads of %d (%s%s)", s.Dims, dims, l.prefix, keys))
	}
	if l.err == nil {
		if _, err := vec.NewRope(s); err != nil {
			l.fail(fmt.Errorf("%w (%s%s)", err, l.prefix, keys)) // here, and not when the weights are there
		}
	}
	return &rotary{spec: s}
}

// prepare makes room for the angles of the stream's largest batch, once for all
// layers that share them.
func (r *rotary) prepare(s *stream) (err error) {
	_, err = share(s, r, func() (*rotary, error) {
		if r.factors != nil {
			r.spec.Factors = r.factors.F32
		}
		if r.long != nil && s.ctx > r.short {
			r.spec.Factors = r.long.F32
		}
		if r.Rope, err = vec.NewRope(r.spec); err != nil {
			return nil, err
		}
		r.table, r.n = make([]float32, r.TableLen(s.max)), 0
		return r, nil
	})
	return err
}

func (r *rotary) bytes() int64 { return int64(len(r.table)) * 4 }

// turnTo computes the angles of positions pos to pos+n-1.
func (r *rotary) turnTo(pos, n int) {
	if r.pos != pos || r.n != n {
		r.Table(r.table, pos, n)
		r.pos, r.n = pos, n
	}
}

// row returns the angles of the batch's t-th position.
func (r *rotary) row(t int) []float32 { return r.table[r.TableLen(t):r.TableLen(t+1)] }
