package kernel

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/kerneltest"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/quant"
)

// weightTypes are all types that MatMul takes.
func weightTypes() (ts []quant.Type) {
	for t, p := range products {
		if p.dot != nil {
			ts = append(ts, quant.Type(t))
		}
	}
	return ts
}

func mustForm(t testing.TB, typ quant.Type, n Numerics) Form {
	t.Helper()
	f, err := FormOf(typ, n)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// randomMatrix fills a matrix with random bits, its scales held to a sane size
// that varies from block to block.
func randomMatrix(r *rand.Rand, t quant.Type, rows, cols int) *Matrix {
	m := &Matrix{Type: t, Rows: rows, Cols: cols}
	// One byte in front: rows start at odd addresses.
	m.Data = make([]byte, 1+rows*m.RowBytes())[1:]
	fillBlocks(r, t, m.Data)
	return m
}

func fillBlocks(r *rand.Rand, t quant.Type, data []byte) {
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for _, o := range scaleOffsets(t) {
		for b := 0; b < len(data); b += t.BlockBytes() {
			s := float32(r.NormFloat64() * math.Exp2(float64(r.IntN(12)-8)))
			switch t {
			case quant.F32:
				binary.LittleEndian.PutUint32(data[b:], math.Float32bits(s))
			case quant.BF16:
				binary.LittleEndian.PutUint16(data[b:], quant.F32ToBF16(s))
			case quant.MXFP4:
				data[b+o] = byte(110 + r.IntN(20))
			case quant.NVFP4:
				data[b+o] &= 0x7f
			case quant.IQ1_M: // the top nibble of the last scale word holds sign and exponent
				data[b+o] = data[b+o]&0x0f | 0x20
			default:
				binary.LittleEndian.PutUint16(data[b+o:], quant.F32ToF16(s))
			}
		}
	}
}

// scaleOffsets says where in a block its floats stand.
func scaleOffsets(t quant.Type) []int {
	switch t {
	case quant.Q4_1, quant.Q5_1, quant.Q4_K, quant.Q5_K:
		return []int{0, 2}
	case quant.Q2_K:
		return []int{80, 82}
	case quant.Q3_K:
		return []int{108}
	case quant.Q6_K:
		return []int{208}
	case quant.TQ1_0:
		return []int{52}
	case quant.TQ2_0:
		return []int{64}
	case quant.IQ1_M:
		return []int{55}
	case quant.NVFP4:
		return []int{0, 1, 2, 3}
	}
	return []int{0}
}

func randomVectors(r *rand.Rand, n, cols int) []float32 {
	x := make([]float32, n*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Exp2(float64(i/32%7-3)))
	}
	return x
}

func prepared(t testing.TB, typ quant.Type, num Numerics, x []float32, n, cols int) (*Acts, Form) {
	return preparedBy(t, isa.Best(), typ, num, x, n, cols)
}

// preparedBy is prepared with a certain instruction set.
func preparedBy(t testing.TB, set isa.Set, typ quant.Type, num Numerics, x []float32, n, cols int) (*Acts, Form) {
	a := NewActs(n, cols)
	a.set = set
	a.Reset(n, cols)
	f := mustForm(t, typ, num)
	a.Prepare(f, x, cols, 0, n)
	return a, f
}

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

type rowGolden struct {
	Hex   string  `json:"quantized_hex"`
	Dot   float64 `json:"vec_dot"`
	Exact float64 `json:"dot_exact_f64"`
	Scale float64 `json:"dot_scale"`
}

type rowsGolden struct {
	Activation string            `json:"activation_f32_b64"`
	Quantized  map[string]string `json:"activation_quantized_hex"`
	Types      []struct {
		ID         uint32      `json:"type_id"`
		Rows       []rowGolden `json:"rows"`
		RandomBits *rowGolden  `json:"random_bits"`
	} `json:"types"`
}

