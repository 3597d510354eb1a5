package model

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/expert"
	"bmoe/engine/gguf"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/pool"
	"bmoe/internal/conform"
)

// loaded is a model whose weights all lie in the test's memory.
type loaded struct {
	arch Arch
	c    *Compute
}

// mappedRows gathers from the shards' bytes.
type mappedRows [][]byte

func (m mappedRows) Gather(dst []byte, file int, offset int64, size int, rows []int64) error {
	for i, r := range rows {
		copy(dst[i*size:][:size], m[file][offset+r*int64(size):])
	}
	return nil
}

func load(t testing.TB, path string, num kernel.Numerics, workers, batch int) *loaded {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	a, reg, err := Build(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	var shards [][]byte
	for _, s := range f.Shards {
		b, err := os.ReadFile(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, b)
	}
	if err := reg.Bind(func(r Range) ([]byte, error) { return shards[r.Shard][r.Offset:][:r.Size], nil }); err != nil {
		t.Fatal(err)
	}
	m := &loaded{a, &Compute{Pool: pool.New(workers), Numerics: num, Experts: expert.NewMapped(a.Info().Experts, shards), Rows: mappedRows(shards)}}
	t.Cleanup(m.c.Pool.Close)
	if err := a.Prepare(m.c, batch, 512); err != nil {
		t.Fatal(err)
	}
	return m
}

// eval returns the logits of every position, with batches of the given size.
func (m *loaded) eval(t testing.TB, ids []int32, batch int, kv attn.KVType) []float32 {
	t.Helper()
	st, err := m.arch.NewState(max(64, len(ids)), kv)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	vocab := m.arch.Info().Vocab
	logits := make([]float32, len(ids)*vocab)
	for i := 0; i < len(ids); i += batch {
		n := min(batch, len(ids)-i)
		if err := m.arch.Forward(context.Background(), st, ids[i:i+n], logits[i*vocab:][:n*vocab]); err != nil {
			t.Fatal(err)
		}
	}
	return logits
}

// greedy continues a prompt by n tokens.
func (m *loaded) greedy(t testing.TB, prompt []int32, n int, kv attn.KVType) []int32 {
	t.Helper()
	st, err := m.arch.NewState(len(prompt)+n, kv)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	logits := make([]float32, m.arch.Info().Vocab)
	ids, next := []int32(nil), prompt
	for ; len(next) > 32; next = next[32:] {
		if err := m.arch.Forward(context.Background(), st, next[:32], nil); err != nil {
			t.Fatal(err)
		}
	}
	for len(ids) < n {
		if err := m.arch.Forward(context.Background(), st, next, logits); err != nil {
			t.Fatal(err)
		}
		best := 0
		for i, l := range logits {
			if l > logits[best] {
				best = i
			}
		}
		ids = append(ids, int32(best))
		next = ids[len(ids)-1:]
	}
	return ids
}

// landed are the models of the conformance set beyond qwen3moe's whose families run.
var landed = []string{
	"bailingmoe2",
	"bailingmoe3",
	"deepseek2",
	"deepseek4", "deepseek4-hca",
	"ernie4_5-moe",
	"gemma4", "gemma4-ple",
	"glm-dsa",
	"glm4moe", "glm4moe-nextn",
	"gpt-oss", "gpt-oss-mxfp4",
	"granitemoe",
	"laguna", "laguna-elem",
	"lfm2moe",
	"minimax-m2",
	"mixtral", "mixtral-ropescale",
	"nemotron_h_moe", "nemotron_h_moe-latent",
	"olmoe",
	"qwen2moe",
	"qwen35moe", "qwen35moe-nextn",
	"qwen3next",
	"qwen4exp", "qwen4exp-qsa",
}

// TestEveryModelIsTested: each model of the conformance set is in the list.
func TestEveryModelIsTested(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/models"), "*.gguf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models in the shared data: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".gguf")
		if !slices.Contains(landed, name) && !strings.HasPrefix(name, "qwen3moe") {
			t.Errorf("%s is not tested", name)
		}
	}
}

