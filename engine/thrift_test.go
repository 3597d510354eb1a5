package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// thrifty is a model whose cache holds a part of what it needs.
func thrifty(t *testing.T) Config {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = conform.File(t, "models/qwen3moe.gguf"), true, 2
	cfg.Cache = Budget{Bytes: 5 * layerBytes(t, cfg)}
	return cfg
}

func answerOf(t *testing.T, s *Session, text string) *backend.Run {
	t.Helper()
	r, err := s.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 24})
	if err == nil {
		err = r.Err
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each lossy setting saves reads, says that it is lossy, and decides by the route
// alone: lanes, threads, guesses and the prompt's batches change nothing.
func TestThrift(t *testing.T) {
	cfg := thrifty(t)
	want := answerOf(t, open(t, cfg), prompt)
	if want.Result.Cache.Dropped.OK || slices.Contains(want.Result.Flags, "lossy") {
		t.Errorf("without a lossy setting: %v, %+v", want.Result.Flags, want.Result.Cache)
	}
	for name, lossy := range map[string]func(*Config){
		"drop":           func(c *Config) { c.DropCold = 0.25 },
		"drop, renorm":   func(c *Config) { c.DropCold, c.DropRenorm = 0.5, true },
		"substitute":     func(c *Config) { c.Substitute = 0.5 },
		"any substitute": func(c *Config) { c.Substitute = 1 },
		"both":           func(c *Config) { c.Substitute, c.DropCold = 0.2, 1 },
	} {
		c := cfg
		lossy(&c)
		s := open(t, c)
		r := answerOf(t, s, prompt)
		got, sum := &r.Result.Cache, r.Sum
		if sum.ExpertBytes >= want.Sum.ExpertBytes || got.Dropped.Value+got.Substituted.Value == 0 || !got.Dropped.OK {
			t.Errorf("%s: %d bytes read of %d, %+v", name, sum.ExpertBytes, want.Sum.ExpertBytes, got)
		}
		if !slices.Contains(r.Result.Flags, "lossy") {
			t.Errorf("%s: flags %v", name, r.Result.Flags)
		}
		var live profile.Snapshot
		if s.Snapshot(&live); !live.Lossy || !live.Cache.Thrifty || !live.Cache.DroppedPerTok.OK {
			t.Errorf("%s: the screen does not learn of it: %+v", name, live.Cache)
		}
		if r.Result.TokenIDs[0] != want.Result.TokenIDs[0] {
			t.Errorf("%s: the prompt gives another token", name)
		}
		if c.Substitute == 1 && sum.Lookups-sum.Hits > sum.Lookups/20 { // a layer may hold too few
			t.Errorf("%s: %d of %d lookups missed though anything may be replaced", name, sum.Lookups-sum.Hits, sum.Lookups)
		}
		for other, change := range map[string]func(*Config){
			"lanes":   func(c *Config) { c.Lanes = 1 },
			"threads": func(c *Config) { c.Threads = 3 },
			"serial":  func(c *Config) { c.Overlap = false },
			"guesses": func(c *Config) { c.Foresight = expert.Foresight{1, 4, 2} },
		} {
			c := c
			change(&c)
			if o := answerOf(t, open(t, c), prompt); o.Result.TextSHA256 != r.Result.TextSHA256 || o.Sum.Dropped != sum.Dropped || o.Sum.Substituted != sum.Substituted {
				t.Errorf("%s, %s: another text, or %d dropped and %d replaced, not %d and %d", name, other, o.Sum.Dropped, o.Sum.Substituted, sum.Dropped, sum.Substituted)
			}
		}
	}
}

// Where every expert is there already, nothing is lost; and what is switched off has
// no effect any more.
func TestThriftSparesOnlyReads(t *testing.T) {
	cfg := thrifty(t)
	cfg.Cache = Budget{Bytes: 1 << 40}
	s := open(t, cfg)
	want := answerOf(t, s, prompt)
	apply := func(wishes map[string]string) {
		t.Helper()
		for _, o := range s.Apply(wishes) {
			if o.Verdict != backend.Applied {
				t.Fatalf("%+v", o)
			}
		}
	}
	apply(map[string]string{"drop-cold": "1", "substitute": "1"})
	got := answerOf(t, s, prompt) // the cache is as the first run left it
	if got.Result.TextSHA256 != want.Result.TextSHA256 || got.Sum.Dropped+got.Sum.Substituted != 0 {
		t.Errorf("with all experts there: another text, or %d dropped and %d replaced", got.Sum.Dropped, got.Sum.Substituted)
	}
	cold, err := s.Again(context.Background(), nil)
	if err != nil || cold.Sum.Substituted == 0 {
		t.Fatalf("%v, %+v", err, cold)
	}
	apply(map[string]string{"drop-cold": "0", "substitute": "0"})
	again, err := s.Again(context.Background(), nil)
	if err != nil || fmt.Sprint(again.Result.TokenIDs) != fmt.Sprint(want.Result.TokenIDs) || again.Result.Cache.Dropped.OK {
		t.Errorf("switched off: %v, %v, want %v", err, again.Result.TokenIDs, want.Result.TokenIDs)
	}
}
