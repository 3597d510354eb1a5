package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/internal/conform"
)

// open opens a session for a test.
func open(t testing.TB, cfg Config) *Session {
	t.Helper()
	s, err := Open(context.Background(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// generated is what must not depend on how a model is run.
type generated struct {
	hash   string // of the text and the ids
	logits []uint32
}

// outcome runs a configuration: a prompt continued, and the logits of a
// sequence evaluated in batches.
func outcome(t testing.TB, cfg Config) (generated, *backend.Run) {
	t.Helper()
	s := open(t, cfg)
	r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24})
	if err != nil {
		t.Fatal(err)
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	ids := s.text.RawPrompt(prompt)
	logits, err := s.Eval(context.Background(), ids, false)
	if err != nil {
		t.Fatal(err)
	}
	g := generated{hash: fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs)}
	for _, l := range logits {
		g.logits = append(g.logits, math.Float32bits(l))
	}
	return g, r
}

const prompt = "Once upon a time there was a small house in a deep forest, and in it there lived"

// TestOneText: text and logits are the same bits however a model is run.
func TestOneText(t *testing.T) {
	for _, path := range []string{"models/qwen3moe.gguf", "models/qwen3moe-tied.gguf", "split/qwen3moe-00001-of-00003.gguf",
		"quants/qwen3moe-q-Q4_K_M.gguf", "quants/qwen3moe-q-Q8_0.gguf"} {
		for _, num := range []string{"fast", "exact"} {
			if num == "exact" && path != "models/qwen3moe.gguf" && !strings.Contains(path, "Q4_K_M") || testing.Short() && (num == "exact") != strings.Contains(path, "Q4_K_M") {
				continue // the slow arithmetic needs no more files; short: one kind for each
			}
			t.Run(strings.ReplaceAll(path, "/", "_")+"/"+num, func(t *testing.T) {
				t.Parallel() // they wait for reads most of the time
				base := DefaultConfig()
				base.Model, base.Raw, base.Numerics, base.Threads, base.Ctx = conform.File(t, path), true, num, 2, 256
				if num == "exact" {
					base.KVType = "f32"
				}
				base.Stream, base.Dense = false, DenseMmap
				want, _ := outcome(t, base) // resident: everything from the mapping

				streamed := base
				streamed.Stream, streamed.Dense, streamed.Cache = true, DenseAnon, Budget{Bytes: 1 << 40}
				small := streamed
				small.Cache.Bytes = layerBytes(t, streamed)
				with := func(c Config, f func(*Config)) Config {
					f(&c)
					return c
				}
				cells := map[string]Config{
					"streamed":                     streamed,
					"resident, dense anon":         with(base, func(c *Config) { c.Dense = DenseAnon }),
					"streamed, dense mmap":         with(streamed, func(c *Config) { c.Dense = DenseMmap }),
					"streamed, dense warm":         with(streamed, func(c *Config) { c.Dense = DenseWarm }),
					"released":                     with(streamed, func(c *Config) { c.ReleaseMmap = true }),
					"one layer":                    small,
					"one layer, released":          with(small, func(c *Config) { c.ReleaseMmap = true }),
					"one layer, serial":            with(small, func(c *Config) { c.Overlap = false }),
					"one layer, buffered":          with(small, func(c *Config) { c.NoDirect = true }),
					"one layer, io_uring":          with(small, func(c *Config) { c.IOEngine = "uring" }),
					"half":                         with(small, func(c *Config) { c.Cache.Bytes *= 2 }),
					"serial":                       with(streamed, func(c *Config) { c.Overlap = false }),
					"simulated host":               with(streamed, func(c *Config) { c.SimulateHost = "ntfs" }),
					"whole layers":                 with(small, func(c *Config) { c.LoadAll = true }),
					"whole layers, serial":         with(small, func(c *Config) { c.LoadAll, c.Overlap = true, false }),
					"one layer, batch 1, 1 thread": with(small, func(c *Config) { c.UBatch, c.Threads = 1, 1 }),
				}
				for lead := range 3 {
					cells[fmt.Sprint("guesses ", lead)] = with(small, func(c *Config) {
						c.Foresight, c.Cache.Bytes = expert.Foresight{1 - lead%2, 2 * lead, lead}, 2*c.Cache.Bytes
					})
				}
				for _, name := range policy.Names() {
					cells["policy "+name] = with(small, func(c *Config) { c.CachePolicy, c.Cache.Bytes = name, 2*c.Cache.Bytes })
				}
				for _, n := range []int{1, 2, 4, 8} {
					cells[fmt.Sprint("lanes ", n)] = with(small, func(c *Config) { c.Lanes = n })
				}
				for _, n := range []int{1, 2, 3} {
					cells[fmt.Sprint("threads ", n)] = with(small, func(c *Config) { c.Threads = n })
				}
				for _, n := range []int{1, 7, 64} {
					cells[fmt.Sprint("prefill batch ", n)] = with(small, func(c *Config) { c.UBatch = n })
				}
				for name, cfg := range cells {
					got, _ := outcome(t, cfg)
					if got.hash != want.hash {
						t.Errorf("%s: another text than resident", name)
					}
					if !slices.Equal(got.logits, want.logits) {
						t.Errorf("%s: other logits than resident", name)
					}
				}
			})
		}
	}
}

// layerBytes returns one layer's working set.
func layerBytes(t testing.TB, cfg Config) int64 {
	t.Helper()
	return open(t, cfg).shape.LayerWorkingSet()
}

// TestSameDecisions: hits, evictions and bytes do not depend on lanes, threads,
// overlap or the mapping.
func TestSameDecisions(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	cfg.Cache = Budget{Bytes: 3 * layerBytes(t, cfg)}
	_, want := outcome(t, cfg)
	if want.Sum.Hits == 0 || want.Sum.Evictions == 0 {
		t.Fatalf("the case shows nothing: %d hits, %d evictions", want.Sum.Hits, want.Sum.Evictions)
	}
	for name, change := range map[string]func(*Config){
		"lanes":       func(c *Config) { c.Lanes = 1 },
		"threads":     func(c *Config) { c.Threads = 3 },
		"serial":      func(c *Config) { c.Overlap = false },
		"release":     func(c *Config) { c.ReleaseMmap = true },
		"mmap":        func(c *Config) { c.Dense = DenseMmap },
		"no guesses":  func(c *Config) { c.Foresight = expert.Foresight{} },
		"all guesses": func(c *Config) { c.Foresight = expert.Foresight{1, 4, 4} },
	} {
		c := cfg
		change(&c)
		_, r := outcome(t, c)
		got, want := r.Sum, want.Sum
		if got.Lookups != want.Lookups || got.Hits != want.Hits || got.Evictions != want.Evictions || got.Rereads != want.Rereads ||
			got.ExpertBytes != want.ExpertBytes || got.WindowBytes != want.WindowBytes {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestPartsAddUpToWall(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "quants/qwen3moe-q-Q8_0.gguf"), true
	for _, threads := range []int{1, 2, 3} {
		cfg.Threads = threads
		_, r := outcome(t, cfg)
		s := r.Sum
		if parts := s.Compute + s.Mgmt + s.Stall.Value + s.Other; math.Abs(float64(parts-s.Wall)) > 0.01*float64(s.Wall) || s.Compute == 0 || s.Mgmt == 0 {
			t.Errorf("%d threads: compute %d + mgmt %d + stall %d + other %d = %d, wall %d", threads, s.Compute, s.Mgmt, s.Stall.Value, s.Other, parts, s.Wall)
		}
		if s.StallUnion.Value > s.Wall || s.StallUnion.Value < s.Stall.Value {
			t.Errorf("%d threads: a union of stalls of %v, stall %v, wall %d", threads, s.StallUnion, s.Stall, s.Wall)
		}
		if s.MgmtSerial < s.Mgmt || s.MgmtSerial > s.Wall {
			t.Errorf("%d threads: bookkeeping held up %d, a worker's mean %d, wall %d", threads, s.MgmtSerial, s.Mgmt, s.Wall)
		}
	}
}

func TestReleaseIsDeclinedWhileWeightsLieInside(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.ReleaseMmap = conform.File(t, "models/qwen3moe-tied.gguf"), true, true
	cfg.Dense = DenseMmap
	_, r := outcome(t, cfg)
	m := r.Result.Mapping
	if m.State != "declined" || m.WeightsInside.Value == 0 || !strings.Contains(m.Reason.Value, "token_embd.weight") {
		t.Errorf("dense weights in the mapping: %+v", m)
	}
	cfg.Dense = DenseAnon
	_, r = outcome(t, cfg)
	if m := r.Result.Mapping; m.State != "released" || m.WeightsInside.Value != 0 || m.WeightsChecked.Value == 0 {
		t.Errorf("dense weights in memory: %+v", m)
	}
	cfg.Stream = false
	_, r = outcome(t, cfg)
	if m := r.Result.Mapping; m.State != "declined" || !strings.Contains(m.Reason.Value, "_exps.weight") {
		t.Errorf("experts in the mapping: %+v", m)
	}
}

func TestAgainRepeatsFromTheSameStart(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	cfg.Cache = Budget{Bytes: 3 * layerBytes(t, cfg)}
	cfg.Sampling.Temp, cfg.Sampling.Seed = 0.9, 7
	s := open(t, cfg)
	if _, err := s.Again(context.Background(), nil); !errors.Is(err, ErrNothingToRepeat) {
		t.Fatalf("again before a run: %v", err)
	}
	ctx := context.Background()
	first, err := s.Generate(ctx, backend.Request{Text: prompt, MaxTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Apply(map[string]string{"release-mmap": "on", "lanes": "1"}) {
		if o.Verdict != backend.Applied {
			t.Errorf("%+v", o)
		}
	}
	second, err := s.Again(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.StartKey != second.StartKey || !first.ColdCache || !second.ColdCache || first.Result.TextSHA256 != second.Result.TextSHA256 {
		t.Errorf("the repetition did not start or end alike: %+v, %+v", first, second)
	}
	if d := backend.Differences(first.Settings, second.Settings); !slices.Equal(d, []string{"lanes 1", "release-mmap on"}) {
		t.Errorf("settings that differ: %q", d)
	}
	if len(first.Walls) != 19 || len(second.Walls) != 19 {
		t.Errorf("the times of %d and %d tokens, want 19", len(first.Walls), len(second.Walls))
	}
	a, b := first.Sum, second.Sum
	if a.Hits != b.Hits || a.Evictions != b.Evictions || a.ExpertBytes != b.ExpertBytes {
		t.Errorf("again: %+v, first %+v", b, a)
	}
	third, err := s.Generate(ctx, backend.Request{Text: prompt + " a bear", MaxTokens: 20})
	if err != nil {
		t.Fatal(err)
	}
	if third.StartKey == first.StartKey {
		t.Error("another prompt has the same start")
	}
	if third.Result.NCached == 0 {
		t.Error("a prompt with a common beginning was prefilled from its start")
	}
}

func TestCancelLeavesTheSessionUsable(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	s := open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	r, err := s.Generate(ctx, backend.Request{Text: prompt, MaxTokens: 100, OnDelta: func(backend.Delta) {
		if n++; n == 5 {
			cancel()
		}
	}})
	if err != nil || !errors.Is(r.Err, context.Canceled) || r.Result.StopReason != stopCancelled || r.Result.NGen < 5 || r.Result.NGen > 6 {
		t.Fatalf("cancelled after 5 tokens: %v, %+v", err, r)
	}
	want, _ := outcome(t, cfg)
	r, err = s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24})
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if got := fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs); got != want.hash {
		t.Error("after a cancellation the text is another")
	}
}
