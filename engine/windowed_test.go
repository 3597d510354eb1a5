package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
)

// windowed returns a configuration over a small gpt-oss model: half of its layers
// see 40 positions, and a ring for them has fewer than the tests below reach.
func windowed(t testing.TB) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = filepath.Join(conform.TempDir(t), "oss.gguf"), true, 2
	err := synth.Write(cfg.Model, synth.Spec{Arch: "gpt-oss", Layers: 4, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Experts: 8, Used: 2, ExpertFF: 64,
		Vocab: 600, Ctx: 4096, Type: "MXFP4_MOE", Window: 40, Yarn: 4, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// windowedPrompt has some 340 tokens.
var windowedPrompt = strings.Repeat(" tasi nopo vu", 85)

// TestWindowedOneText: what TestOneText says holds of a model whose layers keep a
// window of keys, beyond what their rings hold.
func TestWindowedOneText(t *testing.T) {
	base := windowed(t)
	run := func(cfg Config) (string, []float32) {
		s := open(t, cfg)
		r, err := s.Generate(context.Background(), backend.Request{Text: windowedPrompt, MaxTokens: 24})
		if err != nil || r.Err != nil {
			t.Fatal(err, r)
		}
		ids := s.text.RawPrompt(windowedPrompt)
		if len(ids) < 300 {
			t.Fatalf("a prompt of %d tokens stays within the ring", len(ids))
		}
		logits, err := s.Eval(context.Background(), ids, false)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs), logits
	}
	base.Cache = Budget{Bytes: layerBytes(t, base)}
	resident := base
	resident.Stream, resident.Dense = false, DenseMmap
	text, logits := run(resident)
	for name, change := range map[string]func(*Config){
		"streamed":                 func(*Config) {},
		"serial, 1 lane":           func(c *Config) { c.Overlap, c.Lanes = false, 1 },
		"released":                 func(c *Config) { c.ReleaseMmap = true },
		"1 thread, batches of 1":   func(c *Config) { c.Threads, c.UBatch = 1, 1 },
		"3 threads, batches of 7":  func(c *Config) { c.Threads, c.UBatch = 3, 7 },
		"8 lanes, batches of 100":  func(c *Config) { c.Lanes, c.UBatch = 8, 100 },
		"resident, one large part": func(c *Config) { c.Stream, c.Dense, c.UBatch = false, DenseAnon, 512 },
	} {
		cfg := base
		change(&cfg)
		gotText, gotLogits := run(cfg)
		if gotText != text {
			t.Errorf("%s: another text than resident", name)
		}
		if !slices.Equal(gotLogits, logits) {
			t.Errorf("%s: other logits than resident", name)
		}
	}
}

// A windowed layer takes the memory of its window, a mark goes back to it, and
// what is then computed is what a fresh session computes.
func TestWindowedGoesBack(t *testing.T) {
	cfg := windowed(t)
	s := open(t, cfg)
	full := cfg
	full.Model = filepath.Join(conform.TempDir(t), "full.gguf")
	// The same shape, with a window that no position falls out of.
	if err := synth.Write(full.Model, synth.Spec{Arch: "gpt-oss", Layers: 4, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Experts: 8, Used: 2, ExpertFF: 64,
		Vocab: 600, Ctx: 4096, Type: "MXFP4_MOE", Window: 4096, Yarn: 4, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	if got, all := s.state.Bytes(), open(t, full).state.Bytes(); got > all*3/4 {
		t.Errorf("with windows the state takes %d bytes, without %d", got, all)
	}
	ctx := context.Background()
	ask := func(s *Session, text string) string {
		t.Helper()
		r, err := s.Generate(ctx, backend.Request{Text: text, MaxTokens: 30})
		if err != nil || r.Err != nil {
			t.Fatal(err, r)
		}
		return fmt.Sprint(r.Result.TokenIDs)
	}
	ask(s, windowedPrompt)
	for _, text := range []string{
		windowedPrompt + " meno", // goes back a few positions
		windowedPrompt[:len(windowedPrompt)/2] + " zeli",
		" tasi meno",
		windowedPrompt + " meno",
	} {
		if got, want := ask(s, text), ask(open(t, cfg), text); got != want {
			t.Errorf("%q... gives %s after other prompts, %s in a fresh session", text[:10], got, want)
		}
	}
	first := ask(s, windowedPrompt)
	again, err := s.Again(ctx, nil)
	if err != nil || again.Err != nil {
		t.Fatal(err, again)
	}
	if got := fmt.Sprint(again.Result.TokenIDs); got != first {
		t.Errorf("again gives %s, before it was %s", got, first)
	}
}
