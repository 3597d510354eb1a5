package model

import (
	"fmt"
	"slices"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// TestOldDeepSeekIsTheSameModel: files from before the latent cache have what makes
// keys and values in one matrix, and give the heads' own lengths.
func TestOldDeepSeekIsTheSameModel(t *testing.T) {
	const heads, rank, nope, rope, valDim = 4, 32, 16, 16, 16
	plain := conform.Shared(t, "conformance/models/deepseek2.gguf")
	old := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
		for i := range 4 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
			k, v := m.Take(t, name("attn_k_b")), m.Take(t, name("attn_v_b")) // [nope x rank x heads], [rank x valDim x heads], F16
			both := gguftest.Tensor{Name: name("attn_kv_b"), Type: k.Type, Dims: []int64{rank, heads * (nope + valDim)}}
			for h := range heads {
				for d := range nope {
					for r := range rank {
						both.Data = append(both.Data, k.Data[2*((h*rank+r)*nope+d):][:2]...)
					}
				}
				both.Data = append(both.Data, v.Data[2*h*valDim*rank:][:2*valDim*rank]...)
			}
			m.Add(both)
		}
		for key, x := range map[string]uint32{"key_length": nope + rope, "value_length": valDim, "head_count_kv": heads} {
			m.Set["deepseek2.attention."+key] = x
		}
		m.Set["deepseek2.attention.key_length_mla"], m.Set["deepseek2.attention.value_length_mla"] = nil, nil
	})
	for num, tolerance := range map[kernel.Numerics]float64{kernel.Exact: 1e-4, kernel.Fast: 0.06} {
		got, want := logitsOf(t, old, num), logitsOf(t, plain, num)
		if most, _ := diff(t, got, want); most > tolerance {
			t.Errorf("numerics %d: logits differ by up to %g", num, most)
		}
	}
}

// A model without the low rank of queries, and none of its tensors.
func TestPlainQueries(t *testing.T) {
	const heads, keyDim, embd, rank = 4, 32, 64, 48
	plain := conform.Shared(t, "conformance/models/deepseek2.gguf")
	whole := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
		for i := range 4 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
			m.Take(t, name("attn_q_a"))
			m.Take(t, name("attn_q_a_norm"))
			q := m.Take(t, name("attn_q_b"))
			out := gguftest.Tensor{Name: name("attn_q"), Type: q.Type, Dims: []int64{embd, heads * keyDim}, Data: make([]byte, 2*embd*heads*keyDim)}
			for r := range heads * keyDim { // other values, of the same size
				copy(out.Data[2*r*embd:], q.Data[2*r*rank:][:2*rank])
			}
			m.Add(out)
		}
		m.Set["deepseek2.attention.q_lora_rank"] = nil
	})
	m, ids := load(t, whole, kernel.Exact, 2, 32), conform.Load(t, "deepseek2").Tokens
	batch := m.eval(t, ids, 32, attn.KVF32)
	if most, _ := diff(t, batch, conform.Floats(t, "deepseek2.exact.f32")); most < 0.5 {
		t.Errorf("other queries make a difference of only %g", most)
	}
	if !slices.Equal(m.eval(t, ids, 1, attn.KVF32), batch) {
		t.Error("one token at a time gives other bits than one batch")
	}
}
