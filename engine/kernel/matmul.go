// Package kernel holds the arithmetic of inference.
package kernel

import (
	"fmt"
	"sync"

	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
)

// Matrix is a weight matrix as it stands in a GGUF file.
type Matrix struct {
	Type       quant.Type
	Rows, Cols int
	// Data holds the rows one after the other in the file's own blocks. It may
	// start at any address.
	Data []byte
}

// RowBytes returns the size of a row. The type must be known, and its blocks
// must divide Cols.
func (m *Matrix) RowBytes() int { return m.Cols / m.Type.BlockLen() * m.Type.BlockBytes() }

// Slice returns the matrix of n rows from row r on, over the same bytes.
func (m *Matrix) Slice(r, n int) Matrix {
	rb := m.RowBytes()
	return Matrix{Type: m.Type, Rows: n, Cols: m.Cols, Data: m.Data[r*rb : (r+n)*rb]}
}

// Numerics says how closely a product follows the weights.
type Numerics uint8

const (
	// Fast quantises or rounds the activations as llama.cpp does.
	Fast Numerics = iota
	// Exact keeps the activations in float32 and dequantises the weights.
	Exact
)

// FormOf returns the form in which weights of type t want the activations. It
// is an error if the type has no values. Types without a product of their own are
// multiplied as Exact does.
func FormOf(t quant.Type, n Numerics) (Form, error) {
	switch {
	case !t.HasValues():
		return 0, fmt.Errorf("no matrix product with %v weights", t)
	case n == Exact || products[t].dot == nil:
		return FormF32, nil
	}
	return products[t].form, nil
}

// Slow reports whether rows of a type are turned into floats for every product, since
// it has no product of its own.
func Slow(t quant.Type) bool { return t.HasValues() && products[t].dot == nil }

// product is what is needed for one weight type: the form that Fast wants, and
// the definition of a row times a vector in that form. Where words is not nil
// it gives the same result sooner, given the vector in the packing too.
type product struct {
	form  Form
	dot   func(w []byte, x *actVec) float32
	pack  packing
	words func(w []byte, x *actVec, p []int64) float32
	// unpack is set for the types that quant.Unpack takes.
	unpack bool
}

// products is indexed by quant.Type.
var products = [64]product{
	quant.F32: {form: FormF32, dot: dotF32}, quant.F16: {form: FormF16, dot: dotF16}, quant.BF16: {form: FormBF16, dot: dotBF16},
	quant.Q8_0:   {form: FormQ8_0, dot: dotQ8_0, pack: packPairs, words: wordsQ8_0},
	quant.Q4_0:   {form: FormQ8_0, dot: dotQ4_0, pack: packQuads, words: wordsQ4_0},
	quant.Q5_0:   {form: FormQ8_0, dot: dotQ5_0, pack: packQuads, words: wordsQ5_0},
	quant.Q4_1:   {form: FormQ8_1, dot: dotQ4_1, pack: packQuads, words: wordsQ4_1},
	quant.Q5_1:   {form: FormQ8_1, dot: dotQ5_1, pack: packQuads, words: wordsQ5_1},
	quant.IQ4_NL: {form: FormQ8_0, dot: dotIQ4NL, pack: packHalves, words: wordsIQ4NL},
	quant.MXFP4:  {form: FormQ8_0, dot: dotMXFP4, pack: packHalves, words: wordsMXFP4},
	quant.Q2_K:   {form: FormQ8_K, dot: dotQ2K, pack: packQuads, words: wordsQ2K},
	quant.Q3_K:   {form: FormQ8_K, dot: dotQ3K, pack: packQuads, words: wordsQ3K},
	quant.Q4_K:   {form: FormQ8_K, dot: dotQ4K, pack: packQuads, words: wordsQ4K},
	quant.Q5_K:   {form: FormQ8_K, dot: dotQ5K, pack: packQuads, words: wordsQ5K},
	quant.Q6_K:   {form: FormQ8_K, dot: dotQ6K, pack: packQuads, words: wordsQ6K},
	quant.IQ4_XS: {form: FormQ8_K, dot: dotIQ4XS, pack: packHalves, words: wordsIQ4XS},
	quant.NVFP4:  {form: FormQ8_0, dot: dotNVFP4},

	quant.IQ1_S: unpackedProduct(quant.IQ1_S), quant.IQ1_M: unpackedProduct(quant.IQ1_M),
	quant.IQ2_XXS: unpackedProduct(quant.IQ2_XXS), quant.IQ2_XS: unpackedProduct(quant.IQ2_XS), quant.IQ2_S: unpackedProduct(quant.IQ2_S),
	quant.IQ3_XXS: unpackedProduct(quant.IQ3_XXS), quant.IQ3_S: unpackedProduct(quant.IQ3_S),
	quant.TQ1_0: unpackedProduct(quant.TQ1_0), quant.TQ2_0: unpackedProduct(quant.TQ2_0),
}

