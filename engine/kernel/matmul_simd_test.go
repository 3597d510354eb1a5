package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"bmoe/engine/quant"
)

// onEachPath runs f with every instruction set of this machine, the generic
// path first.
func onEachPath(t *testing.T, f func(t *testing.T)) {
	best := active
	defer func() { active = best }()
	for _, i := range available {
		active = i
		t.Run(i.String(), f)
	}
}

// extreme overwrites some blocks with the largest and the smallest codes and
// scales.
func extreme(r *rand.Rand, t quant.Type, data []byte, x []float32) {
	bb := t.BlockBytes()
	for b := 0; b+bb <= len(data); b += bb {
		switch r.IntN(6) {
		case 0:
			fill(data[b:b+bb], 0xff)
			fixScales(r, t, data[b:b+bb])
		case 1:
			fill(data[b:b+bb], 0x80)
			fixScales(r, t, data[b:b+bb])
		case 2:
			fill(data[b:b+bb], 0)
		case 3:
			fill(data[b:b+bb], 0x7f)
			fixScales(r, t, data[b:b+bb])
		}
	}
	for i := 0; i+32 <= len(x); i += 32 {
		switch r.IntN(6) {
		case 0:
			for k := range 32 {
				x[i+k] = 3
			}
		case 1:
			for k := range 32 {
				x[i+k] = -3
			}
		case 2:
			clear(x[i : i+32])
		}
	}
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func fixScales(r *rand.Rand, t quant.Type, block []byte) {
	keep := append([]byte(nil), block...)
	fillBlocks(r, t, block)
	scales := append([]byte(nil), block...)
	copy(block, keep)
	n := 2
	switch t {
	case quant.F32:
		n = 4
	case quant.MXFP4, quant.NVFP4, quant.IQ1_M:
		n = 1
	}
	for _, o := range scaleOffsets(t) {
		copy(block[o:o+n], scales[o:o+n])
	}
}

// checkPaths multiplies on every path and wants the bits of the definition.
func checkPaths(t *testing.T, m *Matrix, x []float32, n int, num Numerics, tokens []int32) {
	t.Helper()
	best := active
	defer func() { active = best }()
	if n*m.Cols > len(x) {
		t.Fatal("not enough activations")
	}
	var want, got []float32
	for _, i := range available {
		active = i
		a, form := prepared(t, m.Type, num, x, n, m.Cols)
		outs := n
		if tokens != nil {
			outs = len(tokens)
		}
		got = make([]float32, outs*m.Rows)
		MatMul(got, m.Rows, m, 0, m.Rows, a, form, tokens)
		if i == isaGeneric {
			want = got
			if num == Exact {
				continue
			}
			// The definition.
			want = make([]float32, len(got))
			for k := range want {
				token := k / m.Rows
				if tokens != nil {
					token = int(tokens[token])
				}
				v, rb := a.vec(form, token), m.RowBytes()
				want[k] = products[m.Type].dot(m.Data[k%m.Rows*rb:][:rb], &v)
			}
		}
		for k := range got {
			if !sameBits(got[k], want[k]) {
				t.Fatalf("%v %v numerics %d, %d rows of %d, %d tokens: row %d of token %d is %v (%#x), defined as %v (%#x)", i, m.Type, num, m.Rows, m.Cols, n,
					k%m.Rows, k/m.Rows, got[k], math.Float32bits(got[k]), want[k], math.Float32bits(want[k]))
			}
		}
	}
}

func TestPathsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, typ := range weightTypes() {
		for _, shape := range [][3]int{{8, 256, 1}, {9, 512, 1}, {3, 256, 2}, {31, 1024, 3}, {40, 256, 17}, {24, 768, 33}} {
			rows, cols, n := shape[0], shape[1], shape[2]
			for _, num := range []Numerics{Fast, Exact} {
				m, x := randomMatrix(r, typ, rows, cols), randomVectors(r, n, cols)
				checkPaths(t, m, x, n, num, nil)
				extreme(r, typ, m.Data, x)
				checkPaths(t, m, x, n, num, nil)
				tokens := make([]int32, 1+r.IntN(2*n))
				for i := range tokens {
					tokens[i] = int32(r.IntN(n))
				}
				checkPaths(t, m, x, n, num, tokens)
			}
		}
	}
}

