package kernel

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

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
	FormQ8_K             // blocks of 256: int8 codes, a float32 scale, sums of 16 codes

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

// Acts holds a batch of activation vectors [tokens x cols], quantised or
// rounded as the weights they will meet want them. One Acts serves many
// products: Reset, Prepare each form that is needed, then MatMul any number of
// times. The buffers of a form are allocated when the form is first prepared
// and kept.
type Acts struct {
	maxTokens, maxCols int
	n, cols            int
	stride             int // elements from one token's codes or floats to the next's
	bufs               [numForms]formBuf
}

// formBuf is a form's storage for the largest batch; unused fields are nil.
type formBuf struct {
	once  sync.Once
	f     []float32 // float forms: the values
	q     []int8    // codes
	scale []float32 // one a block
	sum   []int32   // Q8_0, Q8_1: sum of a block's codes
	sum16 []int16   // Q8_K: sums of 16 codes
	s     []float32 // Q8_1: scale * sum
}

// vec is one token's activations in one form.
type vec struct {
	f     []float32
	q     []int8
	scale []float32
	sum   []int32
	sum16 []int16
	s     []float32
}

// padding keeps tokens whose length is a power of two from falling into the
// same cache sets.
const padding = 64

// NewActs returns room for batches of up to maxTokens vectors of up to maxCols
// elements.
func NewActs(maxTokens, maxCols int) *Acts {
	return &Acts{maxTokens: maxTokens, maxCols: maxCols}
}

// Reset starts a batch of n vectors of cols elements. What was prepared before
// is forgotten. It panics if there is no room for the batch.
func (a *Acts) Reset(n, cols int) {
	if n < 0 || n > a.maxTokens || cols < 0 || cols > a.maxCols {
		panic(fmt.Sprintf("kernel: batch of %d vectors of %d, room for %d of %d", n, cols, a.maxTokens, a.maxCols))
	}
	a.n, a.cols, a.stride = n, cols, strideFor(cols)
}

// Len returns the number of vectors in the batch.
func (a *Acts) Len() int { return a.n }

// Bytes returns the memory of the forms that have been prepared so far.
func (a *Acts) Bytes() int64 {
	var n int64
	for i := range a.bufs {
		b := &a.bufs[i]
		n += int64(4*(len(b.f)+len(b.scale)+len(b.sum)+len(b.s)) + len(b.q) + 2*len(b.sum16))
	}
	return n
}

// Cols returns the number of elements of each vector.
func (a *Acts) Cols() int { return a.cols }

func strideFor(cols int) int { return (cols+63)/64*64 + padding }

// aligned returns n elements that start on a cache line.
func aligned[T any](n int) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	buf := make([]T, n+64/size)
	skip := 0
	if off := int(uintptr(unsafe.Pointer(&buf[0])) & 63); off != 0 {
		skip = (64 - off) / size
	}
	return buf[skip : skip+n : skip+n]
}

func (b *formBuf) alloc(form Form, tokens, stride int) {
	n := tokens * stride
	switch form {
	case FormF32, FormF16, FormBF16:
		b.f = aligned[float32](n)
		return
	}
	b.q = aligned[int8](n)
	switch form {
	case FormQ8_0, FormQ8_1:
		b.scale, b.sum = aligned[float32](n/32), aligned[int32](n/32)
		if form == FormQ8_1 {
			b.s = aligned[float32](n / 32)
		}
	case FormQ8_K:
		// A stride need not be whole superblocks; one more a token makes room.
		b.scale, b.sum16 = aligned[float32](n/256+tokens), aligned[int16](n/16)
	}
}

// scaleStride is the number of scales from one token to the next.
func (a *Acts) scaleStride(form Form) int {
	if form == FormQ8_K {
		return a.stride/256 + 1
	}
	return a.stride / 32
}

// vec returns token t in the form, which must have been prepared.
func (a *Acts) vec(form Form, t int) (v vec) {
	b := &a.bufs[form]
	if b.f == nil && b.q == nil {
		panic(fmt.Sprintf("kernel: activations in form %v were not prepared", form))
	}
	o := t * a.stride
	switch form {
	case FormF32, FormF16, FormBF16:
		v.f = b.f[o : o+a.cols]
		return v
	}
	v.q = b.q[o : o+a.cols]
	so, n := t*a.scaleStride(form), a.cols/form.block()
	v.scale = b.scale[so : so+n]
	if form == FormQ8_K {
		v.sum16 = b.sum16[o/16 : (o+a.cols)/16]
		return v
	}
	v.sum = b.sum[so : so+n]
	if form == FormQ8_1 {
		v.s = b.s[so : so+n]
	}
	return v
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
	b.once.Do(func() { b.alloc(form, a.maxTokens, strideFor(a.maxCols)) })
	for t := t0; t < t1; t++ {
		src, v := x[t*stride:t*stride+a.cols], a.vec(form, t)
		switch form {
		case FormF32:
			copy(v.f, src)
		case FormF16:
			n := roundF16SIMD(v.f, src)
			for i, f := range src[n:] {
				v.f[n+i] = quant.F16ToF32(quant.F32ToF16(f))
			}
		case FormBF16:
			for i, f := range src {
				v.f[i] = quant.BF16ToF32(quant.F32ToBF16(f))
			}
		case FormQ8_0, FormQ8_1:
			if !prepareQ8SIMD(&v, src) {
				prepareQ8Generic(&v, src)
			}
		case FormQ8_K:
			if !prepareQ8KSIMD(&v, src) {
				prepareQ8KGeneric(&v, src)
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
		q[i] = int8(math.Float32bits(float32(v*inv) + roundMagic))
	}
}

func finite(f float32) bool { return f-f == 0 }

// prepareQ8Generic quantises blocks of 32. The scale is maxAbs/127, rounded to f16
// after it has been used to choose the codes, as llama.cpp does.
func prepareQ8Generic(v *vec, x []float32) {
	for b := range v.scale {
		src, q := x[32*b:32*b+32], v.q[32*b:32*b+32]
		m := maxAbs(src)
		d, sum := m/127, int32(0)
		switch {
		case !finite(m):
			clear(q)
			d = float32(math.NaN())
		case m < tiny:
			clear(q)
			d = 0
		default:
			codes(q, src, 127/m)
			for _, c := range q {
				sum += int32(c)
			}
		}
		v.scale[b] = quant.F16ToF32(quant.F32ToF16(d))
		v.sum[b] = sum
		if v.s != nil {
			v.s[b] = quant.F16ToF32(quant.F32ToF16(d * float32(sum)))
		}
	}
}

// prepareQ8KGeneric quantises blocks of 256. llama.cpp maps the entry of largest
// magnitude to -127 and so may store both codes and scale negated; products
// with it are the same.
func prepareQ8KGeneric(v *vec, x []float32) {
	for b := range v.scale {
		src, q := x[256*b:256*b+256], v.q[256*b:256*b+256]
		sums := v.sum16[16*b : 16*b+16]
		m := maxAbs(src)
		switch {
		case !finite(m):
			clear(q)
			clear(sums)
			v.scale[b] = float32(math.NaN())
		case m < tiny:
			clear(q)
			clear(sums)
			v.scale[b] = 0
		default:
			inv := 127 / m
			codes(q, src, inv)
			v.scale[b] = 1 / inv
			for g := range sums {
				s := int16(0)
				for _, c := range q[16*g : 16*g+16] {
					s += int16(c)
				}
				sums[g] = s
			}
		}
	}
}