func unpackedProduct(t quant.Type) product {
	return product{form: FormQ8_K, dot: dotUnpacked(t), unpack: true}
}

// call is one product: rows r0 to r1-1 times the listed tokens.
type call struct {
	dst    []float32
	stride int // dst elements from one token to the next
	row0   int // the row that dst[0] stands for
	w      *Matrix
	r0, r1 int
	a      *Acts
	form   Form
	tokens []int32 // nil: all in order
	n      int     // number of tokens
}

// token returns the index in Acts of the call's j-th token.
func (c *call) token(j int) int {
	if c.tokens == nil {
		return j
	}
	return int(c.tokens[j])
}

func (c *call) check() {
	if c.r0 < 0 || c.r0 > c.r1 || c.r1 > c.w.Rows || c.w.Cols != c.a.cols ||
		len(c.w.Data) < c.w.Rows*c.w.RowBytes() || c.w.Cols%c.w.Type.BlockLen() != 0 {
		panic(fmt.Sprintf("kernel: rows %d to %d of %v [%d x %d] in %d bytes, times vectors of %d",
			c.r0, c.r1, c.w.Type, c.w.Rows, c.w.Cols, len(c.w.Data), c.a.cols))
	}
	c.a.need(c.form)
	for _, t := range c.tokens {
		if uint(t) >= uint(c.a.n) {
			panic(fmt.Sprintf("kernel: token %d of a batch of %d", t, c.a.n))
		}
	}
	if c.n > 0 && c.r1 > c.r0 {
		_ = c.dst[(c.n-1)*c.stride+c.r1-c.row0-1]
	}
}

// MatMul computes rows r0 to r1-1 of w times the batch:
//
//	dst[j*dstStride+r] = w[r] . x[tokens[j]]
//
// with all tokens in order if tokens is nil. The activations must have been
// prepared in the form, which is FormOf's for w.Type, or FormF32 (the weights
// are then dequantised). The bits of an element depend on the row's bytes and
// the token's values alone: not on r0 and r1, the other tokens, or the
// processor's instruction set.
func MatMul(dst []float32, dstStride int, w *Matrix, r0, r1 int, a *Acts, form Form, tokens []int32) {
	c := call{dst: dst, stride: dstStride, w: w, r0: r0, r1: r1, a: a, form: form, tokens: tokens, n: a.n}
	if tokens != nil {
		c.n = len(tokens)
	}
	c.run()
}

func (c *call) run() {
	c.check()
	t := c.w.Type
	p := &products[t]
	switch {
	case !t.HasValues():
		panic(fmt.Sprintf("kernel: no matrix product with %v weights", t))
	// Kernels of float weights read float32 activations, rounded or not.
	case p.dot != nil && c.form == p.form, c.form == FormF32 && (t == quant.F16 || t == quant.BF16):
		switch {
		case c.simd():
		case p.unpack:
			c.unpacked()
		default:
			c.generic(p)
		}
	case c.form == FormF32:
		c.exact()
	default:
		panic(fmt.Sprintf("kernel: %v weights with activations in form %v", t, c.form))
	}
}

// generic goes through plain Go, row by row.
func (c *call) generic(p *product) {
	s := getScratch()
	defer putScratch(s)
	rb := c.w.RowBytes()
	for j := range c.n {
		s.x = c.a.vec(c.form, c.token(j))
		out := c.dst[j*c.stride:]
		if p.words == nil {
			for r := c.r0; r < c.r1; r++ {
				out[r-c.row0] = p.dot(c.w.Data[r*rb:(r+1)*rb], &s.x)
			}
			continue
		}
		s.words = p.pack.packVec(s.words[:0], &s.x)
		for r := c.r0; r < c.r1; r++ {
			out[r-c.row0] = p.words(c.w.Data[r*rb:(r+1)*rb], &s.x, s.words)
		}
	}
}

const (
	// exactChunk is the number of weights that exact dequantises at a time;
	// every block length divides it.
	exactChunk = 256
	// exactTokens is the number of tokens that share a dequantised piece.
	exactTokens = 8
)

