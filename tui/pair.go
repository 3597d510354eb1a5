package tui

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/profile"

	tea "charm.land/bubbletea/v2"
)

// legFeed hands the legs of a pair from the goroutine that runs them to the
// screen, which takes them at the next tick, before their text.
type legFeed struct {
	mu   sync.Mutex
	legs []leg
}

type leg struct {
	ab.Leg
	deltas    *deltaBuffer
	prefilled int // prompt tokens that the leg before had done
}

func (f *legFeed) add(l leg) {
	f.mu.Lock()
	f.legs = append(f.legs, l)
	f.mu.Unlock()
}

func (f *legFeed) take() []leg {
	f.mu.Lock()
	defer f.mu.Unlock()
	legs := f.legs
	f.legs = nil
	return legs
}

// againPair repeats the last prompt under the old settings and under those in
// force: there is no run yet that the latter could be held against.
func (m *Model) againPair(eng ab.Engine, old, now map[string]string) tea.Cmd {
	feed, snapshot := &legFeed{}, m.eng.Snapshot
	m.legs = feed
	return m.run(nil, again, func(ctx context.Context, first func(backend.Delta)) (run *backend.Run, err error) {
		add := first
		runs, err := ab.Pair(ctx, eng, old, now, func(l ab.Leg) {
			next := leg{Leg: l}
			if l.Done != nil {
				var s profile.Snapshot
				snapshot(&s)
				next.deltas, next.prefilled = &deltaBuffer{}, s.PromptDone
				add = next.deltas.add
			}
			feed.add(next)
		}, func(d backend.Delta) { add(d) })
		if len(runs) > 0 {
			run = runs[len(runs)-1]
		}
		return run, err
	})
}

// takeLegs begins the legs that have begun since the last call.
func (m *Model) takeLegs() {
	if m.legs == nil {
		return
	}
	for _, l := range m.legs.take() {
		if l.Done != nil {
			m.drainBuffer()
			m.closeAnswer(l.Done, l.prefilled)
		}
		for _, o := range l.Outcomes {
			if l.Done != nil {
				m.noteOutcome(o)
			} else { // the first answer stands already
				m.chat.NoteBefore(m.answer, m.now(), outcomeText(o, m.settings))
			}
		}
		if l.Done != nil {
			m.answer, m.deltas = m.chat.Answer(m.now(), ""), l.deltas
		}
		m.answer.Tag = legTag(l.Leg)
	}
}

// legTag says which of how many runs an answer is.
func legTag(l ab.Leg) string { return fmt.Sprintf("again, %d of %d", l.N, l.Of) }

// closeAnswer ends the answer of a run and takes the run into the list.
func (m *Model) closeAnswer(r *backend.Run, prefilled int) {
	m.answer.Finish()
	m.repeatable = true
	m.runs.Take(r, prefilled)
	m.answer.Tag = strings.TrimSpace(fmt.Sprintf("run %d %s", r.N, m.answer.Tag))
	m.chat.Note(m.now(), false, m.runs.Summary(r))
}
