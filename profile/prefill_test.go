package profile

import (
	"slices"
	"testing"
)

func TestPrefillText(t *testing.T) {
	for _, c := range []struct {
		phase         Phase
		done, n, secs int
		want          string
	}{
		{Prefill, 0, 3000, 9, "0 of 3000 tokens"}, // nothing to go by
		{Prefill, 500, 3000, 2, "500 of 3000 tokens, about 10 s left"},
		{Prefill, 10, 3000, 6, "10 of 3000 tokens, about 30 min left"},
		{Prefill, 3000, 3000, 6, "3000 of 3000 tokens, about 1 s left"},
		{Decode, 500, 3000, 2, "500 of 3000 tokens"},
	} {
		s := Snapshot{Phase: c.phase, PromptDone: c.done, Prompt: c.n, Elapsed: int64(c.secs) * 1e9}
		if got := s.PrefillText(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestPrefillNotes(t *testing.T) {
	var n PrefillNotes
	at := func(run int, phase Phase) (due []int) {
		for tenths := range 1000 {
			if n.Due(&Snapshot{Phase: phase, Run: run, Elapsed: int64(tenths) * 1e8}) {
				due = append(due, tenths)
			}
		}
		return due
	}
	want := []int{10, 20, 40, 80, 160, 320, 620, 920}
	if got := at(1, Prefill); !slices.Equal(got, want) {
		t.Errorf("notes at tenths of seconds %v, want %v", got, want)
	}
	if got := at(1, Decode); got != nil {
		t.Errorf("decoding: %v", got)
	}
	if got := at(2, Prefill); !slices.Equal(got, want) {
		t.Errorf("the next run: %v", got)
	}
}