// exact dequantises the rows piece by piece and multiplies in float32, in the
// order of dotF32.
func (c *call) exact() {
	s := getScratch()
	defer putScratch(s)
	rb := c.w.RowBytes()
	for j0 := 0; j0 < c.n; j0 += exactTokens {
		j1 := min(j0+exactTokens, c.n)
		for r := c.r0; r < c.r1; r++ {
			row := c.w.Data[r*rb : (r+1)*rb]
			s.part = [exactTokens][vec.Partials]float32{}
			for o := 0; o < c.w.Cols; o += exactChunk {
				w := s.weights[:min(exactChunk, c.w.Cols-o)]
				n := len(w) / c.w.Type.BlockLen() * c.w.Type.BlockBytes()
				dequantize(c.w.Type, w, row[:n])
				row = row[n:]
				for j := j0; j < j1; j++ {
					x := c.a.vec(FormF32, c.token(j))
					mulAdd(&s.part[j-j0], w, x.f[o:])
				}
			}
			for j := j0; j < j1; j++ {
				c.dst[j*c.stride+r-c.row0] = vec.Fold(&s.part[j-j0])
			}
		}
	}
}

func dequantize(t quant.Type, dst []float32, src []byte) {
	if err := quant.Dequantize(t, dst, src); err != nil {
		panic("kernel: " + err.Error()) // the caller has checked type and lengths
	}
}

// Row writes row r of w to dst as floats: an embedding's look-up.
func Row(dst []float32, w *Matrix, r int) {
	rb := w.RowBytes()
	dequantize(w.Type, dst[:w.Cols], w.Data[r*rb:(r+1)*rb])
}

// Activation is the function between a feed-forward layer's first and second
// products. It takes the gate's and the up product: f(gate) * up unless stated.
type Activation struct {
	kind  activationKind
	limit float32
}

type activationKind uint8

const (
	silu activationKind = iota
	gelu
	clampedSwiGLU
	limitedSiLU
	siluOfLimited
	reluSquared
)

var (
	SiLU = Activation{kind: silu}
	GELU = Activation{kind: gelu} // the tanh form
	// ClampedSwiGLU is gpt-oss's: with g = min(gate, 7) and u = up limited to -7..7,
	// g * sigmoid(1.702 g) * (u + 1).
	ClampedSwiGLU = Activation{kind: clampedSwiGLU}
	// ReLUSquared is max(u, 0)^2 of the up product alone: there is no gate.
	ReLUSquared = Activation{kind: reluSquared}
)

// LimitedSiLU is min(silu(gate), limit) * up, with up limited to -limit..limit. A limit
// of 0 is none.
func LimitedSiLU(limit float32) Activation {
	if limit == 0 {
		return SiLU
	}
	return Activation{limitedSiLU, limit}
}

// SiLUOfLimited is silu(min(gate, limit)) * up, with up limited to -limit..limit. A limit
// of 0 is none.
func SiLUOfLimited(limit float32) Activation {
	if limit == 0 {
		return SiLU
	}
	return Activation{siluOfLimited, limit}
}

// Gated reports whether the activation takes a gate's product.
func (f Activation) Gated() bool { return f.kind != reluSquared }

const (
	swigluLimit = 7
	swigluAlpha = 1.702
)

// apply sets gate to the hidden values, and may overwrite up. Without a gate it sets
// up to them.
func (f Activation) apply(gate, up []float32) {
	switch f.kind {
	case silu:
		vec.SiluMul(gate, gate, up)
	case gelu:
		vec.GeluMul(gate, gate, up)
	case limitedSiLU:
		vec.Silu(gate)
		up = up[:len(gate)]
		for i, g := range gate {
			gate[i] = min(g, f.limit) * min(max(up[i], -f.limit), f.limit)
		}
	case siluOfLimited:
		up = up[:len(gate)]
		for i, g := range gate {
			gate[i], up[i] = min(g, f.limit), min(max(up[i], -f.limit), f.limit)
		}
		vec.SiluMul(gate, gate, up)
	case clampedSwiGLU:
		// g sigmoid(a g) is silu(a g) / a.
		up = up[:len(gate)]
		for i, g := range gate {
			gate[i] = swigluAlpha * min(g, swigluLimit)
			up[i] = (min(max(up[i], -swigluLimit), swigluLimit) + 1) / swigluAlpha
		}
		vec.SiluMul(gate, gate, up)
	case reluSquared:
		for i, u := range up {
			u = max(u, 0)
			up[i] = u * u
		}
	default:
		panic(fmt.Sprintf("kernel: activation %d", f.kind))
	}
}

