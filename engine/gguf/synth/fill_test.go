package synth

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"bmoe/engine/quant"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// moments returns the mean and the standard deviation.
func moments(x []float32) (mean, std float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		std += (float64(v) - mean) * (float64(v) - mean)
	}
	return mean, math.Sqrt(std / float64(len(x)))
}

// Weights of every type have the size that was asked for and no mean, at the
// sizes that models have; block scales vary.
func TestFillerMoments(t *testing.T) {
	kinds := []quant.Type{quant.F32, quant.F16, quant.BF16, quant.MXFP4, quant.NVFP4}
	for kind := range scalings {
		kinds = append(kinds, kind)
	}
	for kind := range lowBit {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		for _, std := range []float64{1, 0.022, 0.004} {
			t.Run(fmt.Sprintf("%v %g", kind, std), func(t *testing.T) {
				f, err := newFiller(kind, 0, std)
				must(t, err)
				x := make([]float32, 1<<18)
				n, err := kind.RowBytes(int64(len(x)))
				must(t, err)
				b := make([]byte, n)
				r := newRand(7)
				f(&r, b)
				must(t, quant.Dequantize(kind, x, b))
				mean, got := moments(x)
				if math.Abs(mean)/std > 0.01 || math.Abs(got/std-1) > 0.02 {
					t.Errorf("mean %.2g, standard deviation %.4g", mean, got)
				}
				sizes := map[float32]bool{}
				alike := 256 // elements with one scale of the block's own, at most
				if kind == quant.NVFP4 {
					alike = 16
				}
				for at := 0; at < len(x); at += alike {
					top := float32(0)
					for _, v := range x[at : at+alike] {
						top = max(top, v, -v)
					}
					sizes[top] = true
				}
				if len(sizes) < 2 {
					t.Error("all blocks have one scale")
				}
			})
		}
	}
}

func TestFillerOfMean(t *testing.T) {
	f, err := newFiller(quant.F32, 1.6, 0.16)
	must(t, err)
	x := make([]float32, 1<<16)
	b := make([]byte, 4*len(x))
	r := newRand(1)
	f(&r, b)
	must(t, quant.Dequantize(quant.F32, x, b))
	if mean, std := moments(x); math.Abs(mean-1.6) > 0.01 || math.Abs(std-0.16) > 0.005 {
		t.Errorf("mean %g, standard deviation %g", mean, std)
	}
}

func TestFillerRefuses(t *testing.T) {
	for _, c := range []struct {
		kind quant.Type
		std  float64
	}{{quant.Type(63), 1}, {quant.IQ2_XXS, 1e-9}, {quant.NVFP4, 1e-9}, {quant.NVFP4, 1e9}, {quant.Q6_K, 1e-9}, {quant.Q8_0, 1e9}, {quant.Q4_K, 1e7}, {quant.MXFP4, 1e-60}} {
		if _, err := newFiller(c.kind, 0, c.std); err == nil {
			t.Errorf("%v of size %g was taken", c.kind, c.std)
		}
	}
}

func TestRandStreams(t *testing.T) {
	bytesOf := func(keys ...uint64) []byte {
		b := make([]byte, 1003)
		r := newRand(keys...)
		r.fill(b)
		return b
	}
	if !bytes.Equal(bytesOf(1, 2, 3), bytesOf(1, 2, 3)) {
		t.Error("one key, two streams")
	}
	seen := map[string]bool{}
	for a := range uint64(20) {
		for b := range uint64(20) {
			seen[string(bytesOf(a, b))] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("400 keys, %d streams", len(seen))
	}
	var counts [256]int
	b := make([]byte, 1<<18)
	r := newRand(5)
	r.fill(b)
	for _, x := range b {
		counts[x]++
	}
	for v, n := range counts {
		if n < 850 || n > 1200 { // 1024 expected, deviation 32
			t.Errorf("byte %d came %d times", v, n)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, kind := range []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.MXFP4} {
		b.Run(kind.String(), func(b *testing.B) {
			f, err := newFiller(kind, 0, 0.02)
			must(b, err)
			n, err := kind.RowBytes(1 << 18)
			must(b, err)
			buf := make([]byte, n)
			r := newRand(1)
			b.SetBytes(n)
			for b.Loop() {
				f(&r, buf)
			}
		})
	}
}
