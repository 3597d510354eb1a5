package quant

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

type goldenRow struct {
	QuantizedHex  string `json:"quantized_hex"`
	DequantB64    string `json:"dequant_f32_b64"`
	DequantSHA256 string `json:"dequant_sha256"`
}

type goldenFile struct {
	Types []struct {
		Type       string      `json:"type"`
		ID         uint32      `json:"type_id"`
		Rows       []goldenRow `json:"rows"`
		RandomBits *goldenRow  `json:"random_bits"`
	} `json:"types"`
}

// testGolden compares Dequantize with llama.cpp's values, bit by bit, and
// returns how many rows it compared.
func testGolden(t *testing.T, path string) int {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ty := range g.Types {
		typ := Type(ty.ID)
		if !strings.EqualFold(typ.String(), ty.Type) {
			t.Errorf("type %d is called %v, want %s", ty.ID, typ, ty.Type)
		}
		rows := ty.Rows
		if ty.RandomBits != nil {
			rows = append(rows, *ty.RandomBits)
		}
		for i, r := range rows {
			src, err := hex.DecodeString(r.QuantizedHex)
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]float32, len(src)/typ.BlockBytes()*typ.BlockLen())
			if err := Dequantize(typ, dst, src); err != nil {
				t.Errorf("%v: %v", typ, err)
				continue
			}
			n++
			got := make([]byte, 4*len(dst))
			if err := Quantize(F32, got, dst); err != nil {
				t.Fatal(err)
			}
			if r.DequantB64 == "" {
				if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != r.DequantSHA256 {
					t.Errorf("%v row %d: values differ from the golden ones", typ, i)
				}
				continue
			}
			want, err := base64.StdEncoding.DecodeString(r.DequantB64)
			if err != nil {
				t.Fatal(err)
			}
			for j := range dst {
				if w := u32(want[4*j:]); math.Float32bits(dst[j]) != w {
					t.Errorf("%v row %d element %d: got %v, want %v", typ, i, j, dst[j], math.Float32frombits(w))
					break
				}
			}
		}
	}
	return n
}

func TestDequantizeGolden(t *testing.T) {
	if n := testGolden(t, "testdata/rows.json"); n != 49 {
		t.Errorf("compared %d rows, want 49", n)
	}
}

func TestDequantizeGoldenWhole(t *testing.T) {
	p := conform.Shared(t, "conformance/rows/rows.json")
	if n := testGolden(t, p); n != 101 {
		t.Errorf("compared %d rows, want 101", n)
	}
}

func TestHalfEveryCode(t *testing.T) {
	for c := range 1 << 16 {
		h := uint16(c)
		f := F16ToF32(h)
		exp, frac := int(h>>10&31), float64(h&0x3ff)
		want := math.Ldexp(1+frac/1024, exp-15)
		switch exp {
		case 0:
			want = math.Ldexp(frac, -24)
		case 31:
			want = math.Inf(1)
			if frac != 0 {
				want = math.NaN()
			}
		}
		if h>>15 != 0 {
			want = -want
		}
		if math.IsNaN(want) {
			if f == f || F32ToF16(f)&0x7c00 != 0x7c00 || F32ToF16(f)&0x3ff == 0 {
				t.Fatalf("NaN %#04x became %v, %#04x", h, f, F32ToF16(f))
			}
			continue
		}
		if float64(f) != want || math.Signbit(float64(f)) != math.Signbit(want) {
			t.Fatalf("F16ToF32(%#04x) = %v, want %v", h, f, want)
		}
		if back := F32ToF16(f); back != h {
			t.Fatalf("F32ToF16(%v) = %#04x, want %#04x", f, back, h)
		}
		if exp == 31 || h == 0x7bff || h == 0xfbff {
			continue
		}
		// Halfway to the next number rounds to the even code, beside it to the nearer.
		next := F16ToF32(h + 1)
		mid := f + (next-f)/2
		even := h + h&1
		if got := F32ToF16(mid); got != even {
			t.Fatalf("F32ToF16(%v), a tie, = %#04x, want %#04x", mid, got, even)
		}
		if got := F32ToF16(math.Nextafter32(mid, f)); got != h {
			t.Fatalf("just below the tie after %#04x: got %#04x", h, got)
		}
		if got := F32ToF16(math.Nextafter32(mid, next)); got != h+1 {
			t.Fatalf("just above the tie after %#04x: got %#04x", h, got)
		}
	}
	for _, c := range []struct {
		f float32
		h uint16
	}{{65504, 0x7bff}, {65519.996, 0x7bff}, {65520, 0x7c00}, {-1e30, 0xfc00}, {1e-30, 0}, {float32(math.Inf(-1)), 0xfc00}} {
		if got := F32ToF16(c.f); got != c.h {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", c.f, got, c.h)
		}
	}
}

func TestBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		f := math.Float32frombits(r.Uint32())
		h := F32ToBF16(f)
		if f != f {
			if g := BF16ToF32(h); g == g {
				t.Fatalf("NaN became %v", g)
			}
			continue
		}
		lo := math.Float32bits(f) &^ 0xffff // truncated; the other neighbour is one up
		rest := math.Float32bits(f) & 0xffff
		want := uint16(lo >> 16)
		if rest > 0x8000 || rest == 0x8000 && want&1 == 1 {
			want++
		}
		if h != want {
			t.Fatalf("F32ToBF16(%v) = %#04x, want %#04x", f, h, want)
		}
	}
}

func TestScaleBytes(t *testing.T) {
	for e := range 256 {
		if got, want := float64(E8M0Half(uint8(e))), math.Ldexp(1, e-128); got != want {
			t.Errorf("E8M0Half(%d) = %v, want %v", e, got, want)
		}
	}
	for _, c := range []struct {
		code uint8
		want float32
	}{{0, 0}, {1, 1.0 / 512}, {7, 7.0 / 512}, {8, 1.0 / 64}, {0x38, 1}, {0x3c, 1.5}, {0x7e, 448}, {0x7f, 0}} {
		if got := UE4M3(c.code); got != c.want {
			t.Errorf("UE4M3(%#x) = %v, want %v", c.code, got, c.want)
		}
	}
}

// TestRoundTrip bounds what each quantiser loses on normal noise, relative to
// the noise, by what its bits allow: a wrong shift or scale misses this widely.
func TestRoundTrip(t *testing.T) {
	bound := map[Type]float64{
		F32: 0, F16: 3e-4, BF16: 3e-3, Q8_0: 0.008, Q4_0: 0.11, Q4_1: 0.09, Q5_0: 0.06, Q5_1: 0.05,
		IQ4_NL: 0.12, MXFP4: 0.15, Q2_K: 0.40, Q3_K: 0.27, Q4_K: 0.10, Q5_K: 0.05, Q6_K: 0.035, IQ4_XS: 0.13,
	}
	r := rand.New(rand.NewPCG(3, 4))
	for typ := range quantFuncs {
		limit, ok := bound[typ]
		if !ok {
			t.Errorf("%v has no bound", typ)
			continue
		}
		for _, scale := range []float64{1e-3, 1, 300} {
			x := make([]float32, 4096)
			for i := range x {
				x[i] = float32(r.NormFloat64() * scale)
			}
			n, _ := typ.RowBytes(int64(len(x)))
			b, y := make([]byte, n), make([]float32, len(x))
			if err := Quantize(typ, b, x); err != nil {
				t.Fatal(err)
			}
			if err := Dequantize(typ, y, b); err != nil {
				t.Fatal(err)
			}
			var e float64
			for i := range x {
				d := float64(x[i] - y[i])
				e += d * d
			}
			if rms := math.Sqrt(e/float64(len(x))) / scale; rms > limit {
				t.Errorf("%v at scale %g loses %.4f, more than %.4f", typ, scale, rms, limit)
			}
		}
		zero := make([]float32, 256)
		n, _ := typ.RowBytes(256)
		b := make([]byte, n)
		if err := Quantize(typ, b, zero); err != nil {
			t.Fatal(err)
		}
		y := make([]float32, 256)
		if err := Dequantize(typ, y, b); err != nil {
			t.Fatal(err)
		}
		for i, v := range y {
			if v != 0 {
				t.Errorf("%v turns a zero into %v at %d", typ, v, i)
				break
			}
		}
	}
}

