package kernel

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
)

// Form is a way in which activations are held for a matrix product.
type Form uint8

// The forms. Weights of a type want one of them (FormOf).
const (
	FormF32  Form = iota // as they are
	FormF16              // rounded to half precision
	FormBF16             // rounded to bfloat16
	FormQ8_0             // blocks of 32: int8 codes and a scale that fits f16
	FormQ8_1             // as Q8_0, and scale * sum of codes, rounded to f16
	FormQ8_K             // blocks of 256: int8 codes, a float32 scale, sums of groups

	numForms
)

// String returns the form's name.
func (f Form) String() string {
	switch f {
	case FormF32:
		return "f32"
	case FormF16:
		return "f16"
	case FormBF16:
		return "bf16"
	case FormQ8_0:
		return "q8_0"
	case FormQ8_1:
		return "q8_1"
	case FormQ8_K:
		return "q8_K"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// block is the number of activations that share a scale.
func (f Form) block() int {
	switch f {
	case FormQ8_0, FormQ8_1:
		return 32
	case FormQ8_K:
		return 256
	}
	return 1
}

// block8 is a block of FormQ8_0 or FormQ8_1. All that belongs to a block stands
// together, so that a kernel needs one pointer for each vector.
type block8 struct {
	q     [32]int8 // codes
	scale float32
	nsum  int32   // minus the sum of the codes
	s     float32 // FormQ8_1: scale * sum of codes
	_     float32
}

// blockK is a block of FormQ8_K.
type blockK struct {
	q     [256]int8 // codes
	sum16 [16]int16 // sums of 16 codes
	sum32 [8]int16  // sums of 32 codes
	scale float32
	_     [3]float32
}

// Acts holds a batch of activation vectors [tokens x cols], quantised or
// rounded as the weights they will meet want them. One Acts serves many
// products: Reset, Prepare each form that is needed, then MatMul any number of
// times. The buffers of a form are allocated when the form is first prepared
// and kept.
type Acts struct {
	set                isa.Set // of the kernels that prepare them and multiply with them
	maxTokens, maxCols int
	n, cols            int
	bufs               [numForms]formBuf
}

// formBuf is a form's storage for the largest batch; one of the slices is used.
type formBuf struct {
	once sync.Once
	f    []float32
	q8   []block8
	k    []blockK
}

// actVec is one token's activations in one form.
type actVec struct {
	f  []float32
	q8 []block8
	k  []blockK
}

// NewActs returns room for batches of up to maxTokens vectors of up to maxCols
// elements.
func NewActs(maxTokens, maxCols int) *Acts {
	return &Acts{set: isa.Best(), maxTokens: maxTokens, maxCols: maxCols}
}

// Reset starts a batch of n vectors of cols elements. What was prepared before
// is forgotten. It panics if there is no room for the batch.
func (a *Acts) Reset(n, cols int) {
	if n < 0 || n > a.maxTokens || cols < 0 || cols > a.maxCols {
		panic(fmt.Sprintf("kernel: batch of %d vectors of %d, room for %d of %d", n, cols, a.maxTokens, a.maxCols))
	}
	a.n, a.cols = n, cols
}

// Len returns the number of vectors in the batch.
func (a *Acts) Len() int { return a.n }

// Bytes returns the memory of the forms that have been prepared so far.
func (a *Acts) Bytes() int64 {
	var n uintptr
	for i := range a.bufs {
		b := &a.bufs[i]
		n += uintptr(len(b.f))*unsafe.Sizeof(float32(0)) + uintptr(len(b.q8))*unsafe.Sizeof(block8{}) + uintptr(len(b.k))*unsafe.Sizeof(blockK{})
	}
	return int64(n)
}

// Cols returns the number of elements of each vector.
func (a *Acts) Cols() int { return a.cols }

// stride returns how many floats or blocks lie between the starts of two
// vectors: one cache line more than they take, or tokens whose length is a
// power of two would fall into the same cache sets.
func (f Form) stride(cols int) int {
	if f.block() == 1 {
		return (cols+15)/16*16 + 16
	}
	return cols/f.block() + 1
}

// aligned returns n elements that start on a cache line.
func aligned[T any](n int) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	buf := make([]T, n+64)
	skip := 0
	for uintptr(unsafe.Pointer(&buf[skip]))%64 != 0 && skip*size < 64*size {
		skip++
	}
	return buf[skip : skip+n : skip+n]
}

func (b *formBuf) alloc(form Form, tokens, cols int) {
	n := tokens * form.stride(cols)
	switch form {
	case FormQ8_0, FormQ8_1:
		b.q8 = aligned[block8](n)
	case FormQ8_K:
		b.k = aligned[blockK](n)
	default:
		b.f = aligned[float32](n)
	}
}

// vec returns token t in the form, which must have been prepared.
func (a *Acts) vec(form Form, t int) (v actVec) {
	b := &a.bufs[form]
	n := a.cols / form.block()
	o := t * form.stride(a.cols)
	switch {
	case b.f != nil:
		v.f = b.f[o : o+n]
	case b.q8 != nil:
		v.q8 = b.q8[o : o+n]
	case b.k != nil:
		v.k = b.k[o : o+n]
	}
	return v
}

// need panics if the form was never prepared.
func (a *Acts) need(form Form) {
	if b := &a.bufs[form]; b.f == nil && b.q8 == nil && b.k == nil {
		panic(fmt.Sprintf("kernel: activations in form %v were not prepared", form))
	}
}

// Prepare brings tokens t0 to t1-1 of x, where token t starts at x[t*stride],
// into the form. Different tokens may be prepared at the same time. It panics
// if the form's blocks do not divide the batch's columns.
//
// A block that holds an infinity or a NaN becomes a NaN scale and zero codes,
// so that a broken model shows as NaN everywhere and not as noise.
func (a *Acts) Prepare(form Form, x []float32, stride, t0, t1 int) {
	if a.cols%form.block() != 0 {
		panic(fmt.Sprintf("kernel: %d columns are not whole %v blocks", a.cols, form))
	}
	if t0 < 0 || t0 > t1 || t1 > a.n {
		panic(fmt.Sprintf("kernel: tokens %d to %d of a batch of %d", t0, t1, a.n))
	}
	b := &a.bufs[form]
	b.once.Do(func() { b.alloc(form, a.maxTokens, a.maxCols) })
	for t := t0; t < t1; t++ {
		src, v := x[t*stride:t*stride+a.cols], a.vec(form, t)
		switch form {
		case FormF32:
			copy(v.f, src)
		case FormF16:
			n := roundF16SIMD(a.set, v.f, src)
			for i, f := range src[n:] {
				v.f[n+i] = quant.F16ToF32(quant.F32ToF16(f))
			}
		case FormBF16:
			for i, f := range src {
				v.f[i] = quant.BF16ToF32(quant.F32ToBF16(f))
			}
		case FormQ8_0, FormQ8_1:
			if !prepareQ8SIMD(a.set, v.q8, src) {
				prepareQ8Generic(v.q8, src)
			}
		case FormQ8_K:
			if !prepareQ8KSIMD(a.set, v.k, src) {
				prepareQ8KGeneric(v.k, src)
			}
		}
	}
}

// tiny is the magnitude under which a block counts as zero: far below what an
// f16 scale can express, and large enough that its reciprocal is finite.
const tiny = 1.0 / (1 << 62) / (1 << 38) // 2^-100

// maxAbs returns the largest magnitude of x. An infinity or a NaN in x makes
// the result an infinity or a NaN.
func maxAbs(x []float32) float32 {
	var m uint32
	for _, v := range x {
		m = max(m, math.Float32bits(v)&0x7fffffff) // magnitudes compare as integers
	}
	return math.Float32frombits(m)
}

// codes sets q = round(x * inv), ties to even. The products are at most 127 in
// magnitude.
func codes(q []int8, x []float32, inv float32) {
	q = q[:len(x)]
	for i, v := range x {
		q[i] = int8(math.Float32bits(float32(v*inv) + vec.RoundMagic))
	}
}

func finite(f float32) bool { return f-f == 0 }

// prepareQ8Generic quantises blocks of 32. The scale is maxAbs/127, rounded to
// f16 after it has been used to choose the codes, as llama.cpp does.
func prepareQ8Generic(v []block8, x []float32) {
	for i := range v {
		b, src := &v[i], x[32*i:32*i+32]
		m := maxAbs(src)
		d, sum := m/127, int32(0)
		switch {
		case !finite(m):
			clear(b.q[:])
			d = float32(math.NaN())
		case m < tiny:
			clear(b.q[:])
			d = 0
		default:
			codes(b.q[:], src, 127/m)
			for _, c := range b.q {
				sum += int32(c)
			}
		}
		b.scale = quant.F16ToF32(quant.F32ToF16(d))
		b.nsum = -sum
		b.s = quant.F16ToF32(quant.F32ToF16(d * float32(sum)))
	}
}

// prepareQ8KGeneric quantises blocks of 256. llama.cpp maps the entry of
// largest magnitude to -127 and so may store both codes and scale negated;
// products with it are the same.
func prepareQ8KGeneric(v []blockK, x []float32) {
	for i := range v {
		b, src := &v[i], x[256*i:256*i+256]
		m := maxAbs(src)
		switch {
		case !finite(m):
			*b = blockK{scale: float32(math.NaN())}
		case m < tiny:
			*b = blockK{}
		default:
			inv := 127 / m
			codes(b.q[:], src, inv)
			b.scale = 1 / inv
			for g := range b.sum32 {
				for h := 2 * g; h < 2*g+2; h++ {
					s := int16(0)
					for _, c := range b.q[16*h : 16*h+16] {
						s += int16(c)
					}
					b.sum16[h] = s
				}
				b.sum32[g] = b.sum16[2*g] + b.sum16[2*g+1]
			}
		}
	}
}
