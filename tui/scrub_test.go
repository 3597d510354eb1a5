package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/pane"

	tea "charm.land/bubbletea/v2"
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

func (p *played) Moment(record int64, dst *profile.Snapshot, experts *profile.ExpertMap) bool {
	p.Snapshot(dst)
	p.Experts(experts)
	experts.Token = int32(record)
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
	h.wants("FROZEN", "hits 12.5 %")
	h.keys("x")
	h.tick()
	if m := h.m.residents.Map; m == nil || int64(m.Token) != count-3 {
		t.Errorf("the map is not that of the picked token: %+v", m)
	}
	h.keys("x")
	h.keys("right", "right", "right")
	if h.m.frozen.Count != count {
		t.Errorf("moved on to token %d of %d", h.m.frozen.Count, count)
	}
	h.keys("space")
	h.lacks("FROZEN", "hits 12.5 %")
	if h.m.held != nil {
		t.Error("what was held is kept")
	}
}

// Where the engine knows no earlier moments, the tokens move.
func TestTokensMoveWithTheScreenHeld(t *testing.T) {
	h := midRun(t, 120, 40, 20)
	count := h.m.live.Count
	h.keys("tab", "left", "left")
	if h.m.frozen == nil || h.m.scrubbing.at != count-3 {
		t.Fatalf("held at %+v", h.m.scrubbing.at)
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

// scrubbed is a screen after two runs, with the panes focused.
func scrubbed(t *testing.T, w, h int, o Options) *harness {
	hs := afterPair(t, w, h, o)
	hs.keys("tab")
	return hs
}

// All tokens of the session can be reached, not only those that fit the screen.
func TestEveryTokenCanBePicked(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	for range 8 {
		h.ask("Why is this laptop slow?")
	}
	count := h.m.live.Count
	if count <= profile.RingTokens {
		t.Fatalf("%d tokens: a snapshot holds them all", count)
	}
	h.keys("tab", "left")
	at := func(want int64) {
		t.Helper()
		if got := h.m.scrubbing.at; got != want {
			t.Fatalf("at token %d, want %d", got, want)
		}
		r := f.records[want]
		h.wants(fmt.Sprintf(" %d of run %d ", r.Step, r.Run), units.Ms(r.Wall)+" ms", "▲", "FROZEN")
	}
	at(count - 2)
	h.keys("pgup", "pgup", "right")
	at(count - 21)
	h.keys("home")
	at(0)
	h.keys("left")
	at(0)
	h.keys("pgdown")
	at(10)
	h.keys("end")
	at(count - 1)
	h.keys("space")
	h.lacks("FROZEN", "▲ ")
	if h.m.scrubbing.picking() {
		t.Error("a token is picked still")
	}
	h.keys("home") // of the chat again
	if h.m.scrubbing.picking() {
		t.Error("Home picks a token with nothing held still")
	}
}

// s goes through the run's tokens by how long they took.
func TestTheSlowestToken(t *testing.T) {
	h := scrubbed(t, 120, 40, Options{})
	h.keys("s")
	h.wants("the slowest of 48 tokens of run 2")
	walls := []int64{h.m.scrubbing.lens.Record.Wall}
	for range 3 {
		h.keys("s")
		walls = append(walls, h.m.scrubbing.lens.Record.Wall)
		if r := h.m.scrubbing.lens.Record; r.Run != 2 {
			t.Fatalf("a token of run %d", r.Run)
		}
	}
	h.wants("the 4. slowest")
	all := []int64{}
	for _, r := range h.f.records {
		if r.Run == 2 {
			all = append(all, r.Wall)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	if !slices.Equal(walls, all[:4]) {
		t.Errorf("went to tokens of %v, the slowest are %v", walls, all[:4])
	}
}

// The expanded pane tells the chain of the picked token, the same that /why tells.
func TestThePickedTokenSaysWhy(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			name := fmt.Sprintf("picked-%dx%d", size.w, size.h)
			if ascii {
				name += "-ascii"
			}
			h := scrubbed(t, size.w, size.h, Options{ASCII: ascii})
			h.keys("s", "e")
			h.wants("7 experts missed", "layer 1, expert", "evicted 3 tokens ago, read behind 1 other", "[estimated]", "Left/Right token")
			golden(t, name, h.screen())
			h.keys("left")
			if r := h.m.scrubbing.lens.Record; !strings.Contains(h.screen(), fmt.Sprintf("token %d took %s ms", r.Step, units.Ms(r.Wall))) {
				t.Error("the view does not follow the token")
			}
		}
	}
	h := scrubbed(t, 120, 40, Options{})
	h.keys("tab")
	h.typed("/why 7")
	h.keys("enter")
	h.wants("token 7 took", "7 experts missed")
	h.keys("esc")
	h.typed("/why 700")
	h.keys("enter")
	h.wants("the run has no token 700")
}

// Many tokens go in a column; the slowest of them shows still.
func TestZoom(t *testing.T) {
	f := newFake()
	for range 5 {
		f.script = append(f.script, f.script[len(f.script)-40:]...)
	}
	h := start(t, 80, 24, Options{}, f)
	h.ask("Why is this laptop slow?")
	n := h.m.live.Count
	h.keys("tab", "w")
	if z := h.m.scrubbing.zoom; z != 4 {
		t.Fatalf("zoom %d for %d tokens", z, n)
	}
	h.wants("a column is 4 tokens")
	sum := int64(0)
	for _, c := range h.m.scrubbing.lens.Columns {
		sum += c.Tokens
	}
	if sum != n {
		t.Errorf("%d tokens in the picture, of %d", sum, n)
	}
	h.ask2()
	sum = 0
	for _, c := range h.m.scrubbing.lens.Columns {
		sum += c.Tokens
	}
	if sum != h.m.live.Count || sum == n {
		t.Errorf("%d tokens in the picture, of %d, after another run", sum, h.m.live.Count)
	}
	h.keys("s")
	h.wants("FROZEN", "▲")
	h.keys("Z")
	h.wants("a column is a token", "▲")
	h.keys("z", "z", "z")
	h.wants("all tokens that are known are in the picture")
	h.keys("space", "w")
	if h.m.scrubbing.zoom != 1 {
		t.Error("w does not come back to a token a column")
	}
}

// Many tokens in a column, at all sizes, with one picked.
func TestZoomedScreens(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			name := fmt.Sprintf("zoom-%dx%d", size.w, size.h)
			if ascii {
				name += "-ascii"
			}
			h := scrubbed(t, size.w, size.h, Options{ASCII: ascii})
			for range 5 {
				h.ask2()
			}
			h.keys("z", "s")
			h.m.status = ""
			golden(t, name, h.screen())
		}
	}
}

