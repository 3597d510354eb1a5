package synth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"bmoe/engine/quant"
)

// mix says which type the matrices of a model have.
type mix struct {
	fileType uint32     // general.file_type, llama.cpp's enum llama_ftype
	base     quant.Type // of all matrices but the exceptions
	more     quant.Type // of the head, and of the values and down projections of the layers that moreBits picks
	experts  quant.Type // of the experts
}

func pure(fileType uint32, t quant.Type) mix { return mix{fileType, t, t, t} }

// mixes holds the types by name. Q4_K_M and MXFP4_MOE are llama.cpp's mixes
// (llama-quant.cpp); the others have every matrix in one type.
var mixes = map[string]mix{
	"F32": pure(0, quant.F32), "F16": pure(1, quant.F16), "BF16": pure(32, quant.BF16),
	"Q4_0": pure(2, quant.Q4_0), "Q4_1": pure(3, quant.Q4_1), "Q5_0": pure(8, quant.Q5_0), "Q5_1": pure(9, quant.Q5_1),
	"Q8_0": pure(7, quant.Q8_0), "Q2_K": pure(10, quant.Q2_K), "Q3_K": pure(11, quant.Q3_K), "Q4_K": pure(14, quant.Q4_K),
	"Q5_K": pure(16, quant.Q5_K), "Q6_K": pure(18, quant.Q6_K), "IQ4_NL": pure(25, quant.IQ4_NL), "MXFP4": pure(38, quant.MXFP4),
	"Q4_K_M":    {15, quant.Q4_K, quant.Q6_K, quant.Q4_K},
	"MXFP4_MOE": {38, quant.Q8_0, quant.Q8_0, quant.MXFP4},
}

