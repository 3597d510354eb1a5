package model

import (
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// long returns a prompt of n tokens, made of a short one.
func long(ids []int32, n int) []int32 {
	all := slices.Repeat(ids, n/len(ids)+1)
	for i := range all {
		all[i] = (all[i] + int32(i/7)) % 300
	}
	return all[:n]
}

// Layers that take the keys of an earlier layer with a window read them when the whole
// batch is stored: beyond what a ring would hold, one batch gives the bits of one token
// at a time, and so does a state that goes on from a mark.
func TestLentWindows(t *testing.T) {
	g := conform.Load(t, "gemma4-ple")
	m := load(t, conform.Shared(t, "conformance/models/gemma4-ple.gguf"), kernel.Fast, 2, 200)
	ids := long(g.Tokens, 200)
	eval := func(batch int) []float32 {
		st, err := m.arch.NewState(256, attn.KVF16)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		vocab := m.arch.Info().Vocab
		logits := make([]float32, len(ids)*vocab)
		for i := 0; i < len(ids); i += batch {
			n := min(batch, len(ids)-i)
			if err := m.arch.Forward(t.Context(), st, ids[i:i+n], logits[i*vocab:][:n*vocab]); err != nil {
				t.Fatal(err)
			}
			if err := st.Mark(); err != nil {
				t.Fatal(err)
			}
		}
		last := logits[(len(ids)-1)*vocab:]
		n, err := st.Rewind(190)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.arch.Forward(t.Context(), st, ids[n:], logits[n*vocab:]); err != nil {
			t.Fatal(err)
		}
		return append(logits, last...)
	}
	want := eval(1)
	for _, batch := range []int{200, 70} {
		if !slices.Equal(eval(batch), want) {
			t.Errorf("batches of %d give other bits than single tokens", batch)
		}
	}
}

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