// TestPreparePathsAgree: codes, scales and sums have the same bits on every
// path, for ordinary and for broken blocks.
func TestPreparePathsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 19))
	best := active
	defer func() { active = best }()
	special := []float32{0, float32(math.Copysign(0, -1)), 1e-45, 1e-38, 3e-31, -7.9e-31, 3e38, -3.4e38, 65504, 65520, float32(math.Inf(1)), float32(math.Inf(-1)), nan32}
	for round := range 300 {
		cols := 256 * (1 + r.IntN(4))
		x := randomVectors(r, 1, cols)
		scale := float32(math.Exp2(float64(r.IntN(60) - 30)))
		for i := range x {
			x[i] *= scale
			if round%3 == 1 && r.IntN(40) == 0 {
				x[i] = special[r.IntN(len(special))]
			}
			if round%3 == 2 { // many ties: multiples of half a step
				x[i] = float32(r.IntN(509)-254) * 0.5
			}
		}
		var want, got [numForms]vec
		for _, i := range available {
			active = i
			a := NewActs(1, cols)
			a.Reset(1, cols)
			for f := range numForms {
				a.Prepare(f, x, cols, 0, 1)
				got[f] = a.vec(f, 0)
			}
			if i == isaGeneric {
				want = got
				continue
			}
			for f := range numForms {
				if d := want[f].differs(&got[f]); d != "" {
					t.Fatalf("%v, round %d, form %v: %s", i, round, f, d)
				}
			}
		}
	}
}

// differs names the first difference between two vectors, or is empty.
func (x *vec) differs(y *vec) string {
	for i := range x.f {
		if !sameBits(x.f[i], y.f[i]) {
			return fmt.Sprintf("value %d is %v, want %v", i, y.f[i], x.f[i])
		}
	}
	for i := range x.q8 {
		a, b := x.q8[i], y.q8[i]
		if !sameBits(a.scale, b.scale) || !sameBits(a.s, b.s) {
			return fmt.Sprintf("block %d has scale %v and s %v, want %v and %v", i, b.scale, b.s, a.scale, a.s)
		}
		a.scale, a.s, b.scale, b.s = 0, 0, 0, 0 // NaNs
		if a != b {
			return fmt.Sprintf("block %d is %v, want %v", i, b, a)
		}
	}
	for i := range x.k {
		a, b := x.k[i], y.k[i]
		if !sameBits(a.scale, b.scale) {
			return fmt.Sprintf("block %d has scale %v, want %v", i, b.scale, a.scale)
		}
		a.scale, b.scale = 0, 0
		if a != b {
			return fmt.Sprintf("block %d is %v, want %v", i, b, a)
		}
	}
	return ""
}

// FuzzPaths: bits, scales and shapes as they come.
func FuzzPaths(f *testing.F) {
	f.Add(uint64(1), uint8(quant.Q8_0), uint8(9), uint8(2), uint8(1), uint8(0))
	f.Add(uint64(2), uint8(quant.Q4_K), uint8(17), uint8(3), uint8(5), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, typ, rows, blocks, n, kind uint8) {
		q := quant.Type(typ)
		if int(typ) >= len(products) || products[typ].dot == nil || rows == 0 || blocks == 0 || blocks > 16 || rows > 64 || n == 0 || n > 40 {
			return
		}
		form, _ := FormOf(q, Fast)
		cols := int(blocks) * max(q.BlockLen(), form.block())
		r := rand.New(rand.NewPCG(seed, 17))
		m, x := randomMatrix(r, q, int(rows), cols), randomVectors(r, int(n), cols)
		switch kind % 3 {
		case 1:
			extreme(r, q, m.Data, x)
		case 2: // scales of any bits too: infinities and NaNs
			for i := range m.Data {
				m.Data[i] = byte(r.Uint32())
			}
		}
		checkPaths(t, m, x, int(n), Fast, nil)
		checkPaths(t, m, x, int(n), Exact, nil)
	})
}

