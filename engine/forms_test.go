package engine

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// A model whose experts' gate and up lie in one tensor, with a scale for each
// expert, streams to the bits that it has resident.
func TestFusedExpertsStream(t *testing.T) {
	path := gguftest.Rewrite(t, conform.File(t, "models/qwen3moe.gguf"), func(m *gguftest.Model) {
		for i := range 3 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.ffn_%s_exps.", i, s) }
			gate, up := m.Take(t, name("gate")+"weight"), m.Take(t, name("up")+"weight")
			const experts = 8
			fused := gguftest.Tensor{Name: name("gate_up") + "weight", Type: gate.Type, Dims: []int64{gate.Dims[0], 2 * gate.Dims[1], experts}}
			for e := range experts {
				for _, x := range []gguftest.Tensor{gate, up} {
					n := len(x.Data) / experts
					fused.Data = append(fused.Data, x.Data[e*n:][:n]...)
				}
			}
			m.Add(fused, gguftest.F32(name("down")+"scale", []float32{1, 1.1, 1.2, 1.3, 0.9, 0.8, 0.7, 0.6}, experts))
		}
	})
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = path, true, 2
	resident := cfg
	resident.Stream, resident.Dense = false, DenseMmap
	want, _ := outcome(t, resident)
	cfg.Cache = Budget{Bytes: layerBytes(t, cfg)}
	for _, lanes := range []int{1, 4} {
		cfg.Lanes = lanes
		got, run := outcome(t, cfg)
		if got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
			t.Errorf("%d lanes: another text or other logits than resident", lanes)
		}
		if run.Sum.Evictions == 0 {
			t.Error("nothing was evicted: the case shows nothing")
		}
	}
}

// A model of which the first layer is dense and the others have a shared expert
// beside the routed ones: it is computed while they are read, by whoever has
// nothing else to do, and the bits are those of the resident model.
func TestSharedExpertStreams(t *testing.T) {
	const embd, ff, experts = 64, 96, 8
	noise := func(seed, n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(math.Sin(float64(i*i%9973+seed*i+seed))) / 6
		}
		return x
	}
	path := gguftest.Rewrite(t, conform.File(t, "models/qwen3moe.gguf"), func(m *gguftest.Model) {
		for key, x := range map[string]any{"block_count": uint32(3), "context_length": uint32(256), "embedding_length": uint32(embd),
			"attention.head_count": uint32(4), "attention.head_count_kv": uint32(2), "attention.key_length": uint32(32), "attention.value_length": uint32(32),
			"attention.layer_norm_rms_epsilon": float32(1e-6), "rope.dimension_count": uint32(16), "feed_forward_length": uint32(ff),
			"expert_count": uint32(experts), "expert_used_count": uint32(3), "expert_feed_forward_length": uint32(32), "expert_shared_count": uint32(3),
			"leading_dense_block_count": uint32(1), "expert_weights_norm": true, "expert_weights_scale": float32(1.5)} {
			m.Set["glm4moe."+key] = x
		}
		m.Set["general.architecture"] = "glm4moe"
		for i := range 3 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
			norm := m.Take(t, name("ffn_norm.weight"))
			norm.Name = name("post_attention_norm.weight")
			m.Add(norm)
			ending := "_shexp.weight"
			if i == 0 {
				ending = ".weight"
				for _, s := range []string{"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"} {
					m.Take(t, name(s+".weight"))
				}
			} else {
				m.Add(gguftest.F32(name("exp_probs_b.bias"), noise(i, experts), experts))
			}
			m.Add(gguftest.F32(name("ffn_gate"+ending), noise(3+i, embd*ff), embd, ff), gguftest.F32(name("ffn_up"+ending), noise(6+i, embd*ff), embd, ff),
				gguftest.F32(name("ffn_down"+ending), noise(9+i, embd*ff), ff, embd))
		}
	})
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = path, true, 2
	resident := cfg
	resident.Stream, resident.Dense = false, DenseMmap
	want, _ := outcome(t, resident)
	cfg.Cache = Budget{Bytes: layerBytes(t, cfg)}
	for name, change := range map[string]func(*Config){
		"1 lane, 1 thread":        func(c *Config) { c.Lanes, c.Threads = 1, 1 },
		"4 lanes, 3 threads":      func(c *Config) { c.Threads = 3 },
		"serial":                  func(c *Config) { c.Overlap = false },
		"batches of 1":            func(c *Config) { c.UBatch = 1 },
		"everything in the cache": func(c *Config) { c.Cache.Bytes = 1 << 40 },
	} {
		c := cfg
		change(&c)
		if got, _ := outcome(t, c); got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
			t.Errorf("%s: another text or other logits than resident", name)
		}
	}
}

// Every family of the conformance set opens and streams to the bits that it has
// resident.
func TestFamiliesStream(t *testing.T) {
	for _, name := range []string{
		"bailingmoe2",
		"bailingmoe3",
		"deepseek2",
		"deepseek4",
		"deepseek4-hca",
		"ernie4_5-moe",
		"gemma4",
		"gemma4-ple",
		"glm-dsa",
		"glm4moe",
		"glm4moe-nextn",
		"gpt-oss",
		"gpt-oss-mxfp4",
		"granitemoe",
		"laguna",
		"laguna-elem",
		"lfm2moe",
		"minimax-m2",
		"mixtral",
		"mixtral-ropescale",
		"nemotron_h_moe",
		"nemotron_h_moe-latent",
		"olmoe",
		"qwen2moe",
		"qwen35moe",
		"qwen35moe-nextn",
		"qwen3next",
		"qwen4exp",
		"qwen4exp-qsa",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for reads most of the time
			cfg := DefaultConfig()
			cfg.Model = conform.Shared(t, "conformance/models/"+name+".gguf")
			cfg.Raw, cfg.Threads = true, 2
			resident := cfg
			resident.Stream, resident.Dense = false, DenseMmap
			want, _ := outcome(t, resident)
			cfg.Cache = Budget{Bytes: layerBytes(t, cfg)}
			for _, threads := range []int{3, 1} {
				if testing.Short() && threads == 1 {
					continue
				}
				cfg.Threads, cfg.UBatch, cfg.Lanes = threads, 5+threads, threads
				if got, _ := outcome(t, cfg); got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
					t.Errorf("%d threads: another text or other logits than resident", threads)
				}
			}
		})
	}
}
