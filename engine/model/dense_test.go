package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// longRope has a model turn by factors that depend on whether the context is longer than
// the first one.
func longRope(first uint32) func(m *gguftest.Model) {
	return func(m *gguftest.Model) {
		m.OneExpert()
		short, long := make([]float32, 8), make([]float32, 8)
		for i := range short {
			short[i], long[i] = 1+float32(i)/8, 2+float32(i*i)/4
		}
		m.Add(gguftest.F32("rope_factors_short.weight", short, 8), gguftest.F32("rope_factors_long.weight", long, 8))
		m.Set["llama.rope.scaling.type"], m.Set["llama.rope.scaling.attn_factor"] = "longrope", float32(1.2)
		m.Set["llama.rope.scaling.original_context_length"] = first
	}
}

// Models without experts, made of ones with experts, continue a prompt as llama.cpp
// (the build in node-llama-cpp 3.22.1) continues it.
func TestDenseFamilies(t *testing.T) {
	for _, c := range []struct {
		name, from string
		edit       func(m *gguftest.Model)
		want       []int32 // behind the whole prompt; up to where two logits are close
		next       []int32 // behind its first 2, 4, ... 24 tokens
	}{
		{"qwen3", "qwen3moe", func(m *gguftest.Model) {
			m.OneExpert()
			m.Rename("qwen3moe", "qwen3")
			m.Set["qwen3.feed_forward_length"] = uint32(32)
		}, []int32{185, 61, 259, 21, 153, 217, 130, 61, 127, 186, 102, 285, 168, 153, 217, 130}, []int32{32, 260, 56, 112, 127, 185, 21, 127, 181, 141, 184, 185}},
		{"llama", "mixtral", func(m *gguftest.Model) {
			m.OneExpert()
		}, []int32{10, 99, 77, 99, 213, 308, 294, 187, 245, 311, 173, 213, 308, 29, 184, 42}, []int32{58, 94, 290, 241, 65, 250, 170, 65, 250, 168, 99, 10}},
		{"llama3", "mixtral-ropescale", func(m *gguftest.Model) { // with rope_freqs and linear scaling
			m.OneExpert()
		}, []int32{73, 118, 73, 194, 25, 288, 189, 254, 243, 107, 31, 271, 99, 6, 73, 174}, []int32{287, 206, 171, 162, 288, 130, 96, 157, 7, 102, 281, 73}},
		{"longrope", "mixtral", longRope(64), []int32{94, 258, 113, 131, 99, 246, 52, 6, 43, 316, 254, 52, 29, 155, 10, 29}, []int32{58, 130, 40, 311, 261, 229, 308, 308, 250, 211, 99, 94}},
		{"longrope, short", "mixtral", longRope(4096), []int32{10, 2, 261, 269, 29, 29, 99, 244, 183, 296, 29, 219, 99, 34, 273, 94}, []int32{58, 94, 290, 281}},
		{"gemma4", "gemma4-ple", func(m *gguftest.Model) {
			m.Tensors = slices.DeleteFunc(m.Tensors, func(x gguftest.Tensor) bool {
				for _, part := range []string{"_exps.", "ffn_gate_inp", "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"} {
					if strings.Contains(x.Name, part) {
						return true
					}
				}
				return false
			})
			m.NoExperts()
		}, []int32{89, 89, 89, 89, 89, 89, 89, 89}, []int32{140, 205, 241, 197, 205, 264, 308, 271, 254, 11, 215, 89}},
		{"qwen35", "qwen35moe", func(m *gguftest.Model) {
			m.OneExpert()
			m.Rename("qwen35moe", "qwen35")
			m.Set["qwen35.feed_forward_length"] = uint32(32)
		}, []int32{49, 158, 32, 211, 293, 182, 185, 238, 276, 156, 134, 118, 129, 126, 140, 298}, []int32{264, 238, 28, 123, 251, 58, 64, 214, 16, 14, 221, 49}},
		{"lfm2", "lfm2moe", func(m *gguftest.Model) { // the experts' layers get the first one's network
			var rest, first []gguftest.Tensor
			for _, x := range m.Tensors {
				if strings.HasPrefix(x.Name, "blk.0.ffn_") && !strings.Contains(x.Name, "norm") {
					first = append(first, x)
				}
				if !strings.Contains(x.Name, "_exps.") && !strings.Contains(x.Name, "ffn_gate_inp") && !strings.Contains(x.Name, "exp_probs") {
					rest = append(rest, x)
				}
			}
			for i := 2; i < 5; i++ {
				for _, x := range first {
					x.Name = strings.Replace(x.Name, "blk.0.", fmt.Sprintf("blk.%d.", i), 1)
					rest = append(rest, x)
				}
			}
			m.Tensors = rest
			m.NoExperts()
			m.Rename("lfm2moe", "lfm2")
		}, []int32{108, 77, 317, 283, 54, 265, 150, 135, 184, 74, 4, 270, 21, 208, 242, 154}, []int32{297, 182, 297, 242, 146, 65, 112, 86, 148, 167, 4, 108}},
		{"glm4", "glm4moe-nextn", func(m *gguftest.Model) {
			m.OneExpert()
			var rest []gguftest.Tensor
			for _, x := range m.Tensors {
				var layer int
				if _, err := fmt.Sscanf(x.Name, "blk.%d.", &layer); err == nil && layer > 0 {
					continue // one layer: the other is for drafts
				}
				switch {
				case strings.HasSuffix(x.Name, "post_attention_norm.weight"):
					for _, name := range []string{"post_ffw_norm", "ffn_norm"} {
						y := x
						y.Name = strings.Replace(x.Name, "post_attention_norm", name, 1)
						rest = append(rest, y)
					}
				case strings.HasSuffix(x.Name, "ffn_gate.weight"):
					i := slices.IndexFunc(m.Tensors, func(y gguftest.Tensor) bool { return y.Name == strings.Replace(x.Name, "ffn_gate", "ffn_up", 1) })
					x.Name = m.Tensors[i].Name
					x.Data, x.Dims = slices.Concat(x.Data, m.Tensors[i].Data), []int64{x.Dims[0], 2 * x.Dims[1]}
				case strings.HasSuffix(x.Name, "ffn_up.weight"):
					continue
				}
				rest = append(rest, x)
			}
			m.Tensors = rest
			m.Rename("glm4moe", "glm4")
			m.Set["glm4.block_count"], m.Set["glm4.nextn_predict_layers"] = uint32(1), nil
		}, []int32{282, 132, 46, 236, 47, 140, 13, 305, 137, 88, 47, 140, 172}, []int32{140, 91, 230, 280, 279, 3, 247, 140, 193, 3, 140, 282}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := gguftest.Rewrite(t, conform.File(t, "models/"+c.from+".gguf"), c.edit)
			m := load(t, path, kernel.Fast, 2, 32)
			if m.arch.Info().MoELayers() != 0 {
				t.Error("it has experts")
			}
			ids := conform.Load(t, c.from).Tokens
			if got := m.greedy(t, ids, len(c.want), attn.KVF16); !slices.Equal(got, c.want) {
				t.Errorf("continues with %v, llama.cpp with %v", got, c.want)
			}
			for i, want := range c.next {
				if got := m.greedy(t, ids[:2*(i+1)], 1, attn.KVF16)[0]; got != want {
					t.Errorf("continues %d tokens with %d, llama.cpp with %d", 2*(i+1), got, want)
				}
			}
		})
	}
}