// BenchmarkPrepare is the quantising of one vector.
func BenchmarkPrepare(b *testing.B) {
	const cols = 2048
	x := randomVectors(rand.New(rand.NewPCG(5, 6)), 1, cols)
	best := active
	defer func() { active = best }()
	for f := range numForms {
		for _, i := range available {
			b.Run(fmt.Sprintf("%v/%v", f, i), func(b *testing.B) {
				active = i
				a := NewActs(1, cols)
				a.Reset(1, cols)
				b.SetBytes(4 * cols)
				for b.Loop() {
					a.Prepare(f, x, cols, 0, 1)
				}
			})
		}
	}
}

var sink uint64

// BenchmarkMemory reads memory as fast as the products could at best: a sum
// over 256 MiB, the yardstick for BenchmarkGemv.
func BenchmarkMemory(b *testing.B) {
	data := make([]byte, 256<<20)
	for i := range data {
		data[i] = byte(i)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var s0, s1, s2, s3 uint64
		for p := data; len(p) >= 64; p = p[64:] {
			q := (*[8]uint64)(unsafe.Pointer(&p[0]))
			s0 ^= q[0] ^ q[4]
			s1 ^= q[1] ^ q[5]
			s2 ^= q[2] ^ q[6]
			s3 ^= q[3] ^ q[7]
		}
		sink += s0 ^ s1 ^ s2 ^ s3
	}
}

// BenchmarkGemv is decode: one vector times matrices that add up to more than
// any cache. MB/s are bytes of weights.
func BenchmarkGemv(b *testing.B) {
	const cols = 2048
	for _, typ := range weightTypes() {
		for _, size := range []int{1 << 20, 256 << 20} {
			for _, i := range available {
				if i == isaGeneric && size > 1<<20 || i != isaGeneric && gemvKernels[i][typ] == nil && floatKernels[i][typ] == nil {
					continue
				}
				b.Run(fmt.Sprintf("%v/%dMiB/%v", typ, size>>20, i), func(b *testing.B) {
					rb, _ := typ.RowBytes(cols)
					rows := size / int(rb) / 8 * 8
					m := repeatMatrix(typ, rows, cols)
					benchMatMul(b, i, m, 1)
				})
			}
		}
	}
}

// BenchmarkGemm is prefill: 512 vectors times a matrix of an expert's size.
func BenchmarkGemm(b *testing.B) {
	for _, typ := range weightTypes() {
		for _, i := range available {
			if i == isaGeneric && typ != quant.Q8_0 && typ != quant.Q4_K {
				continue
			}
			b.Run(fmt.Sprintf("%v/%v", typ, i), func(b *testing.B) {
				n := 512
				if i == isaGeneric {
					n = 32
				}
				benchMatMul(b, i, repeatMatrix(typ, 256, 2048), n)
			})
		}
	}
}

// repeatMatrix repeats a few random rows.
func repeatMatrix(typ quant.Type, rows, cols int) *Matrix {
	r := rand.New(rand.NewPCG(1, 2))
	few := randomMatrix(r, typ, 16, cols)
	m := &Matrix{Type: typ, Rows: rows, Cols: cols, Data: make([]byte, rows*few.RowBytes())}
	for o := 0; o < len(m.Data); {
		o += copy(m.Data[o:], few.Data)
	}
	return m
}

func benchMatMul(b *testing.B, i isa, m *Matrix, n int) {
	best := active
	defer func() { active = best }()
	active = i
	r := rand.New(rand.NewPCG(3, 4))
	x := randomVectors(r, n, m.Cols)
	a, form := prepared(b, m.Type, Fast, x, n, m.Cols)
	dst := make([]float32, n*m.Rows)
	b.SetBytes(int64(len(m.Data)))
	for b.Loop() {
		MatMul(dst, m.Rows, m, 0, m.Rows, a, form, nil)
	}
	if n > 1 {
		b.ReportMetric(float64(b.N)*float64(n)*float64(m.Rows)*float64(m.Cols)/b.Elapsed().Seconds()/1e9, "GMAC/s")
	}
}