func loadRows(t *testing.T) (*rowsGolden, []float32) {
	raw, err := os.ReadFile("../quant/testdata/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	g := new(rowsGolden)
	if err := json.Unmarshal(raw, g); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(g.Activation)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(b)/4)
	if err := quant.Dequantize(quant.F32, x, b); err != nil {
		t.Fatal(err)
	}
	return g, x
}

// TestRowGolden compares products with llama.cpp's, both of the quantised
// activations and of the exact ones.
func TestRowGolden(t *testing.T) {
	g, x := loadRows(t)
	x4 := append(append(append(append([]float32(nil), x...), x...), x...), x...)
	n := 0
	for _, ty := range g.Types {
		typ := quant.Type(ty.ID)
		check := func(r rowGolden, x []float32) {
			data, err := hex.DecodeString(r.Hex)
			if err != nil {
				t.Fatal(err)
			}
			m := &Matrix{Type: typ, Rows: 1, Cols: len(x), Data: data}
			for _, num := range []Numerics{Fast, Exact} {
				a, form := prepared(t, typ, num, x, 1, len(x))
				var got [1]float32
				MatMul(got[:], 1, m, 0, 1, a, form, nil)
				want := r.Dot
				if num == Exact {
					want = r.Exact
				}
				tol := 1e-5 * r.Scale
				if math.Abs(float64(got[0])-want) > tol {
					t.Errorf("%v numerics %d: %v, want %v within %g", typ, num, got[0], want, tol)
				}
				n++
			}
		}
		for _, r := range ty.Rows {
			check(r, x)
		}
		if ty.RandomBits != nil {
			check(*ty.RandomBits, x4)
		}
	}
	if n != 98 {
		t.Errorf("checked %d products, want 98", n)
	}
}

// TestPrepareGolden compares the activations' codes and scales with the bytes
// that llama.cpp makes of them.
func TestPrepareGolden(t *testing.T) {
	g, x := loadRows(t)
	want := map[string][]byte{}
	for k, v := range g.Quantized {
		b, err := hex.DecodeString(v)
		if err != nil {
			t.Fatal(err)
		}
		want[k] = b
	}
	a := NewActs(1, len(x))
	a.Reset(1, len(x))
	for f := range numForms {
		a.Prepare(f, x, len(x), 0, 1)
	}
	half := func(b []byte) float32 { return quant.F16ToF32(binary.LittleEndian.Uint16(b)) }
	for name, f := range map[string]Form{"q8_0": FormQ8_0, "q8_1": FormQ8_1} {
		head, v := 2, a.vec(f, 0)
		if f == FormQ8_1 {
			head = 4
		}
		for b := range v.q8 {
			w, g := want[name][b*(head+32):], &v.q8[b]
			if g.scale != half(w) {
				t.Errorf("%s block %d: scale %v, want %v", name, b, g.scale, half(w))
			}
			if f == FormQ8_1 && g.s != half(w[2:]) {
				t.Errorf("%s block %d: s %v, want %v", name, b, g.s, half(w[2:]))
			}
			sum := int32(0)
			for i, q := range g.q {
				if q != int8(w[head+i]) {
					t.Errorf("%s block %d: code %d is %d, want %d", name, b, i, q, int8(w[head+i]))
				}
				sum += int32(q)
			}
			if g.nsum != -sum {
				t.Errorf("%s block %d: nsum %d, want %d", name, b, g.nsum, -sum)
			}
		}
	}
	for b := range a.vec(FormQ8_K, 0).k {
		w, g := want["q8_K"][292*b:], &a.vec(FormQ8_K, 0).k[b]
		d := math.Float32frombits(binary.LittleEndian.Uint32(w))
		sign := int8(1)
		if d < 0 {
			d, sign = -d, -1
		}
		if g.scale != d {
			t.Errorf("q8_K block %d: scale %v, want %v", b, g.scale, d)
		}
		for i, q := range g.q {
			if q != sign*int8(w[4+i]) {
				t.Errorf("q8_K block %d: code %d is %d, want %d", b, i, q, sign*int8(w[4+i]))
			}
		}
		for i := range 16 {
			if s := int16(binary.LittleEndian.Uint16(w[260+2*i:])); g.sum16[i] != int16(sign)*s {
				t.Errorf("q8_K block %d: sum %d is %d, want %d", b, i, g.sum16[i], int16(sign)*s)
			}
		}
		for i, s := range g.sum32 {
			if s != g.sum16[2*i]+g.sum16[2*i+1] {
				t.Errorf("q8_K block %d: sum of 32 %d is %d", b, i, s)
			}
		}
	}
	for i, f := range a.vec(FormF16, 0).f {
		if w := half(want["f16"][2*i:]); f != w {
			t.Errorf("f16 element %d: %v, want %v", i, f, w)
		}
	}
	for i, f := range a.vec(FormBF16, 0).f {
		if w := quant.BF16ToF32(binary.LittleEndian.Uint16(want["bf16"][2*i:])); f != w {
			t.Errorf("bf16 element %d: %v, want %v", i, f, w)
		}
	}
}

