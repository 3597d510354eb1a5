package engine

import (
	"context"
	"slices"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/engine/model"
	"bmoe/profile"
)

// TestChains: what is kept of each token is what it missed: as many as its record
// counts, those that had been there before, and none that the route did not ask for.
func TestChains(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		cfg := demoConfig()
		cfg.Cache = Budget{Bytes: 3 << 20}
		cfg.Foresight = expert.Foresight{}
		if ahead {
			cfg.Foresight = expert.Foresight{1, 1}
		}
		s := open(t, cfg)
		p, err := policy.New(s.cfg.CachePolicy, s.shape)
		if err != nil {
			t.Fatal(err)
		}
		// The same decisions again, to know who was evicted when.
		d := policy.NewDirectory(s.shape, cfg.Cache.Bytes-s.shape.Reserve(cfg.Cache.Bytes), p)
		var plan policy.Plan
		evicted, away := map[policy.Key]int{}, map[policy.Key]int{}
		n := 0
		s.compute.Watch(&model.Observer{Route: func(layer, tokens int, ids []int32, _ []float32) {
			d.Visit(layer, tokens, ids, &plan)
			for _, step := range plan.Steps {
				if step.Evicted != policy.None {
					evicted[step.Evicted] = n
				}
			}
			for _, step := range plan.Steps {
				if !step.Hit && tokens == 1 {
					away[step.Key] = profile.NeverThere
					if at, ok := evicted[step.Key]; ok {
						away[step.Key] = n - at
					}
				}
			}
		}})
		misses := make([]profile.Miss, 64)
		early := 0
		run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 48, OnDelta: func(d backend.Delta) {
			n++
			if d.Record == nil {
				clear(away)
				return
			}
			k, known := s.Chain(int64(n-2), misses)
			missed, rereads := misses[:k], 0
			for _, m := range missed {
				if m.Away != profile.NeverThere {
					rereads++
				}
				if m.Early {
					early++
				} else if m.Wait == 0 || m.Drive == 0 || m.Drive > m.Wait {
					t.Errorf("token %d: %+v: how long it took is not known", n, m)
				}
				if want, ok := away[s.shape.Key(int(m.Layer), int32(m.Expert))]; !ok || int(m.Away) != want {
					t.Errorf("token %d: %+v was evicted %d tokens ago, missed: %v", n, m, want, ok)
				}
			}
			if !known || int64(k) != d.Record.Lookups-d.Record.Hits || int64(rereads) != d.Record.Rereads {
				t.Errorf("token %d: %d misses and %d of what had been there are kept, the record counts %d and %d", n, k, rereads, d.Record.Lookups-d.Record.Hits, d.Record.Rereads)
			}
			clear(away)
		}})
		if err != nil || run.Err != nil || run.Sum.Rereads == 0 {
			t.Fatal(err, run.Err, run.Sum.Rereads)
		}
		if ahead != (early > 0) {
			t.Errorf("reading ahead %v: %d experts came early", ahead, early)
		}
		lines, err := backend.Why(s, 0)
		if err != nil || len(lines) < 3 || slices.Contains(lines, "") {
			t.Errorf("%q, %v", lines, err)
		}
		if run.Result.Memory.RecordsMiB <= 0 {
			t.Error("what is kept of tokens is not counted")
		}
	}
}
