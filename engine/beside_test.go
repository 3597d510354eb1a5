package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
)

// Of two engines on one drive the second warns, and runs at the same time are marked
// disturbed in both; runs one after the other are not, for that reason.
func TestTwoEnginesOnOneDrive(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Locks = conform.File(t, "models/qwen3moe.gguf"), true, conform.TempDir(t)
	first := open(t, cfg)
	if first.meter.running == nil {
		t.Skip("the drive here has no name")
	}
	second := open(t, cfg)
	warned := func(s *Session) bool {
		return slices.ContainsFunc(s.Warnings(), func(w string) bool { return strings.Contains(w, "another bmoe") })
	}
	if warned(first) || !warned(second) {
		t.Errorf("the first warns: %v, the second: %v", warned(first), warned(second))
	}
	var inner *backend.Run
	outer, err := first.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 12, OnDelta: func(backend.Delta) {
		if inner == nil {
			inner = answerOf(t, second, prompt)
		}
	}})
	if err != nil || outer.Err != nil {
		t.Fatal(err, outer.Err)
	}
	if !slices.Contains(inner.Result.Flags, "contended") {
		t.Errorf("a run inside another's: %v", inner.Result.Flags)
	}
	second.meter.running.Take() // in a run that lasts beyond the first's end
	if r := answerOf(t, first, prompt); !slices.Contains(r.Result.Flags, "contended") {
		t.Errorf("a run beside another's: %v", r.Result.Flags)
	}
	second.meter.running.Leave()
}
