package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// logits runs --eval-tokens and returns what --save-logits wrote.
func logits(t *testing.T, model string, ids []int32, more ...string) []float32 {
	t.Helper()
	file := filepath.Join(conform.TempDir(t), "logits.f32")
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	r := succeeds(t, append([]string{"-m", model, "--eval-tokens", list, "--save-logits", file}, more...)...)
	b := readTest(t, file)
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	var told struct {
		Tokens int   `json:"n_tokens"`
		Vocab  int   `json:"n_vocab"`
		Argmax []int `json:"argmax"`
	}
	parseJSON(t, r.stdout, &told)
	if told.Tokens != len(ids) || told.Tokens*told.Vocab != len(v) {
		t.Fatalf("%d floats: %s", len(v), r.stdout)
	}
	for i, best := range told.Argmax {
		if row := v[i*told.Vocab:][:told.Vocab]; row[best] != slices.Max(row) {
			t.Errorf("position %d: %d is not the likeliest", i, best)
		}
	}
	return v
}

// apart returns how far two sets of logits are apart: at most, and as a root
// mean square.
func apart(t *testing.T, a, b []float32) (most, rms float64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d against %d logits", len(a), len(b))
	}
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			t.Fatalf("logit %d is not a number", i)
		}
		most = max(most, d)
		rms += d * d
	}
	return most, math.Sqrt(rms / float64(len(a)))
}

// The logits of --eval-tokens agree with llama.cpp's within the tolerances of
// the conformance set, in one prefill and token by token.
func TestEvalTokens(t *testing.T) {
	for _, c := range []struct {
		name, file string
		exact      float64
	}{
		{"qwen3moe", "models/qwen3moe.gguf", 2e-4},
		{"qwen3moe", "split/qwen3moe-00001-of-00003.gguf", 2e-4},
		{"qwen3moe-tied", "models/qwen3moe-tied.gguf", 2e-4},
		{"qwen3moe-q-Q4_K_M", "quants/qwen3moe-q-Q4_K_M.gguf", 5e-4},
	} {
		t.Run(c.file, func(t *testing.T) {
			g, model := conform.Load(t, c.name), conform.File(t, c.file)
			// Streaming through a cache of less than the experts changes no bit.
			exact := logits(t, model, g.Tokens, "--numerics", "exact", "--kv-type", "f32")
			if most, _ := apart(t, exact, conform.Floats(t, c.name+".exact.f32")); most > c.exact {
				t.Errorf("exact: %g from the golden", most)
			}
			fast := logits(t, model, g.Tokens, "--kv-type", "f32")
			most, rms := apart(t, fast, conform.Floats(t, c.name+".kv_f32_fa_off.f32"))
			if most > 1.5*g.Exact.MaxNative || rms > g.Exact.RMSNative {
				t.Errorf("fast: %g at most (%g), rms %g (%g)", most, g.Exact.MaxNative, rms, g.Exact.RMSNative)
			}
			for _, flags := range [][]string{{"--eval-decode"}, {"--moe-stream=false"}, {"--ubatch", "7", "-t", "1"}, {"--io-threads", "1", "--overlap=false", "--release-mmap"}} {
				if other := logits(t, model, g.Tokens, append(flags, "--kv-type", "f32")...); !slices.Equal(other, fast) {
					most, _ := apart(t, other, fast)
					t.Errorf("%v changes logits by %g", flags, most)
				}
			}
		})
	}
}