// TestPrepareExtremes: blocks of zeros, of tiny and huge values, and broken
// ones.
func TestPrepareExtremes(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range []float32{0, 1e-45, -1e-38, 1e-30, 3e38, -65504, inf, -inf, nan} {
		x := make([]float32, 512)
		x[300], x[7], x[511] = v, v, -v/2
		a := NewActs(1, 512)
		a.Reset(1, 512)
		for _, f := range []Form{FormQ8_0, FormQ8_1, FormQ8_K} {
			a.Prepare(f, x, 512, 0, 1)
			y := a.vec(f, 0)
			var scale float32
			var codes []int8
			for i := range y.q8 {
				scale, codes = y.q8[i].scale, append(codes, y.q8[i].q[:]...)
			}
			for i := range y.k {
				scale, codes = y.k[i].scale, append(codes, y.k[i].q[:]...)
			}
			if broken := v-v != 0; broken != (scale != scale) {
				t.Errorf("%v of %v: scale %v", f, v, scale)
			}
			for i, q := range codes {
				if q < -127 || x[i] == 0 && q != 0 {
					t.Errorf("%v of %v: %v became code %d", f, v, x[i], q)
				}
			}
		}
	}
}

// TestMatMulOneResult: an element's bits do not depend on how the work is cut.
func TestMatMulOneResult(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, cols, n = 37, 512, 21
	x := randomVectors(r, n, cols)
	for _, typ := range weightTypes() {
		m := randomMatrix(r, typ, rows, cols)
		for _, num := range []Numerics{Fast, Exact} {
			a, form := prepared(t, typ, num, x, n, cols)
			whole := make([]float32, n*rows)
			MatMul(whole, rows, m, 0, rows, a, form, nil)
			for _, cut := range []int{1, 8, 13, 36} {
				got := make([]float32, n*(rows+3))
				for i := range got {
					got[i] = nan32
				}
				MatMul(got, rows+3, m, 0, cut, a, form, nil)
				MatMul(got, rows+3, m, cut, rows, a, form, nil)
				for j := range n {
					for i := range rows + 3 {
						if g := got[j*(rows+3)+i]; i < rows && !sameBits(g, whole[j*rows+i]) || i >= rows && g == g {
							t.Fatalf("%v numerics %d, cut at %d: row %d token %d is %v, whole %v", typ, num, cut, i, j, g, whole[j*rows+i])
						}
					}
				}
			}
			for _, tokens := range [][]int32{{}, {20}, {3, 0}, {7, 7, 1}, {0, 2, 4, 6, 8}, {20, 19, 18, 17, 16, 15, 14, 13, 12}} {
				got := make([]float32, len(tokens)*rows)
				MatMul(got, rows, m, 0, rows, a, form, tokens)
				for j, tk := range tokens {
					for i := range rows {
						if g, w := got[j*rows+i], whole[int(tk)*rows+i]; !sameBits(g, w) {
							t.Fatalf("%v numerics %d, tokens %v: row %d of token %d is %v, whole %v", typ, num, tokens, i, tk, g, w)
						}
					}
				}
			}
		}
	}
}

