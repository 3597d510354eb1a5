// Package ab holds runs against each other and makes the runs that a comparison
// needs, on any backend.
package ab

import (
	"context"

	"bmoe/engine/backend"
)

// Engine is what a pair of runs needs: of a backend.Backend and of a
// backend.Tunable.
type Engine interface {
	Again(context.Context, func(backend.Delta)) (*backend.Run, error)
	Apply(map[string]string) []backend.Outcome
}

// Leg is one run of a pair, about to begin.
type Leg struct {
	N, Of    int
	Outcomes []backend.Outcome // of the settings changed for it
	Done     *backend.Run      // the leg before, if there was one
}

// Pair repeats the last prompt twice, under the settings old and then under now,
// and returns the runs that there were. The settings end as now, also after a
// stop or an error. each hears of every leg before it runs, on this goroutine.
//
// Where the old settings cannot be had again, the first leg is left out: nothing
// could be said of it. The outcomes of the second leg's change say why.
func Pair(ctx context.Context, e Engine, old, now map[string]string, each func(Leg), onDelta func(backend.Delta)) (runs []*backend.Run, err error) {
	back := e.Apply(old)
	if refused := firstRefused(back); refused == nil {
		each(Leg{N: 1, Of: 2, Outcomes: back})
		run, err := e.Again(ctx, onDelta)
		if run != nil {
			runs = append(runs, run)
		}
		if err != nil || run.Err != nil {
			e.Apply(now)
			return runs, err
		}
		back = nil
	}
	outcomes := append(back, e.Apply(now)...)
	var done *backend.Run
	if len(runs) > 0 {
		done = runs[0]
	}
	each(Leg{N: 2, Of: 2, Outcomes: outcomes, Done: done})
	run, err := e.Again(ctx, onDelta)
	if run != nil {
		runs = append(runs, run)
	}
	return runs, err
}

// firstRefused returns the first wish that was not applied, or nil.
func firstRefused(outcomes []backend.Outcome) *backend.Outcome {
	for i := range outcomes {
		if outcomes[i].Verdict != backend.Applied {
			return &outcomes[i]
		}
	}
	return nil
}
