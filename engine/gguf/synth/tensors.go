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
	downs    quant.Type // of the experts' down projections in those layers, if another than more
	mixed    bool       // a matrix whose rows do not fit its type gets another
}

func pure(fileType uint32, t quant.Type) mix {
	return mix{fileType: fileType, base: t, more: t, experts: t}
}

// mixes holds the types by name. Those that end in _M, and MXFP4_MOE, are llama.cpp's
// mixes (llama-quant.cpp). Those that begin with UD are like the dynamic ones that
// people download: few bits for the experts, more for what every token needs. The others
// have every matrix in one type.
var mixes = map[string]mix{
	"F32": pure(0, quant.F32), "F16": pure(1, quant.F16), "BF16": pure(32, quant.BF16),
	"Q4_0": pure(2, quant.Q4_0), "Q4_1": pure(3, quant.Q4_1), "Q5_0": pure(8, quant.Q5_0), "Q5_1": pure(9, quant.Q5_1),
	"Q8_0": pure(7, quant.Q8_0), "Q2_K": pure(10, quant.Q2_K), "Q3_K": pure(11, quant.Q3_K), "Q4_K": pure(14, quant.Q4_K),
	"Q5_K": pure(16, quant.Q5_K), "Q6_K": pure(18, quant.Q6_K), "IQ4_NL": pure(25, quant.IQ4_NL), "MXFP4": pure(38, quant.MXFP4),
	"IQ1_S": pure(24, quant.IQ1_S), "IQ1_M": pure(31, quant.IQ1_M), "IQ2_XXS": pure(19, quant.IQ2_XXS), "IQ2_XS": pure(20, quant.IQ2_XS),
	"IQ2_S": pure(28, quant.IQ2_S), "IQ3_XXS": pure(23, quant.IQ3_XXS), "IQ3_S": pure(26, quant.IQ3_S), "IQ4_XS": pure(30, quant.IQ4_XS),
	"TQ1_0": pure(36, quant.TQ1_0), "TQ2_0": pure(37, quant.TQ2_0), "NVFP4": pure(39, quant.NVFP4),
	"Q4_K_M":     {fileType: 15, base: quant.Q4_K, more: quant.Q6_K, experts: quant.Q4_K, mixed: true},
	"Q5_K_M":     {fileType: 17, base: quant.Q5_K, more: quant.Q6_K, experts: quant.Q5_K, mixed: true},
	"Q3_K_M":     {fileType: 12, base: quant.Q3_K, more: quant.Q5_K, experts: quant.Q3_K, mixed: true},
	"MXFP4_MOE":  {fileType: 38, base: quant.Q8_0, more: quant.Q8_0, experts: quant.MXFP4, mixed: true},
	"UD-IQ1_M":   {fileType: 31, base: quant.Q5_K, more: quant.Q6_K, experts: quant.IQ1_M, downs: quant.IQ2_XXS, mixed: true},
	"UD-IQ2_M":   {fileType: 29, base: quant.Q5_K, more: quant.Q6_K, experts: quant.IQ2_XS, downs: quant.IQ3_XXS, mixed: true},
	"UD-Q3_K_XL": {fileType: 12, base: quant.Q6_K, more: quant.Q8_0, experts: quant.Q3_K, downs: quant.Q5_K, mixed: true},
}

// fit returns the type of a matrix whose rows have cols entries. In a mix a row that is
// not a whole number of blocks gets the type of smaller blocks that llama.cpp gives it.
func (m *mix) fit(kind quant.Type, cols int64) quant.Type {
	for m.mixed && cols%int64(kind.BlockLen()) != 0 {
		switch kind {
		case quant.Q4_K:
			kind = quant.Q5_0
		case quant.Q5_K:
			kind = quant.Q5_1
		case quant.Q6_K:
			kind = quant.Q8_0
		case quant.Q2_K, quant.Q3_K, quant.IQ1_S, quant.IQ1_M, quant.IQ2_XXS, quant.IQ2_XS, quant.IQ2_S, quant.IQ3_XXS, quant.IQ3_S, quant.IQ4_XS:
			kind = quant.IQ4_NL
		default:
			kind = quant.F16
		}
	}
	return kind
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
	down   quant.Type // of the experts' down projections
	narrow quant.Type // of the down projections that every token goes through
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
		m.layer, m.values, m.narrow, m.down = i, m.base, m.base, m.experts
		if m.more != m.base && moreBits(i, s.Layers) {
			m.values, m.narrow, m.down = m.more, m.more, m.more
			if m.downs != 0 {
				m.down = m.downs
			}
		}
		families[s.arch()].layer(m)
		if t != nil {
			t.layer(i, m.list[first:])
		}
	}
	for i := range m.list {
		w := &m.list[i]
		w.kind = m.fit(w.kind, w.dims[0])
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
