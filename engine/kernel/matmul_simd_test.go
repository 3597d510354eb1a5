package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
)

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
	if n*m.Cols > len(x) {
		t.Fatal("not enough activations")
	}
	var want, got []float32
	for _, i := range isa.Available() {
		a, form := preparedBy(t, i, m.Type, num, x, n, m.Cols)
		outs := n
		if tokens != nil {
			outs = len(tokens)
		}
		got = make([]float32, outs*m.Rows)
		MatMul(got, m.Rows, m, 0, m.Rows, a, form, tokens)
		if i == isa.Generic {
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
		var want, got [numForms]actVec
		for _, i := range isa.Available() {
			a := NewActs(1, cols)
			a.set = i
			a.Reset(1, cols)
			for f := range numForms {
				a.Prepare(f, x, cols, 0, 1)
				got[f] = a.vec(f, 0)
			}
			if i == isa.Generic {
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
func (x *actVec) differs(y *actVec) string {
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