var nan32 = float32(math.NaN())

// values returns what the codes of a vector stand for.
func (x *actVec) values() []float32 {
	if x.f != nil {
		return x.f
	}
	var v []float32
	for i := range x.q8 {
		for _, q := range x.q8[i].q {
			v = append(v, x.q8[i].scale*float32(q))
		}
	}
	for i := range x.k {
		for _, q := range x.k[i].q {
			v = append(v, x.k[i].scale*float32(q))
		}
	}
	return v
}

// TestMatMulTrue compares with float64 arithmetic on the values that weights
// and activations stand for: only the additions are rounded.
func TestMatMulTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const rows, n = 9, 5
	for _, typ := range weightTypes() {
		for _, cols := range []int{256, 768} {
			x := randomVectors(r, n, cols)
			m := randomMatrix(r, typ, rows, cols)
			w := make([]float32, cols)
			for _, num := range []Numerics{Fast, Exact} {
				tol := 2e-6
				a, form := prepared(t, typ, num, x, n, cols)
				got := make([]float32, n*rows)
				MatMul(got, rows, m, 0, rows, a, form, nil)
				if form == FormQ8_1 {
					tol = 1e-3 // the sum beside the codes is rounded to f16
				}
				for i := range rows {
					Row(w, m, i)
					for j := range n {
						var want, scale float64
						v := a.vec(form, j)
						y := v.values()
						for k := range cols {
							p := float64(w[k]) * float64(y[k])
							want += p
							scale += p * p
						}
						if e := math.Abs(float64(got[j*rows+i])-want) / math.Sqrt(scale); !(e <= tol) {
							t.Errorf("%v numerics %d cols %d: row %d token %d is %v, want %v (off by %.2g)", typ, num, cols, i, j, got[j*rows+i], want, e)
						}
					}
				}
			}
		}
	}
}

// TestOddColumns: float rows may have any length.
func TestOddColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, typ := range []quant.Type{quant.F32, quant.F16, quant.BF16} {
		for _, cols := range []int{1, 3, 15, 17, 33, 100} {
			m, x := randomMatrix(r, typ, 3, cols), randomVectors(r, 2, cols)
			a, form := prepared(t, typ, Exact, x, 2, cols)
			got, w := make([]float32, 6), make([]float32, cols)
			MatMul(got, 3, m, 0, 3, a, form, nil)
			for i := range 3 {
				Row(w, m, i)
				for j := range 2 {
					var part [vec.Partials]float32
					for k := range w {
						part[k%vec.Partials] += float32(w[k] * x[j*cols+k])
					}
					if want := vec.Fold(&part); !sameBits(got[j*3+i], want) {
						t.Errorf("%v of %d columns: %v, want %v", typ, cols, got[j*3+i], want)
					}
				}
			}
		}
	}
}

