package engine

import (
	"context"
	"fmt"
	"math"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
)

// What is estimated of another budget is what that budget then gives: the same
// prompt again, from the same start.
func TestWhatIfIsWhatTheBudgetGives(t *testing.T) {
	cfg := demoConfig()
	cfg.CachePolicy = "lru" // others are estimated by it
	s := open(t, cfg)
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 64})
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	var at profile.Snapshot
	s.Snapshot(&at)
	if at.Cache.WhatIfs < 6 {
		t.Fatalf("%d budgets are told of", at.Cache.WhatIfs)
	}
	inForce := 0
	for _, w := range at.Cache.WhatIf[:at.Cache.WhatIfs] {
		if w.InForce {
			inForce++
			if w.Hit != run.Result.Cache.HitPct || math.Abs(w.TPS.Value/run.Result.DecodeTPS.Value-1) > 1e-9 {
				t.Errorf("in force: %v %% hits and %v tok/s, the run had %v and %v", w.Hit, w.TPS, run.Result.Cache.HitPct, run.Result.DecodeTPS)
			}
		}
		if !w.Hit.OK {
			t.Errorf("nothing is known of %d bytes", w.Budget)
			continue
		}
		s.Apply(map[string]string{"cache": fmt.Sprint(w.Budget >> 20)})
		again, err := s.Again(context.Background(), nil)
		if err != nil || again.Err != nil {
			t.Fatal(err, again.Err)
		}
		t.Logf("%3d MiB: %5.1f %% hits, %6.3f MiB a token", units.MiBDown(w.Budget), w.Hit.Value, w.ReadPerTok.Value/units.MiB)
		if got, want := again.Result.Cache.HitPct.Value, w.Hit.Value; math.Abs(got-want) > 0.5 {
			t.Errorf("%d MiB: %.2f %% hits, estimated %.2f", units.MiBDown(w.Budget), got, want)
		}
		if got, want := again.Result.ReadMiBPerToken.Value, w.ReadPerTok.Value/units.MiB; math.Abs(got-want) > 0.02*want+0.02 {
			t.Errorf("%d MiB: %.3f MiB a token, estimated %.3f", units.MiBDown(w.Budget), got, want)
		}
	}
	if inForce != 1 {
		t.Errorf("%d budgets are said to be in force", inForce)
	}
}
