package model

import (
	"slices"
	"testing"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// long returns a prompt of n tokens, made of a short one.
func long(ids []int32, n int) []int32 {
	all := slices.Repeat(ids, n/len(ids)+1)
	for i := range all {
		all[i] = (all[i] + int32(i/7)) % 280
	}
	return all[:n]
}

// What some families remember of far back comes into play only in longer prompts: keys
// with a window that later layers take, choices of an indexer, summaries of blocks. One
// batch then gives the bits of one token at a time, and so does a state that goes on from
// a mark.
func TestLongPrompts(t *testing.T) {
	for _, name := range []string{"gemma4-ple", "glm-dsa", "deepseek4", "deepseek4-hca"} {
		t.Run(name, func(t *testing.T) {
			g := conform.Load(t, name)
			m := load(t, conform.Shared(t, "conformance/models/"+name+".gguf"), kernel.Fast, 2, 300)
			ids := long(g.Tokens, 300)
			eval := func(batch int) []float32 {
				st, err := m.arch.NewState(400, attn.KVF16)
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
					if err := st.Mark(st.Len()); err != nil {
						t.Fatal(err)
					}
				}
				last := slices.Clone(logits[(len(ids)-1)*vocab:])
				n, err := st.Rewind(290)
				if err != nil {
					t.Fatal(err)
				}
				for i := n; i < len(ids); i += 100 { // in other pieces than before
					k := min(100, len(ids)-i)
					if err := m.arch.Forward(t.Context(), st, ids[i:i+k], logits[i*vocab:][:k*vocab]); err != nil {
						t.Fatal(err)
					}
				}
				return append(logits, last...)
			}
			want := eval(1)
			for _, batch := range []int{300, 70} {
				if !slices.Equal(eval(batch), want) {
					t.Errorf("batches of %d give other bits than single tokens", batch)
				}
			}
		})
	}
}