func TestGateUp(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	const rows, cols = 53, 256
	bias := func() []float32 {
		b := make([]float32, rows)
		for i := range b {
			b[i] = float32(8 * r.NormFloat64()) // wide, so that limits are met
		}
		return b
	}
	plain, both := [2]Affine{}, [2]Affine{{Scale: []float32{0.5}, Bias: bias()}, {Scale: []float32{3}, Bias: bias()}}
	for _, n := range []int{1, 3, 300} {
		x := randomVectors(r, n, cols)
		// Two types that want the activations in different forms.
		gate := &Gated{Matrix: *randomMatrix(r, quant.Q8_0, rows, cols)}
		up := &Gated{Matrix: *randomMatrix(r, quant.Q6_K, rows, cols)}
		a, form := prepared(t, quant.Q8_0, Fast, x, n, cols)
		gate.Form = form
		up.Form, _ = FormOf(quant.Q6_K, Fast)
		a.Prepare(up.Form, x, cols, 0, n)
		g, u := make([]float32, n*rows), make([]float32, n*rows)
		MatMul(g, rows, &gate.Matrix, 0, rows, a, gate.Form, nil)
		MatMul(u, rows, &up.Matrix, 0, rows, a, up.Form, nil)
		for _, affine := range [][2]Affine{plain, both} {
			gate.Affine, up.Affine = affine[0], affine[1]
			change := func(f Affine, v float32, row int) float32 {
				if f.Bias == nil {
					return v
				}
				return float32(v*f.Scale[0]) + f.Bias[row]
			}
			for act, f := range map[Activation]func(g, u float32) float32{
				SiLU: func(g, u float32) float32 { return vec.Silu32(g) * u },
				GELU: func(g, u float32) float32 { return vec.Gelu32(g) * u },
				ClampedSwiGLU: func(g, u float32) float32 {
					g, u = min(g, 7), min(max(u, -7), 7)
					return vec.Silu32(1.702*g) * ((u + 1) / 1.702)
				},
				LimitedSiLU(2): func(g, u float32) float32 { return min(vec.Silu32(g), 2) * min(max(u, -2), 2) },
				ReLUSquared:    func(_, u float32) float32 { return max(u, 0) * max(u, 0) },
			} {
				got, gate := make([]float32, n*rows), gate
				if !act.Gated() {
					gate = nil
				}
				GateUp(got, rows, gate, up, act, 5, rows, a, nil)
				GateUp(got, rows, gate, up, act, 0, 5, a, nil)
				for i := range got {
					want := f(change(affine[0], g[i], i%rows), change(up.Affine, u[i], i%rows))
					if !sameBits(got[i], want) {
						t.Fatalf("activation %v, batch of %d: element %d is %v, want %v", act, n, i, got[i], want)
					}
				}
			}
		}
	}
}

// The activation of gpt-oss against its definition in float64.
func TestClampedSwiGLU(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {1, 1}, {-3, 2}, {7, 7}, {9, -9}, {100, 100}, {-100, 5}, {-2, -1}} {
		g, u := math.Min(c[0], 7), math.Max(-7, math.Min(c[1], 7))
		want := g / (1 + math.Exp(-1.702*g)) * (u + 1)
		x, y := []float32{float32(c[0])}, []float32{float32(c[1])}
		ClampedSwiGLU.apply(x, y)
		if d := math.Abs(float64(x[0]) - want); d > 1e-6*math.Max(1, math.Abs(want)) {
			t.Errorf("of gate %v and up %v it is %v, want %v", c[0], c[1], x[0], want)
		}
	}
}

// TestMatMulAllocates: nothing, once its scratch exists.
func TestMatMulAllocates(t *testing.T) { kerneltest.EachSet(t, testMatMulAllocates) }

func testMatMulAllocates(t *testing.T, set isa.Set) {
	r := rand.New(rand.NewPCG(13, 14))
	const rows, cols, n = 64, 256, 12
	x := randomVectors(r, n, cols)
	for _, typ := range []quant.Type{quant.F16, quant.Q8_0, quant.Q4_K, quant.IQ2_XXS} {
		gate, up := randomMatrix(r, typ, rows, cols), randomMatrix(r, typ, rows, cols)
		for _, num := range []Numerics{Fast, Exact} {
			a, form := preparedBy(t, set, typ, num, x, n, cols)
			dst, one := make([]float32, n*rows), []int32{3}
			g, u := &Gated{Matrix: *gate, Form: form}, &Gated{Matrix: *up, Form: form}
			step := func() {
				a.Reset(n, cols)
				a.Prepare(form, x, cols, 0, n)
				MatMul(dst, rows, gate, 0, rows, a, form, nil)
				GateUp(dst, rows, g, u, SiLU, 0, rows, a, one)
				GateUp(dst, rows, g, u, SiLU, 0, rows, a, nil)
			}
			if got := testing.AllocsPerRun(5, step); got != 0 {
				t.Errorf("%v numerics %d: %v allocations", typ, num, got)
			}
		}
	}
}

