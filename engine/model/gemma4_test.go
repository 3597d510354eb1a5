package model

import (
	"strings"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// What contradicts itself is refused by the name of the key or tensor.
func TestGemma4Refusals(t *testing.T) {
	for want, edit := range map[string]func(m *gguftest.Model){
		"gemma4.attention.shared_kv_layers":     func(m *gguftest.Model) { m.Set["gemma4.attention.shared_kv_layers"] = uint32(3) },
		"cannot take the keys":                  func(m *gguftest.Model) { m.Set["gemma4.attention.head_count_kv"] = []uint32{2, 1, 1, 1} },
		"gemma4.attention.sliding_window is":    func(m *gguftest.Model) { m.Set["gemma4.attention.sliding_window"] = nil },
		"gemma4.attention.sliding_window_patt":  func(m *gguftest.Model) { m.Set["gemma4.attention.sliding_window_pattern"] = []bool{true} },
		"tensor blk.2.post_norm.weight is":      func(m *gguftest.Model) { m.Take(t, "blk.2.post_norm.weight") },
		"tensor blk.3.ffn_gate_inp.scale is":    func(m *gguftest.Model) { m.Take(t, "blk.3.ffn_gate_inp.scale") },
		"tensor per_layer_model_proj.weight is": func(m *gguftest.Model) { m.Take(t, "per_layer_model_proj.weight") },
		"rope over 64 entries of heads of 16":   func(m *gguftest.Model) { m.Set["gemma4.rope.dimension_count_swa"] = uint32(64) },
	} {
		path := gguftest.Rewrite(t, conform.Shared(t, "conformance/models/gemma4-ple.gguf"), edit)
		if got := refusal(t, path); !strings.Contains(got, want) {
			t.Errorf("refused with %q, want %q", got, want)
		}
	}
}