// models lists the models of the conformance set that are run, as paths without
// .gguf, and the golden that each is compared with.
func models(t *testing.T) map[string]string {
	list := map[string]string{"models/qwen3moe": "qwen3moe", "models/qwen3moe-tied": "qwen3moe-tied",
		"models/qwen3moe-yarn": "qwen3moe-yarn", "split/qwen3moe-00001-of-00003": "qwen3moe"}
	for _, q := range []string{"Q4_K_M", "Q6_K", "Q8_0"} {
		list["quants/qwen3moe-q-"+q] = "qwen3moe-q-" + q
	}
	if conform.HasShared() {
		all, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/quants"), "*.gguf"))
		if err != nil || len(all) == 0 {
			t.Fatalf("no quantised models in the shared data: %v", err)
		}
		for _, p := range all {
			name := strings.TrimSuffix(filepath.Base(p), ".gguf")
			list["quants/"+name] = name
		}
		for _, name := range landed {
			list["models/"+name] = name
		}
	}
	return list
}

// diff returns the largest and the root mean square difference.
func diff(t testing.TB, got, want []float32) (most, rms float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d logits, want %d", len(got), len(want))
	}
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			t.Fatalf("logit %d is %v, want %v", i, got[i], want[i])
		}
		most = max(most, d)
		rms += d * d
	}
	return most, math.Sqrt(rms / float64(len(got)))
}

// untied is how many steps a greedy continuation goes until keys tie for the last place
// in an indexer's choice, all with a score of exactly 0: then any choice is right. The
// prompts themselves have no ties.
var untied = map[string]int{"glm-dsa": 8}

// tableTolerance is how far llama.cpp's logits are from those with an exact GELU.
const tableTolerance = 2e-2

func TestExactLogits(t *testing.T) {
	for path, name := range models(t) {
		t.Run(strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
			t.Parallel()
			g := conform.Load(t, name)
			m := load(t, conform.File(t, path+".gguf"), kernel.Exact, 1, 32)
			routes := map[int][]int32{}
			m.c.Watch(&Observer{Route: func(layer, _ int, ids []int32, _ []float32) { routes[layer] = append(routes[layer], ids...) }})
			want := conform.Floats(t, name+".exact.f32")
			tolerance := 2e-4
			if strings.HasPrefix(path, "quants/") {
				tolerance = 5e-4 // their logits spread more
			}
			got := m.eval(t, g.Tokens, 32, attn.KVF32)
			if strings.HasPrefix(name, "gemma4") {
				// llama.cpp looks its GELU up in a table of half precision.
				if most, _ := diff(t, got, conform.Floats(t, name+".ref_f64.f32")); most > 5e-4 {
					t.Errorf("logits differ by up to %g from those of the exact function, tolerance 5e-4", most)
				}
				tolerance = tableTolerance
			}
			if most, _ := diff(t, got, want); most > tolerance {
				t.Errorf("logits differ by up to %g, tolerance %g", most, tolerance)
			}
			for _, l := range g.Exact.Routing.Layers {
				if want := slices.Concat(l.TopK...); !slices.Equal(routes[l.Layer], want) {
					t.Errorf("layer %d routes to %v, want %v", l.Layer, routes[l.Layer], want)
				}
			}
			single := m.eval(t, g.Tokens, 1, attn.KVF32)
			if !slices.Equal(single, got) {
				t.Error("one token at a time gives other bits than one batch")
			}
			steps := len(g.Exact.Greedy)
			if n := untied[name]; n > 0 {
				steps = n
			}
			agree(t, m.greedy(t, g.Tokens, steps, attn.KVF32), g.Exact.Greedy[:steps], g.Exact.Margin, tolerance, g.Exact.Greedy)
		})
	}
}

