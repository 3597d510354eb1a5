package model

import (
	"strings"
	"testing"

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
