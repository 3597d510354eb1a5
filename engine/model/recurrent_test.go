package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// recurrent are models with layers that go back to marks only.
var recurrent = []string{"qwen35moe", "qwen3next", "lfm2moe", "nemotron_h_moe", "bailingmoe3", "qwen4exp", "qwen4exp-qsa"}

// TestRecurrentLayersGoBack: from a mark on, after further tokens, after a pass that
// was cancelled, and from a saved state, the logits are those of the first time.
func TestRecurrentLayersGoBack(t *testing.T) {
	for _, name := range recurrent {
		t.Run(name, func(t *testing.T) {
			ids := conform.Load(t, name).Tokens
			m := load(t, conform.Shared(t, "conformance/models/"+name+".gguf"), kernel.Fast, 2, 32)
			open := func() State {
				st, err := m.arch.NewState(64, attn.KVF16)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := st.Close(); err != nil {
						t.Error(err)
					}
				})
				return st
			}
			forward := func(st State, ids []int32) []float32 {
				t.Helper()
				logits := make([]float32, len(ids)*m.arch.Info().Vocab)
				if err := m.arch.Forward(context.Background(), st, ids, logits); err != nil {
					t.Fatal(err)
				}
				return logits
			}
			st := open()
			forward(st, ids[:5])
			if err := st.Mark(st.Len()); err != nil {
				t.Fatal(err)
			}
			var saved bytes.Buffer
			if err := st.Save(&saved); err != nil {
				t.Fatal(err)
			}
			want := forward(st, ids[5:])
			if marks := st.Marks(); marks.Kept != 1 || marks.Most != mostMarks || st.Bytes() < marks.Bytes {
				t.Errorf("%+v in a state of %d bytes", marks, st.Bytes())
			}
			back := func(to int) {
				t.Helper()
				if n, err := st.Rewind(to); n != 5 || err != nil {
					t.Fatalf("rewound to %d: at %d, %v", to, n, err)
				}
				if !slices.Equal(forward(st, ids[5:]), want) {
					t.Error("behind a mark the logits are others")
				}
			}
			back(5)
			back(9) // there is no nearer mark
			ctx, cancel := context.WithCancel(context.Background())
			stop := &Observer{Layer: func(int, int) { cancel() }}
			m.c.Watch(stop)
			if err := m.arch.Forward(ctx, st, ids[:3], nil); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			m.c.Unwatch(stop)
			back(len(ids))
			other := open()
			forward(other, ids[7:])
			if err := other.Load(&saved); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(forward(other, ids[5:]), want) {
				t.Error("behind a saved state the logits are others")
			}
			if n, err := st.Rewind(4); n != 0 || err != nil {
				t.Errorf("rewound to 4: at %d, %v", n, err)
			}
			if got := forward(st, ids)[5*m.arch.Info().Vocab:]; !slices.Equal(got, want) {
				t.Error("from the start the logits are others")
			}
		})
	}
}

// TestOldQwen3NextIsTheSameModel: files made at first have queries, keys, values and
// gates in one matrix, sorted by key head.
func TestOldQwen3NextIsTheSameModel(t *testing.T) {
	const keyHeads, valueHeads, size, embd = 2, 4, 16, 64
	plain := conform.Shared(t, "conformance/models/qwen3next.gguf")
	old := gguftest.Rewrite(t, plain, func(m *gguftest.Model) {
		for i := range 3 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.%s.weight", i, s) }
			qkv, gate := m.Take(t, name("attn_qkv")), m.Take(t, name("attn_gate"))
			rows := func(x gguftest.Tensor, from, n int) []byte {
				row := len(x.Data) / int(x.Dims[1])
				return x.Data[from*row:][:n*row]
			}
			in := gguftest.Tensor{Name: name("ssm_in"), Type: qkv.Type, Dims: []int64{embd, qkv.Dims[1] + gate.Dims[1]}}
			const group = valueHeads / keyHeads * size
			for h := range keyHeads {
				in.Data = append(in.Data, rows(qkv, h*size, size)...)
				in.Data = append(in.Data, rows(qkv, (keyHeads+h)*size, size)...)
				in.Data = append(in.Data, rows(qkv, 2*keyHeads*size+h*group, group)...)
				in.Data = append(in.Data, rows(gate, h*group, group)...)
			}
			m.Add(in)
		}
	})
	for _, num := range []kernel.Numerics{kernel.Fast, kernel.Exact} {
		if !slices.Equal(logitsOf(t, old, num), logitsOf(t, plain, num)) {
			t.Errorf("numerics %d: other logits", num)
		}
	}
}

// TestHybridFamiliesRefuse: a tensor that is missing is named.
func TestHybridFamiliesRefuse(t *testing.T) {
	needed := []string{"ssm_out.weight", "ssm_a", "ssm_conv1d.weight", "ssm_dt.bias", "ssm_conv1d_k.weight", "shortconv.conv.weight", "ffn_latent_up.weight",
		"hc_ffn_up.weight", "ple_norm_key.weight", "indexer.k_norm.weight", "attn_k_b.weight", "per_layer_token_embd.weight", "output_hc_norm.weight"}
	for _, name := range append([]string{"laguna", "nemotron_h_moe-latent"}, recurrent...) {
		t.Run(name, func(t *testing.T) {
			plain := conform.Shared(t, "conformance/models/"+name+".gguf")
			f, err := gguf.Open(plain)
			if err != nil {
				t.Fatal(err)
			}
			for _, ending := range needed {
				i := slices.IndexFunc(f.Tensors, func(x gguf.Tensor) bool { return strings.HasSuffix(x.Name, ending) })
				if i < 0 {
					continue
				}
				tensor := f.Tensors[i].Name
				path := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Take(t, tensor) })
				if says := refusal(t, path); !strings.Contains(says, tensor) {
					t.Errorf("without %s: %s", tensor, says)
				}
			}
		})
	}
}

// Laguna's windowed layers turn by the base of the others where the file gives them
// none, as llama.cpp has it.
func TestWindowsOfLagunaTurnLikeTheRest(t *testing.T) {
	plain := conform.Shared(t, "conformance/models/laguna.gguf")
	without := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Set["laguna.rope.freq_base_swa"] = nil })
	same := gguftest.Rewrite(t, plain, func(m *gguftest.Model) { m.Set["laguna.rope.freq_base_swa"] = float32(500000) })
	logits := func(path string) []float32 {
		return load(t, path, kernel.Fast, 2, 32).eval(t, conform.Load(t, "laguna").Tokens, 32, attn.KVF32)
	}
	if !slices.Equal(logits(without), logits(same)) || slices.Equal(logits(same), logits(plain)) {
		t.Error("without a base of their own they turn by another")
	}
}

// TestHybridsDecodeWithoutAllocating: a token makes no garbage.
func TestHybridsDecodeWithoutAllocating(t *testing.T) {
	for _, name := range append([]string{"laguna", "nemotron_h_moe-latent", "deepseek2", "glm-dsa", "deepseek4", "gemma4"}, recurrent...) {
		m := load(t, conform.Shared(t, "conformance/models/"+name+".gguf"), kernel.Fast, 1, 32)
		st, err := m.arch.NewState(64, attn.KVF16)
		if err != nil {
			t.Fatal(err)
		}
		logits, id := make([]float32, m.arch.Info().Vocab), []int32{5}
		step := func() {
			if err := m.arch.Forward(context.Background(), st, id, logits); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 { // forms of activations are allocated when they are first met
			step()
		}
		if n := testing.AllocsPerRun(30, step); n != 0 {
			t.Errorf("%s: %v allocations a token", name, n)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