func TestFastLogits(t *testing.T) {
	for path, name := range models(t) {
		t.Run(strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
			t.Parallel()
			g := conform.Load(t, name)
			m := load(t, conform.File(t, path+".gguf"), kernel.Fast, 2, 32)
			routes := map[int][]int32{}
			m.c.Watch(&Observer{Route: func(layer, _ int, ids []int32, _ []float32) { routes[layer] = append(routes[layer], ids...) }})
			reference, routing := name+".kv_f32_fa_off.f32", g.Routing.Layers
			if len(g.Runs) == 0 { // no other engine ran it: rounding is all that lies between
				reference, routing = name+".exact.f32", g.Exact.Routing.Layers
			}
			want := conform.Floats(t, reference)
			got := m.eval(t, g.Tokens, 32, attn.KVF32)
			most, rms := diff(t, got, want)
			// The models with F32 weights have no quantised activations to differ in.
			if tolerance := max(1.5*g.Exact.MaxNative, 2e-4); most > tolerance {
				t.Errorf("logits differ by up to %g, tolerance %g", most, tolerance)
			}
			tolerance := max(g.Exact.RMSNative, 1e-4)
			if len(g.Runs) == 0 {
				tolerance *= 1.05 // of the exact logits: another's rounding lies as far from them, but in no order
			}
			if rms > tolerance {
				t.Errorf("logits differ by %g rms, tolerance %g", rms, tolerance)
			}
			for _, l := range routing {
				k := len(l.TopK[0])
				for tok, want := range l.TopK {
					have := slices.Sorted(slices.Values(routes[l.Layer][tok*k:][:k]))
					if !slices.Equal(have, slices.Sorted(slices.Values(want))) {
						t.Errorf("layer %d, token %d routes to %v, want %v", l.Layer, tok, have, want)
					}
				}
			}
			if len(g.Runs) == 0 {
				agree(t, m.greedy(t, g.Tokens, len(g.Exact.Greedy), attn.KVF32), g.Exact.Greedy, g.Exact.Margin, 1.5*g.Exact.MaxNative, g.Exact.Greedy)
				return
			}
			main := g.Runs["kv_f32_fa_off"]
			agree(t, m.greedy(t, g.Tokens, len(main.Greedy), attn.KVF32), main.Greedy, main.Margin, 1.5*g.Exact.MaxNative, g.Exact.Greedy)

			// The default cache, against llama.cpp's with the same precision.
			half := g.Runs["kv_f16_fa_off"]
			got16 := m.eval(t, g.Tokens, 32, attn.KVF16)
			if most, _ := diff(t, got16, want); most > 1.5*half.MaxVsMain+1.5*g.Exact.MaxNative {
				t.Errorf("with a half-precision cache logits differ by up to %g", most)
			}
			if half.LogitsFile != "" && strings.HasPrefix(path, "models/") {
				// Two rules hold here, of which the wider counts: of a recurrent model's layers
				// few have a cache, so that half precision there moves less than the rounding of
				// activations in all of them, for which a native run has its own tolerance.
				tolerance := 1.5 * max(half.MaxVsMain, g.Exact.MaxNative)
				if most, _ := diff(t, got16, conform.Floats(t, half.LogitsFile)); most > tolerance {
					t.Errorf("with a half-precision cache logits differ by up to %g from llama.cpp's with one, tolerance %g", most, tolerance)
				}
			}
			agree(t, m.greedy(t, g.Tokens, len(half.Greedy), attn.KVF16), half.Greedy, half.Margin, 1.5*half.MaxVsMain, g.Exact.Greedy)
		})
	}
}

// agree compares continuations up to the first step that is too close to call: by
// its margin, or because llama.cpp in other numerics goes another way there, as it
// does where two experts are nearly tied.
func agree(t *testing.T, got, want []int32, margin []float64, tolerance float64, other []int32) {
	t.Helper()
	for i := range want {
		if margin[i] <= tolerance {
			return
		}
		if got[i] == want[i] {
			continue
		}
		if !slices.Equal(got[:i+1], other[:i+1]) {
			t.Errorf("greedy continuation %v, want %v (step %d, margin %g)", got, want, i, margin[i])
		}
		return
	}
}

func TestHiddenStates(t *testing.T) {
	list := []string{"qwen3moe"}
	if conform.HasShared() {
		list = append(list, landed...)
	}
	for _, name := range list {
		if name == "deepseek4-hca" {
			continue // its golden has no hidden states
		}
		t.Run(name, func(t *testing.T) {
			g := conform.Load(t, name)
			m := load(t, conform.File(t, "models/"+name+".gguf"), kernel.Exact, 2, 32)
			want := conform.Floats(t, g.Exact.Hidden.File)
			size := len(want) / m.arch.Info().Layers // all streams of the residual
			layers := 0
			watch := &Observer{Residual: func(layer int, x []float32) {
				layers++
				tolerance := 2e-4
				if strings.HasPrefix(name, "gemma4") {
					tolerance = tableTolerance
				}
				if most, _ := diff(t, x, want[layer*size:][:size]); most > tolerance {
					t.Errorf("layer %d: the residual stream differs by up to %g", layer, most)
				}
			}}
			m.c.Watch(watch)
			watched := m.eval(t, g.Tokens, 32, attn.KVF32)
			m.c.Unwatch(watch)
			if !slices.Equal(watched, m.eval(t, g.Tokens, 32, attn.KVF32)) {
				t.Error("who reads the residual changes the logits")
			}
			if layers*size != len(want) || size < len(g.Tokens)*g.Embd {
				t.Errorf("%d layers were computed, the golden has %d", layers, len(want)/size)
			}
		})
	}
}