// Types returns the names that Spec.Type may have, sorted.
func Types() []string {
	var names []string
	for name := range mixes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func mixOf(name string) (mix, error) {
	m, ok := mixes[name]
	if !ok {
		return m, fmt.Errorf("unknown type %q (known: %s)", name, strings.Join(Types(), ", "))
	}
	return m, nil
}

// moreBits reports whether llama.cpp's mixes give a layer's values and down
// projection the better type: the first and last eighth of the layers, and
// every third between.
func moreBits(layer, layers int) bool {
	eighth := layers / 8
	return layer < eighth || layer >= 7*layers/8 || (layer-eighth)%3 == 2
}

// weight is a tensor to be made.
type weight struct {
	name string
	kind quant.Type
	dims []int64 // row length first
	mean float64 // of its elements; not 0 only for F32
	std  float64
	rows func(row int64) float64 // factor on a row's std, or nil for 1
	cols []span                  // nil: all columns are alike
}

// span is a run of columns of a weight with a size or a content of its own.
type span struct {
	n      int64   // columns
	factor float64 // on the mean and the std
	// Where choose is set, a row's values are those that it picks of table.
	choose func(row int64) int
	table  [][]float32 // [any x n]
}

// The scales below keep activations near 1 wherever a norm does not do it. A
// product of a vector of n elements of size 1 with rows of size g/sqrt(n) has
// size g.
const (
	logitStd         = 3.0  // of the logits: a clear winner, but no certainty
	qkNorm           = 1.6  // of the norms on queries and keys: attention looks at few positions, so the text depends on the context and does not cycle
	attnStd          = 0.6  // of what attention then returns for values of size 1
	routerStd        = 1.5  // of the router's logits
	routerSkew       = 0.35 // of the logarithm of an expert's popularity factor, as real routers have favourites
	gateStd          = 1.2  // of the gate's input to SiLU
	hiddenStd        = 0.7  // of silu(gate) * up for that gate and an up of size 1
	hiddenClampedStd = 1.1  // of gpt-oss's activation for the same
	biasStd          = 0.2  // of a bias, where its product has size 1
	residualStd      = 4.0  // of the residual stream after the last layer; the embedding is small beside it, or a tied head would repeat the last token
	quietTokens      = 1. / 16
	hiddenSquaredStd = 1.2  // of relu(up)^2 for an up of size 1
	gatedStd         = 0.54 // of the sigmoid of a gate of size 1, as a factor
	bothShare        = 0.7  // of each of two that add to the residual stream together
	stepBias         = -2.0 // of the step by which a recurrent state fades: it remembers some ten tokens
)

// maker lists a model's tensors in file order.
type maker struct {
	*Spec
	mix
	list   []weight
	branch float64 // size of what each block adds to the residual stream

	// the layer in progress
	layer  int
	values quant.Type // of the values' matrix
	down   quant.Type // of the down projections
}

// over returns the size of weights by which a vector of n entries of size 1 makes
// entries of size g.
func over(g float64, n int) float64 { return g / math.Sqrt(float64(n)) }

// weights lists a model's tensors in file order.
func (s *Spec) weights() ([]weight, error) {
	kinds, err := mixOf(s.Type)
	if err != nil {
		return nil, err
	}
	m := &maker{Spec: s, mix: kinds, branch: over(residualStd, 2*s.Layers)}
	if families[s.arch()].single {
		m.branch = over(residualStd, s.Layers)
	}
	vocab := int64(s.Vocab)
	// Control tokens are nearly mute, so that a run of n tokens is not cut
	// short by a random end of text.
	quiet := func(row int64) float64 {
		if row >= vocab-controls {
			return quietTokens
		}
		return 1
	}
	embedding := weight{name: "token_embd.weight", kind: m.base, dims: []int64{int64(s.Embd), vocab}, std: over(logitStd, s.Embd), rows: quiet}
	if s.Tied {
		embedding.kind = m.more
	}
	m.list = append(m.list, embedding)
	if m.Streams > 0 {
		m.mixer("output_hc", false)
	} else {
		m.norm(cmp.Or(families[s.arch()].norm, "output_norm")+".weight", s.Embd, 1)
	}
	if !s.Tied {
		head := embedding
		head.name, head.kind = "output.weight", m.more
		m.list = append(m.list, head)
	}
	if m.NgramRows > 0 {
		table := weight{name: "per_layer_token_embd.weight", kind: quant.F16, dims: []int64{int64(s.Embd / ngrams), int64(s.NgramRows)}, std: 1}
		if m.base != quant.F32 && m.base != quant.F16 && table.dims[0]%int64(quant.Q8_0.BlockLen()) == 0 {
			table.kind = quant.Q8_0
		}
		m.list = append(m.list, table)
	}
	if f := families[s.arch()]; f.head != nil {
		f.head(m)
	}
	t, err := s.topics(m.list)
	if err != nil {
		return nil, err
	}
	for i := range s.Layers {
		first := len(m.list)
		m.layer, m.values, m.down = i, m.base, m.experts
		if m.more != m.base && moreBits(i, s.Layers) {
			m.values, m.down = m.more, m.more
		}
		families[s.arch()].layer(m)
		if t != nil {
			t.layer(i, m.list[first:])
		}
	}
	return m.list, nil
}

// name returns the name of a tensor of the layer.
func (m *maker) name(tensor string) string { return fmt.Sprintf("blk.%d.%s", m.layer, tensor) }

// matrix adds a matrix of the layer.
func (m *maker) matrix(tensor string, kind quant.Type, cols, rows int, std float64) {
	m.list = append(m.list, weight{name: m.name(tensor + ".weight"), kind: kind, dims: []int64{int64(cols), int64(rows)}, std: std})
}

// perExpert adds one matrix of all experts of the layer.
func (m *maker) perExpert(tensor string, kind quant.Type, cols, rows int, std float64) {
	m.list = append(m.list, weight{name: m.name(tensor + ".weight"), kind: kind, dims: []int64{int64(cols), int64(rows), int64(m.Experts)}, std: std})
}

// norm adds the weights of a norm, by their full name.
func (m *maker) norm(name string, n int, mean float64) {
	m.list = append(m.list, weight{name: name, kind: quant.F32, dims: []int64{int64(n)}, mean: mean, std: math.Abs(mean) / 10})
}

// norms adds an F32 tensor of the layer around a mean, by its whole name.
func (m *maker) norms(tensor string, mean float64, dims ...int) {
	m.floats(tensor, math.Abs(mean)/10, dims...)
	m.list[len(m.list)-1].mean = mean
}

// floats adds an F32 tensor of the layer, by its whole name.
func (m *maker) floats(tensor string, std float64, dims ...int) {
	w := weight{name: m.name(tensor), kind: quant.F32, std: std}
	for _, d := range dims {
		w.dims = append(w.dims, int64(d))
	}
	m.list = append(m.list, w)
}

// popularity returns the factors on the router's rows of a layer. A row that is
// twice as long is among the winners more often.
func (s *Spec) popularity(layer int) func(row int64) float64 {
	skew := routerSkew
	if s.Topics > 0 {
		skew = topicSkew
	}
	return func(row int64) float64 {
		r := newRand(s.Seed, ^uint64(layer), uint64(row))
		f := math.Exp(skew * normals[r.next()>>(64-normalBits)])
		return math.Round(f*(1<<16)) / (1 << 16) // platforms disagree on the last bit of Exp
	}
}
