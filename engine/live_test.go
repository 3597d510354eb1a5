package engine

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
)

// bits runs an open session: a prompt from an empty state, and the logits of its ids.
func bits(t *testing.T, s *Session) generated {
	t.Helper()
	s.NewChat()
	r := answerOf(t, s, prompt)
	logits, err := s.Eval(context.Background(), s.text.RawPrompt(prompt), false)
	if err != nil {
		t.Fatal(err)
	}
	g := generated{hash: r.Result.TextSHA256}
	for _, l := range logits {
		g.logits = append(g.logits, math.Float32bits(l))
	}
	return g
}

func applied(t *testing.T, s *Session, name, value string) {
	t.Helper()
	if o := s.Apply(map[string]string{name: value})[0]; o.Verdict != backend.Applied {
		t.Errorf("%s %s: %+v", name, value, o)
	}
}

// What is changed between two runs changes no bit: workers, batches and the place of
// the dense weights, on models of one file and of several.
func TestLiveSettingsChangeNoBit(t *testing.T) {
	for _, path := range []string{"models/qwen3moe.gguf", "split/qwen3moe-00001-of-00003.gguf", "models/lfm2moe.gguf"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Model, cfg.Raw, cfg.Threads = conform.File(t, path), true, 2
			cfg.Cache = Budget{Bytes: 2 * layerBytes(t, cfg)}
			s := open(t, cfg)
			s.mostThreads = 4
			want := bits(t, s)
			for _, c := range [][2]string{
				{"threads", "1"}, {"ubatch", "3"}, {"dense-weights", "mmap"}, {"threads", "4"}, {"ubatch", "64"}, {"dense-weights", "warm"},
				{"dense-weights", "anon"}, {"release-mmap", "on"}, {"threads", "2"}, {"ubatch", "auto"}, {"ubatch", "1"},
			} {
				applied(t, s, c[0], c[1])
				if got := bits(t, s); got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
					t.Errorf("%s %s: other bits", c[0], c[1])
				}
			}
			if o := s.Apply(map[string]string{"dense-weights": "mmap"})[0]; o.Verdict != backend.Declined || !strings.Contains(o.Reason, "{release-mmap=off}") {
				t.Errorf("dense weights in a mapping that is gone: %+v", o)
			}
			if o := s.Apply(map[string]string{"threads": "5"})[0]; o.Verdict != backend.Declined {
				t.Errorf("more workers than were provided for: %+v", o)
			}
			if w := s.compute.Pool.Workers(); w != 2 || s.Config().Threads != 2 {
				t.Errorf("%d workers, said to be %d", w, s.Config().Threads)
			}
		})
	}
}

// Dense weights in the mapping keep it from being released, and in memory they do not,
// also after they were moved.
func TestDenseWeightsMove(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe-tied.gguf"), true
	s := open(t, cfg)
	applied(t, s, "dense-weights", "mmap")
	if s.dense != nil {
		t.Error("their own memory is kept")
	}
	if o := s.Apply(map[string]string{"release-mmap": "on"})[0]; o.Verdict != backend.Declined {
		t.Errorf("released under the dense weights: %+v", o)
	}
	applied(t, s, "dense-weights", "anon")
	applied(t, s, "release-mmap", "on")
	answerOf(t, s, prompt)
}

func TestSamplingAndLengthAreLive(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	s := open(t, cfg)
	greedy := answerOf(t, s, prompt)
	applied(t, s, "temp", "1.5")
	applied(t, s, "seed", "3")
	if hot := answerOf(t, s, prompt); hot.Result.TextSHA256 == greedy.Result.TextSHA256 || hot.StartKey == greedy.StartKey {
		t.Error("another temperature gives the same text, or is said to start alike")
	}
	applied(t, s, "temp", "0")
	applied(t, s, "n-predict", "5")
	if r := answerOf(t, s, prompt); r.Result.NGen != 5 || r.Result.StopReason != stopLength {
		t.Errorf("%d tokens, %s; want 5", r.Result.NGen, r.Result.StopReason)
	}
	applied(t, s, "n-predict", "50")
	if r := answerOf(t, s, prompt); r.Result.TextSHA256 != greedy.Result.TextSHA256 {
		t.Error("24 tokens asked for and 50 allowed give another text than 24")
	}
	if o := s.Apply(map[string]string{"top-p": "2"})[0]; o.Verdict != backend.Declined || s.Config().Sampling.TopP != cfg.Sampling.TopP {
		t.Errorf("a mass of 2: %+v", o)
	}
}

// A batch is chosen that reads the experts of a long prompt once, if it is no larger
// than the context.
func TestTheBatchIsChosen(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	for ctx, want := range map[int]int{100: 100, 300: 256, 600: 512, 4096: mostUBatch} {
		cfg.Ctx = ctx
		if got := open(t, cfg).Config().UBatch; got != want {
			t.Errorf("context %d: batches of %d, want %d", ctx, got, want)
		}
	}
	cfg.Stream, cfg.Ctx = false, 4096
	if got := open(t, cfg).Config().UBatch; got != usualUBatch {
		t.Errorf("not streamed: batches of %d, want %d", got, usualUBatch)
	}
}