// TestUnpack: the integers and the factor multiply to the values.
func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	n := 0
	for id := range Type(64) {
		if int(id) >= len(unpackFuncs) || unpackFuncs[id] == nil {
			continue
		}
		n++
		for range 200 {
			b := make([]byte, id.BlockBytes())
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			switch id { // a scale that is a number
			case TQ1_0:
				putU16(b[52:], 0x3c00)
			case TQ2_0:
				putU16(b[64:], 0xb800)
			case IQ1_M:
				b[55] = b[55]&15 | 0x30
			default:
				putU16(b, 0x3555)
			}
			var u Unpacked
			Unpack(id, &u, b)
			want := make([]float32, 256)
			if err := Dequantize(id, want, b); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				got := float64(u.D) * float64(u.Scales[i/16]) * float64(int8(u.Codes[i]))
				if math.Abs(got-float64(w)) > 1e-6*math.Abs(float64(w)) {
					t.Fatalf("%v: weight %d is %v, want %v", id, i, got, w)
				}
			}
		}
	}
	if n != 9 {
		t.Errorf("%d types unpack, want 9", n)
	}
}

func BenchmarkUnpack(b *testing.B) {
	for id := range Type(64) {
		if int(id) >= len(unpackFuncs) || unpackFuncs[id] == nil {
			continue
		}
		b.Run(id.String(), func(b *testing.B) {
			src := make([]byte, id.BlockBytes())
			for i := range src {
				src[i] = byte(i * 37)
			}
			var u Unpacked
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Unpack(id, &u, src)
			}
		})
	}
}

func TestLengthsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"part of a block", Dequantize(Q4_K, make([]float32, 100), make([]byte, 144)), "whole number"},
		{"short source", Dequantize(Q8_0, make([]float32, 64), make([]byte, 67)), "take 68 bytes, got 67"},
		{"integer type", Dequantize(I32, make([]float32, 4), make([]byte, 16)), "I32"},
		{"unknown type", Dequantize(Type(99), nil, nil), "type 99"},
		{"unsupported writer", Quantize(IQ1_S, make([]byte, 50), make([]float32, 256)), "IQ1_S"},
		{"short destination", Quantize(Q8_0, make([]byte, 33), make([]float32, 32)), "take 34 bytes, got 33"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says %q", c.name, c.err, c.want)
		}
	}
}

// FuzzDequantize feeds every type with whole blocks of arbitrary bits: no
// content may fail.
func FuzzDequantize(f *testing.F) {
	f.Add(uint32(Q6_K), []byte("\x00\x3c some bits"))
	f.Add(uint32(IQ3_S), []byte{0xff})
	f.Fuzz(func(t *testing.T, id uint32, bits []byte) {
		typ := Type(id)
		if !typ.HasValues() {
			if Dequantize(typ, nil, nil) == nil {
				t.Fatalf("%v: no error", typ)
			}
			return
		}
		src := make([]byte, 3*typ.BlockBytes())
		for i := 0; i < len(src) && len(bits) > 0; i += len(bits) {
			copy(src[i:], bits)
		}
		dst := make([]float32, 3*typ.BlockLen())
		if err := Dequantize(typ, dst, src); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	for _, typ := range []Type{F16, Q8_0, Q4_K, Q6_K, MXFP4, IQ2_XXS} {
		b.Run(typ.String(), func(b *testing.B) {
			n, _ := typ.RowBytes(4096)
			src, dst := make([]byte, n), make([]float32, 4096)
			for i := range src {
				src[i] = byte(i * 37)
			}
			b.SetBytes(n)
			for b.Loop() {
				if err := Dequantize(typ, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
