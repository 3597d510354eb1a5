package model

import (
	"context"
	"errors"
	"slices"
	"testing"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// TestMarksInTheMiddleOfABatch: what a batch computes does not depend on where its
// memory is marked, and from such a mark on everything is as it was. What a pass
// that was cancelled came by is not marked.
func TestMarksInTheMiddleOfABatch(t *testing.T) {
	if !conform.HasShared() {
		t.Skip("needs the conformance set")
	}
	tried := 0
	for _, name := range landed {
		g := conform.Load(t, name)
		m := load(t, conform.Shared(t, "conformance/models/"+name+".gguf"), kernel.Fast, 2, 300)
		st, err := m.arch.NewState(400, attn.KVF16)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if st.Marks().Most == 0 {
			continue
		}
		tried++
		t.Run(name, func(t *testing.T) {
			ids, vocab := long(g.Tokens, 300), m.arch.Info().Vocab
			from := func(pos int) []float32 {
				t.Helper()
				logits := make([]float32, (len(ids)-pos)*vocab)
				if err := m.arch.Forward(t.Context(), st, ids[pos:], logits); err != nil {
					t.Fatal(err)
				}
				return logits
			}
			back := func(n int, want ...int) {
				t.Helper()
				if got, err := st.Rewind(n); err != nil || !slices.Contains(want, got) {
					t.Fatalf("rewound to %d: at %d, %v; want %v", n, got, err, want)
				}
			}
			mark := func(at ...int) {
				t.Helper()
				for _, n := range at {
					if err := st.Mark(n); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := from(0)
			back(0, 0)
			mark(233, 100, 300)
			if !slices.Equal(from(0), want) {
				t.Error("marks in the batch change its logits")
			}
			if kept := st.Marks().Kept; kept != 3 {
				t.Errorf("%d marks kept of 3", kept)
			}
			back(250, 233, 250) // windows reach back a little
			if n := st.Len(); !slices.Equal(from(n), want[n*vocab:]) {
				t.Error("behind the second mark the logits are others")
			}
			back(101, 100)
			ctx, cancel := context.WithCancel(t.Context())
			stop := &Observer{Layer: func(int, int) { cancel() }}
			m.c.Watch(stop)
			mark(150)
			if err := m.arch.Forward(ctx, st, ids[100:], nil); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			m.c.Unwatch(stop)
			back(100, 100)
			if !slices.Equal(from(100), want[100*vocab:]) {
				t.Error("behind the first mark the logits are others")
			}
			if kept := st.Marks().Kept; kept != 1 {
				t.Errorf("%d marks kept of 1: one of a cancelled pass, or of one that was not asked for again", kept)
			}
		})
	}
	if tried < 8 {
		t.Errorf("only %d models go back to marks", tried)
	}
}
