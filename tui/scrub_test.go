package tui

import (
	"errors"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// played is an engine that plays what was recorded.
type played struct {
	*fakeEngine
	prompts []string
	path    string
}

func (p *played) Prompts() []string { return p.prompts }

func (p *played) Record(path string) error {
	if p.path != "" {
		return errors.New("recording goes on already")
	}
	p.path = path
	return nil
}

func (p *played) Moment(record int64, dst *profile.Snapshot) bool {
	p.Snapshot(dst)
	dst.Count = record + 1
	dst.Cache.HitRun = profile.Some(12.5)
	return true
}

// A recording plays by itself: its questions are asked one after the other.
func TestARecordingAsksItsOwnQuestions(t *testing.T) {
	f := newFake()
	p := &played{fakeEngine: f, prompts: []string{"the first", "the second"}}
	h := start(t, 120, 40, Options{Open: func(func(string, float64)) (backend.Backend, error) { return p, nil }}, f)
	h.wait("both runs", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
	if len(f.prompts) != 2 || f.prompts[0] != "the first" || f.prompts[1] != "the second" {
		t.Errorf("asked %q", f.prompts)
	}
	// What is held still moves by tokens, as far as there are some, and lets go of all.
	count := h.m.live.Count
	h.keys("tab", "left", "left", "left", "right")
	if h.m.frozen == nil || h.m.frozen.Count != count-2 || h.m.frozen.Cache.HitRun.Value != 12.5 {
		t.Fatalf("held at %+v of %d", h.m.frozen, count)
	}
	h.wants("FROZEN", "hit 12.5 %")
	h.keys("right", "right", "right")
	if h.m.frozen.Count != count {
		t.Errorf("moved on to token %d of %d", h.m.frozen.Count, count)
	}
	h.keys("space")
	h.lacks("FROZEN", "hit 12.5 %")
	if h.m.held != nil {
		t.Error("what was held is kept")
	}
}

// Where the engine knows no earlier moments, the tokens move.
func TestTokensMoveWithTheScreenHeld(t *testing.T) {
	h := midRun(t, 120, 40, 20)
	count := h.m.live.Count
	h.keys("tab", "left", "left")
	if h.m.frozen == nil || h.m.frozen.Count != count-2 {
		t.Fatalf("held at %+v", h.m.frozen)
	}
	h.keys("space")
	h.finish()
}

func TestRecordingFromTheChat(t *testing.T) {
	f := newFake()
	p := &played{fakeEngine: f}
	h := start(t, 120, 40, Options{Open: func(func(string, float64)) (backend.Backend, error) { return p, nil }}, f)
	h.typed("/record My File")
	h.keys("enter")
	h.wants("recording to My File")
	if p.path != "My File" {
		t.Errorf("recorded to %q", p.path)
	}
	h.typed("/record again")
	h.keys("enter")
	h.wants("recording goes on already")
	out, err := plainSession(t, newFake(), "/record x\n")
	if err != nil || !strings.Contains(out, "what this engine does cannot be recorded") {
		t.Errorf("%v\n%s", err, out)
	}
}
