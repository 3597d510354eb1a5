package model

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// TestRefusalsTellWhatIsKnown: a file that cannot be run is refused in one line, which
// names the key or the tensor, what it is, and what was expected or is known.
func TestRefusalsTellWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(m *gguftest.Model)
		want []string
	}{
		{"scaling", func(m *gguftest.Model) { m.Set["qwen3moe.rope.scaling.type"] = "spiral" },
			[]string{"qwen3moe.rope.scaling.type", `"spiral"`, "none, linear, yarn, longrope"}},
		{"family", func(m *gguftest.Model) { m.Set["general.architecture"] = "qwen9moe" },
			[]string{`unknown architecture "qwen9moe"`, "known:", "qwen3moe"}},
		{"missing tensor", func(m *gguftest.Model) { m.Take(t, "blk.1.attn_q.weight") },
			[]string{"tensor blk.1.attn_q.weight is missing"}},
		{"shape", func(m *gguftest.Model) {
			x := m.Take(t, "blk.1.attn_norm.weight")
			x.Dims, x.Data = []int64{x.Dims[0] / 2}, x.Data[:len(x.Data)/2]
			m.Add(x)
		}, []string{"tensor blk.1.attn_norm.weight has shape", "the metadata asks for"}},
		{"more used than there are", func(m *gguftest.Model) { m.Set["qwen3moe.expert_used_count"] = uint32(4000) },
			[]string{"qwen3moe.expert_used_count is 4000", "qwen3moe.expert_count, which is 8"}},
		{"more experts than tensors have", func(m *gguftest.Model) { m.Set["qwen3moe.expert_count"] = uint32(77) },
			[]string{"tensor blk.0.ffn", "has shape", "77"}},
		{"heads of other sizes", func(m *gguftest.Model) { m.Set["qwen3moe.attention.head_count"] = uint32(3) },
			[]string{"3 heads cannot share 2 key/value heads", "(qwen3moe.attention.head_count, qwen3moe.attention.head_count_kv)"}},
		{"layers without tensors", func(m *gguftest.Model) { m.Set["qwen3moe.block_count"] = uint32(5000) },
			[]string{"qwen3moe.block_count is 5000", "tensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			says := refusal(t, gguftest.Rewrite(t, conform.Shared(t, "conformance/models/qwen3moe.gguf"), c.edit))
			for _, want := range c.want {
				if !strings.Contains(says, want) {
					t.Errorf("refused with %q, want %q", says, want)
				}
			}
		})
	}
}

// harmless are keys of which any number will do: what no family reads, or what says
// how the model was trained.
var harmless = []string{"vocab_size", "context_length", "rope.freq_base", "rope.freq_base_swa", "rope.dimension_sections", "rope.scaling.factor",
	"rope.scaling.original_context_length", "rope.scaling.finetuned", "rope.scaling.yarn_log_multiplier", "expert_weights_scale", "final_logit_softcapping",
	"attention.compress_rope_freq_base", "attention.layer_norm_epsilon", "residual_scale", "logit_scale", "embedding_scale", "attention.scale",
	"expert_shared_count", "feed_forward_length", "expert_feed_forward_length", "attention.head_count_kv", "ple.eos_token_id",
	"attention.indexer.top_k", "attention.sliding_window", "hyper_connection.sinkhorn_iterations", "nextn_predict_layers"}

// TestEveryFamilyRefuses: for each family, a number of the metadata that is out of
// reach, and a tensor that is missing or has another shape, is refused in one line
// that names a key or a tensor of the file.
func TestEveryFamilyRefuses(t *testing.T) {
	if !conform.HasShared() {
		t.Skip("needs the conformance set")
	}
	seen := map[string]bool{}
	for _, name := range landed {
		plain := conform.Shared(t, "conformance/models/"+name+".gguf")
		f, err := gguf.Open(plain)
		if err != nil {
			t.Fatal(err)
		}
		arch, err := f.Meta.String("general.architecture")
		if err != nil || seen[arch] {
			continue // one of each is enough
		}
		seen[arch] = true
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			for i := range f.Tensors {
				x := &f.Tensors[i]
				dims := x.Dims
				x.Dims = append(slices.Clone(dims), 2)
				if _, _, err := Build(f, 0); err == nil || !strings.Contains(err.Error(), x.Name) {
					t.Errorf("with %s twice as large: %v", x.Name, err)
				}
				x.Dims = dims
			}
			named := func(says string) bool {
				return !strings.Contains(says, "\n") && (strings.Contains(says, arch+".") || strings.Contains(says, "tensor "))
			}
			for _, key := range f.Meta.Keys() {
				short, ok := strings.CutPrefix(key, arch+".")
				if !ok || slices.Contains(harmless, short) {
					continue
				}
				path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Set[key] = uint32(1 << 30) })
				if says := refusal(t, path); !named(says) {
					t.Errorf("%s of 2^30: %s", key, says)
				}
				os.Remove(path)
			}
			for _, key := range []string{".attention.layer_norm_rms_epsilon", ".rope.freq_base"} {
				if !f.Meta.Has(arch+key) || arch == "nemotron_h_moe" || arch == "bailingmoe3" { // these have no rope
					continue
				}
				path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Set[arch+key] = float32(math.Inf(-1)) })
				if says := refusal(t, path); !named(says) {
					t.Errorf("%s of -Inf: %s", key, says)
				}
				os.Remove(path)
			}
			// Norms, and what is multiplied by: each family's own first layer needs these.
			for _, x := range f.Tensors {
				if !strings.HasPrefix(x.Name, "blk.0.") || !strings.HasSuffix(x.Name, "norm.weight") && !strings.HasSuffix(x.Name, "_down.weight") {
					continue
				}
				path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Take(t, x.Name) })
				if says := refusal(t, path); !named(says) {
					t.Errorf("without %s: %s", x.Name, says)
				}
				os.Remove(path)
			}
		})
	}
}