// Affine is what a matrix's product may still be changed by: a factor for all
// rows, then a bias for each.
type Affine struct {
	Scale []float32 // one element; nil: none
	Bias  []float32 // [rows]; nil: none
}

// Apply changes the product of rows r0 to r1-1.
func (a Affine) Apply(x []float32, r0, r1 int) {
	if a.Scale != nil {
		vec.Scale(x[:r1-r0], a.Scale[0])
	}
	if a.Bias != nil {
		vec.Add(x[:r1-r0], a.Bias[r0:r1])
	}
}

// ApplyAll changes the products of rows r0 to r1-1 with n tokens, as MatMul stores
// them.
func (a Affine) ApplyAll(dst []float32, stride, n, r0, r1 int) {
	if a.Scale == nil && a.Bias == nil {
		return
	}
	for j := range n {
		a.Apply(dst[j*stride+r0:], r0, r1)
	}
}

// Gated is one of the two matrices of a gated feed-forward layer's first half.
type Gated struct {
	Matrix
	Affine
	Form Form // of the activations that it is multiplied with
}

// GateUp computes rows r0 to r1-1 of a gated feed-forward layer's first half:
//
//	dst[j*dstStride+r] = act(gate[r] . x[tokens[j]], up[r] . x[tokens[j]])
//
// each product with its scale and bias. The arguments are as for MatMul; gate
// and up have one shape. For an activation without a gate, gate is nil.
func GateUp(dst []float32, dstStride int, gate, up *Gated, act Activation, r0, r1 int, a *Acts, tokens []int32) {
	n := a.n
	if tokens != nil {
		n = len(tokens)
	}
	if n == 0 || r0 == r1 {
		return
	}
	if gate == nil {
		MatMul(dst, dstStride, &up.Matrix, r0, r1, a, up.Form, tokens)
		up.ApplyAll(dst, dstStride, n, r0, r1)
		for j := range n {
			act.apply(nil, dst[j*dstStride+r0:][:r1-r0])
		}
		return
	}
	// The up product goes piece by piece into a small buffer, to be used while
	// it is in the nearest cache.
	step := min(max(upBuffer/n, tileRows)/tileRows*tileRows, r1-r0)
	s := getScratch()
	defer putScratch(s)
	buf := s.floats(n * step)
	for r := r0; r < r1; r += step {
		end := min(r+step, r1)
		MatMul(dst, dstStride, &gate.Matrix, r, end, a, gate.Form, tokens)
		u := call{dst: buf, stride: step, row0: r, w: &up.Matrix, r0: r, r1: end, a: a, form: up.Form, tokens: tokens, n: n}
		u.run()
		for j := range n {
			g, u := dst[j*dstStride+r:j*dstStride+end], buf[j*step:j*step+end-r]
			gate.Apply(g, r, end)
			up.Apply(u, r, end)
			act.apply(g, u)
		}
	}
}

// tileRows is the number of rows that the widest kernels take at once. Work
// that is split between workers goes best in multiples of it.
const tileRows = 16

// upBuffer is the number of floats that GateUp keeps of the up product.
const upBuffer = 16384

// scratch is the memory of one product in progress.
type scratch struct {
	f       []float32 // GateUp's up product
	x       actVec
	words   []int64          // x in the packing of a plain Go product
	units   []quant.Unpacked // rows that have been taken apart
	tail    [gemvRows]float32
	tiles   []byte                // gemm's repacked weights
	ptrs    [gemmTokens + 8]*byte // gemm's vectors
	out     [8 * tileRows]float32 // gemm's results at the edges
	weights [exactChunk]float32
	part    [exactTokens][vec.Partials]float32
}

func (s *scratch) floats(n int) []float32 {
	if len(s.f) < n {
		s.f = aligned[float32](n)
	}
	return s.f[:n]
}

func (s *scratch) bytes(n int) []byte {
	if len(s.tiles) < n {
		s.tiles = aligned[byte](n)
	}
	return s.tiles[:n]
}

// idle holds scratch that nobody uses. It grows to one for each worker and is
// kept, so that a product allocates nothing. (A sync.Pool would give it to the
// garbage collector now and then.)
var idle struct {
	sync.Mutex
	list []*scratch
}

func getScratch() *scratch {
	idle.Lock()
	defer idle.Unlock()
	n := len(idle.list)
	if n == 0 {
		return new(scratch)
	}
	s := idle.list[n-1]
	idle.list = idle.list[:n-1]
	return s
}

func putScratch(s *scratch) {
	idle.Lock()
	defer idle.Unlock()
	idle.list = append(idle.list, s)
}