func TestFormOfUnknown(t *testing.T) {
	for _, typ := range []quant.Type{quant.I32, quant.Q8_K, quant.Type(63)} {
		for _, n := range []Numerics{Fast, Exact} {
			if _, err := FormOf(typ, n); err == nil || !strings.Contains(err.Error(), typ.String()) {
				t.Errorf("%v: %v", typ, err)
			}
		}
	}
}

func TestMisusePanics(t *testing.T) {
	m := &Matrix{Type: quant.Q8_0, Rows: 2, Cols: 64, Data: make([]byte, 2*68)}
	a := NewActs(2, 64)
	a.Reset(2, 64)
	a.Prepare(FormQ8_0, make([]float32, 128), 64, 0, 2)
	dst := make([]float32, 4)
	for name, f := range map[string]func(){
		"batch too large":   func() { NewActs(2, 64).Reset(3, 64) },
		"rows out of range": func() { MatMul(dst, 2, m, 0, 3, a, FormQ8_0, nil) },
		"token unknown":     func() { MatMul(dst, 2, m, 0, 2, a, FormQ8_0, []int32{2}) },
		"not prepared":      func() { MatMul(dst, 2, m, 0, 2, a, FormF32, nil) },
		"wrong form":        func() { MatMul(dst, 2, m, 0, 2, a, FormQ8_K, nil) },
		"short data": func() {
			MatMul(dst, 2, &Matrix{Type: quant.Q8_0, Rows: 2, Cols: 64, Data: m.Data[:135]}, 0, 2, a, FormQ8_0, nil)
		},
		"part of a block": func() { a.Reset(1, 48); a.Prepare(FormQ8_0, make([]float32, 48), 48, 0, 1) },
	} {
		func() {
			defer func() {
				if e := recover(); e == nil || !strings.HasPrefix(fmt.Sprint(e), "kernel: ") {
					t.Errorf("%s: recovered %v", name, e)
				}
			}()
			f()
		}()
	}
}

// A type without a product of its own is multiplied by its values, as 32-bit floats
// are: the same bits.
func TestATypeThatHasOnlyValues(t *testing.T) {
	const rows, cols, tokens = 9, 80, 5
	r := rand.New(rand.NewPCG(3, 4))
	double := &Matrix{Type: quant.F64, Rows: rows, Cols: cols, Data: make([]byte, 8*rows*cols)}
	single := &Matrix{Type: quant.F32, Rows: rows, Cols: cols, Data: make([]byte, 4*rows*cols)}
	for i := range rows * cols {
		v := float32(r.NormFloat64())
		binary.LittleEndian.PutUint64(double.Data[8*i:], math.Float64bits(float64(v)))
		binary.LittleEndian.PutUint32(single.Data[4*i:], math.Float32bits(v))
	}
	if products[quant.F64].dot != nil {
		t.Fatal("F64 has a product of its own: this test needs a type that has none")
	}
	x := make([]float32, tokens*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, n := range []Numerics{Fast, Exact} {
		out := map[*Matrix][]float32{}
		for _, m := range []*Matrix{double, single} {
			form := mustForm(t, m.Type, n)
			a := NewActs(tokens, cols)
			a.Reset(tokens, cols)
			a.Prepare(form, x, cols, 0, tokens)
			out[m] = make([]float32, tokens*rows)
			MatMul(out[m], rows, m, 0, rows, a, form, nil)
		}
		kerneltest.WantBits(t, "F64", out[double], out[single])
	}
	if _, err := FormOf(quant.I8, Fast); err == nil {
		t.Error("integers have a product")
	}
}
