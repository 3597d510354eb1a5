//go:build !windows

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// copyOf copies a model to where a test may spoil it.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(conform.TempDir(t), filepath.Base(path))
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestLanesThatCannotBeOpenedAgain takes the file away under an open session,
// which Windows does not allow.
func TestLanesThatCannotBeOpenedAgain(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = copyOf(t, conform.File(t, "models/qwen3moe.gguf")), true
	want, _ := outcome(t, cfg)
	s := open(t, cfg)
	hidden := cfg.Model + ".away"
	change := func(on bool) (backend.Outcome, profile.Mapping) {
		var snap profile.Snapshot
		o := s.Apply(map[string]string{"release-mmap": backend.OnOff(on)})[0]
		s.Snapshot(&snap)
		return o, snap.Mapping
	}
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	rename(cfg.Model, hidden)
	// The mapping goes, whether or not lanes can be opened afterwards.
	if o, m := change(true); o.Verdict != backend.Declined || o.Value != "on" || m.State != profile.MappingReleased || m.Bytes != 0 || m.LanesReopened {
		t.Errorf("released without lanes: %+v, %+v", o, m)
	}
	if o, m := change(false); o.Verdict != backend.Declined || o.Value != "on" || m.State != profile.MappingReleased || m.Bytes != 0 || strings.Contains(o.Reason, "\n") {
		t.Errorf("mapped without a file: %+v, %+v", o, m)
	}
	if o := s.Apply(map[string]string{"lanes": "2"})[0]; o.Verdict != backend.Declined || strings.Contains(o.Reason, "\n") {
		t.Errorf("lanes without a file: %+v", o)
	}
	if _, err := s.Generate(context.Background(), backend.Request{Text: prompt}); !errors.Is(err, errNoLanes) {
		t.Errorf("a generation without lanes: %v", err)
	}
	if _, err := s.Eval(context.Background(), []int32{1}, false); !errors.Is(err, errNoLanes) {
		t.Errorf("logits without lanes: %v", err)
	}
	rename(hidden, cfg.Model)
	if o, m := change(false); o.Verdict != backend.Applied || m.State != profile.MappingMapped || m.Bytes == 0 {
		t.Errorf("mapped again: %+v, %+v", o, m)
	}
	r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24})
	if err != nil || r.Err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs); got != want.hash {
		t.Error("with new lanes the text is another")
	}
}
