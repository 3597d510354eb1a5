package model

import (
	"fmt"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
)

// rope returns a family's rotary embedding from the rope.* keys: over the
// first rope.dimension_count entries of a head (dims by default), with the
// scaling that the file asks for.
func (l *loader) rope(kind kernel.RopeKind, dims int) (*kernel.Rope, error) {
	s := kernel.RopeSpec{Kind: kind, Dims: l.keyOr("rope.dimension_count", dims), Base: l.floatOr("rope.freq_base", 10000)}
	switch t := l.stringOr("rope.scaling.type", "none"); t {
	case "none", "":
	case "linear":
		s.Scaling, s.Factor = kernel.RopeLinear, l.floatOr("rope.scaling.factor", 1)
	case "yarn":
		s.Scaling, s.Factor = kernel.RopeYarn, l.floatOr("rope.scaling.factor", 1)
		s.OrigCtx = l.keyOr("rope.scaling.original_context_length", l.keyOr("context_length", 4096))
		s.AttnFactor = l.floatOr("rope.scaling.attn_factor", 1)
	default:
		l.fail(fmt.Errorf("%srope.scaling.type is %q; known: none, linear, yarn", l.prefix, t))
	}
	if l.err != nil {
		return nil, l.err
	}
	if s.Dims > dims {
		return nil, fmt.Errorf("rope over %d entries of heads of %d", s.Dims, dims)
	}
	return kernel.NewRope(s)
}

// rowsOf returns the number of rows of a matrix whose shape the metadata does
// not fix, such as the vocabulary's.
func (l *loader) rowsOf(name string) int {
	t, ok := l.file.Tensor(name)
	if !ok {
		l.fail(fmt.Errorf("tensor %s is missing", name))
		return 1
	}
	if len(t.Dims) != 2 || t.Dims[1] > 1<<24 {
		l.fail(fmt.Errorf("tensor %s has shape %v, want a matrix", name, t.Dims))
		return 1
	}
	return int(t.Dims[1])
}

// projections returns where the matrices of a layer's experts lie.
func projections(experts int, ws ...*Weight) []expert.Projection {
	var ps []expert.Projection
	for _, w := range ws {
		ps = append(ps, expert.Projection{Name: w.Name, File: w.Range.Shard, Offset: w.Range.Offset, Bytes: w.Range.Size / int64(experts)})
	}
	return ps
}