// ask2 asks again with the panes focused.
func (h *harness) ask2() {
	h.keys("g")
	h.wait("the answer", func() bool { return h.m.state == idle })
	h.tick()
	h.sameThought()
}

// A click in the picture picks what is under the mouse.
func TestAClickPicksAToken(t *testing.T) {
	h := scrubbed(t, 120, 40, Options{})
	h.screen()
	left := h.m.w - h.m.geometry().right
	h.send(tea.MouseClickMsg{X: h.m.w - 4, Y: 4, Button: tea.MouseLeft})
	first := h.m.scrubbing.at
	h.screen()
	h.send(tea.MouseClickMsg{X: h.m.w - 7, Y: 4, Button: tea.MouseLeft})
	if got := h.m.scrubbing.at; first < 0 || got != first-3 {
		t.Errorf("picked %d, and three columns before it %d", first, got)
	}
	h.send(tea.MouseClickMsg{X: left + 2, Y: 4, Button: tea.MouseLeft}) // the axis
	if got := h.m.scrubbing.at; got != first-3 {
		t.Errorf("the axis picked %d", got)
	}
}

// What the recorder has forgotten cannot be picked, and the pane says so.
func TestOlderThanTheRing(t *testing.T) {
	h := scrubbed(t, 120, 40, Options{})
	s := *h.m.live
	s.Count = profile.HistoryTokens + 5000
	h.m.take(&s)
	h.keys("left", "home")
	if from, _ := h.m.known(); from != 5000+historySlack || h.m.scrubbing.at != -1 && h.m.scrubbing.at < from {
		t.Errorf("known from %d, at %d", from, h.m.scrubbing.at)
	}
	l := pane.Lens{Picked: 0, Before: true, Columns: []pane.Column{{Tokens: 1, Wall: 1}}}
	h.m.tokens().Look(&l)
	h.m.picked = 0
	h.m.toggle(expanded{h.m})
	h.wants("earlier tokens are n/a: the latest 65536 are kept")
}
