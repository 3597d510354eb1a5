package model

import (
	"fmt"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
)

// experts is the weights of a layer's routed experts.
type experts struct {
	gate, up, down expertMatrix        // gate has no weight where experts are not gated
	ins            []*Weight           // those that take the experts' input
	projections    []expert.Projection // as they are read; down is the last
}

// expertMatrix is one matrix of every expert of a layer. A fused tensor holds two:
// they share its projection, one after the other.
type expertMatrix struct {
	*Weight        // of the tensor: all experts, and both matrices of a fused one
	projection int // of expert.Layout, in which the matrix lies
	row0, rows int // of the tensor's rows for an expert, those that are the matrix
	stride     int // rows of an expert in the tensor
}

// one returns the matrix of an expert without what differs between them.
func (m *expertMatrix) one(num kernel.Numerics) kernel.Gated {
	return kernel.Gated{Matrix: kernel.Matrix{Type: m.Type, Cols: m.Cols, Rows: m.rows}, Form: formOf(m.Weight, num)}
}

// data returns the matrix's bytes within its projection's.
func (m *expertMatrix) data(projection []byte) []byte {
	rb := m.RowBytes()
	return projection[m.row0*rb:][:m.rows*rb]
}

// affine returns the scale and bias of expert e's product.
func (m *expertMatrix) affine(e int32) kernel.Affine {
	var a kernel.Affine
	if m.scale != nil {
		i := int(e) % len(m.scale.F32) // one number may stand for all
		a.Scale = m.scale.F32[i : i+1]
	}
	if m.bias != nil {
		a.Bias = m.bias.F32[int(e)*m.stride+m.row0:][:m.rows]
	}
	return a
}

// experts returns the weights of a layer's n experts, whose tensors begin with
// prefix: gate and up [embd x ff], fused or not, and down [ff x embd]. Experts that are
// not gated have no gate.
func (l *loader) experts(prefix string, embd, ff, n int, gated bool) experts {
	var e experts
	if n < 1 { // a key that contradicts the tensors: every layer's router says how many there are
		l.fail(fmt.Errorf("%sexpert_count is %d, but the file has %sffn_gate_inp.weight", l.prefix, n, prefix))
		return e
	}
	if !gated {
		e.up = expertMatrix{l.streamed(prefix+"ffn_up_exps", embd, ff, n), 0, 0, ff, ff}
		e.down = expertMatrix{l.streamed(prefix+"ffn_down_exps", ff, embd, n), 1, 0, embd, embd}
		e.ins, e.projections = []*Weight{e.up.Weight}, projections(n, e.up.Weight, e.down.Weight)
		return e
	}
	if fused := prefix + "ffn_gate_up_exps"; l.has(fused + ".weight") {
		for _, stem := range []string{"ffn_gate_exps", "ffn_up_exps"} {
			if l.has(prefix + stem + ".weight") {
				l.fail(fmt.Errorf("the file has both %s.weight and %s%s.weight", fused, prefix, stem))
			}
		}
		w := l.streamed(fused, embd, 2*ff, n)
		e.gate = expertMatrix{w, 0, 0, ff, 2 * ff}
		e.up = expertMatrix{w, 0, ff, ff, 2 * ff}
		e.down = expertMatrix{l.streamed(prefix+"ffn_down_exps", ff, embd, n), 1, 0, embd, embd}
		e.ins, e.projections = []*Weight{w}, projections(n, w, e.down.Weight)
		return e
	}
	e.gate = expertMatrix{l.streamed(prefix+"ffn_gate_exps", embd, ff, n), 0, 0, ff, ff}
	e.up = expertMatrix{l.streamed(prefix+"ffn_up_exps", embd, ff, n), 1, 0, ff, ff}
	e.down = expertMatrix{l.streamed(prefix+"ffn_down_exps", ff, embd, n), 2, 0, embd, embd}
	e.ins, e.projections = []*Weight{e.gate.Weight, e.up.Weight}, projections(n, e.gate.Weight, e.up.Weight, e.down.Weight)
	return e
}

// streamed returns one tensor of all experts of a layer, [cols x rows x n], with
// the scales, one for each expert or one for all, and the biases [rows x n] that
// the file has for it.
func (l *loader) streamed(stem string, cols, rows, n int) *Weight {
	w := l.weight(stem+".weight", cols, rows, n)
	w.Streamed = true
	l.supported(w)
	w.bias = l.floats(stem+".bias", rows, n)
	scales := n
	if t, ok := l.file.Tensor(stem + ".scale"); ok && len(t.Dims) == 1 && t.Dims[0] == 1 {
		scales = 1
	}
	w.scale = l.floats(stem+".scale", scales)
	return w
}

// projections returns where the tensors of a layer's experts lie.
func projections(experts int, ws ...*Weight) []expert.Projection {
	var ps []expert.Projection
	for _, w := range ws {
		ps = append(ps, expert.Projection{Name: w.Name, File: w.Range.Shard, Offset: w.Range.Offset, Bytes: w.Range.Size / int64(experts)})
	}
	return ps
}
