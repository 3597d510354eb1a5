package tui

import (
	"fmt"
	"strings"
	"testing"

	"bmoe/profile"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Experts makes up a map of the fake's model, whose figures follow from the tokens so far.
func (f *fakeEngine) Experts(dst *profile.ExpertMap) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.s
	dst.Reset(s.Model.Layers, s.Model.Experts)
	dst.Policies, dst.Timed, dst.Token = []string{"lru"}, true, int32(s.Count)
	for l := range dst.Layers {
		n := int64(s.Step)
		dst.Layers[l] = profile.MapLayer{Bytes: 1_800_000, Tokens: n, Compute: n * 2_600_000, Mgmt: n * 600_000, Stall: n * int64(1+l%7) * 1_000_000}
		for e := range s.Model.Experts {
			c := dst.Cell(l, e)
			c.By = -1
			if s.Count < 20 || (l*31+e*7)%3 == 0 {
				continue
			}
			age := int32((l*13 + e*29) % 40)
			if c.Used = dst.Token - age; c.Used <= 0 {
				*c = profile.ExpertCell{By: -1}
				continue
			}
			c.Uses, c.State = 9, profile.Resident
			switch (l + e) % 4 {
			case 0:
				c.Read, c.Reads = c.Used, 3
			case 1:
				c.Gone, c.Why, c.By, c.State = c.Used, profile.GonePolicy, int32(l*s.Model.Experts), profile.Absent
			case 2:
				if e%5 == 0 {
					c.Guessed, c.State = dst.Token-age/4, profile.Ahead
				}
			}
		}
	}
}

func TestExpertsAndLayers(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, kind := range []string{"unicode", "ascii", "colourless"} {
			name := fmt.Sprintf("%dx%d-%s", size.w, size.h, kind)
			t.Run(name, func(t *testing.T) {
				h := start(t, size.w, size.h, Options{ASCII: kind == "ascii"}, newFake())
				h.m.th.NoColor = kind == "colourless"
				h.ask("Why?")
				h.keys("f8")
				h.tick()
				h.keys("right", "right", "down")
				golden(t, "experts-"+name, h.screen())
				h.keys("l")
				golden(t, "layers-"+name, h.screen())
				h.keys("esc")
				h.wants("layer 1, expert 2")
				h.keys("f8")
				if h.m.views.Top() != nil {
					t.Error("F8 does not close the map")
				}
			})
		}
	}
}

// The map of 48 layers of 128 experts fits 160 x 50, two layers a row, and every layer is
// there; z makes it a row a layer.
func TestTheMapFits(t *testing.T) {
	f := newFake()
	f.s.Model.Layers, f.s.Model.MoELayers, f.s.Model.Experts = 48, 48, 128
	h := start(t, 160, 50, Options{}, f)
	h.ask("Why?")
	h.keys("f8")
	h.tick()
	for l := 0; l < 48; l += 2 {
		h.wants(fmt.Sprintf("\n│ %3d ", l))
	}
	h.wants("two layers a row", "hit  91")
	golden(t, "experts-160x50", h.screen())
	frame := h.m.frame()
	if !strings.Contains(frame, "▀") || ansi.Strip(frame) == frame {
		t.Error("no half blocks")
	}
	h.keys("z")
	h.lacks("two layers a row")
	h.wants("\n│   1 ", "\n│  36 ")
	for range 60 {
		h.keys("down")
	}
	h.keys("end")
	h.wants("layer 47, expert 127", "\n│  47 ")
	h.keys("z", "pgup", "home")
	h.wants("layer 37, expert 0", "two layers a row")
}

// Cells light up and cool down, and what is told of them agrees.
func TestCellsCoolDown(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{ASCII: true}, f)
	h.ask("Why?")
	h.keys("f8")
	h.tick()
	m := h.m.residents.Map
	c := m.Cell(0, 0)
	show := func(want string, told ...string) {
		t.Helper()
		h.m.residents.Map = m
		for _, line := range strings.Split(h.screen(), "\n") {
			if s, ok := strings.CutPrefix(line, "|   0 "); ok && s[:1] != want {
				t.Errorf("%+v at token %d is drawn as %q, want %q", *c, m.Token, s[:1], want)
			}
		}
		h.wants(told...)
	}
	h.keys("right") // the cursor is elsewhere
	m.Token = 100
	*c = profile.ExpertCell{Used: 100, Uses: 1, State: profile.Resident, By: -1}
	show("H")
	c.Read, c.Reads = 100, 1
	show("R")
	m.Token = 104
	show("r")
	m.Token = 117
	show(".")
	c.Gone, c.State, c.Why, c.By = 117, profile.Absent, profile.GonePolicy, 300
	show("X")
	m.Token = 130
	show("x")
	c.Guessed, c.State = 130, profile.Ahead
	show("P")
	m.Token = 150
	c.State = profile.Absent
	show(" ")
	h.keys("left")
	h.wants("layer 0, expert 0: not in memory, 1.72 MiB", "used 1 time, last 50 tokens ago; 0.0 % of them from memory; read 1 time, last 50 tokens ago",
		"given up 33 tokens ago by lru for layer 1, expert 44; read ahead 20 tokens ago")
	c.Why, c.By = profile.GoneShrunk, -1
	h.wants("given up 33 tokens ago: the budget became smaller")
	c.Why = profile.GoneFailed
	h.wants("its read failed")
	c.Why = profile.GoneLayer
	h.wants("whole layers are read")
	c.Why = 250
	h.wants("given up 33 tokens ago;")
}

// What has no experts says why, and never a figure of 0.
func TestNoMap(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.keys("tab", "x")
	h.tick()
	h.wants("in memory")
	s := *h.m.live
	h.m.residents.Snapshot = &s
	s.Cache.Streaming = false
	h.wants("not streaming: experts are computed from the file's mapping")
	s.Model.MoELayers = 0
	h.wants("not MoE: nothing to stream")
	h.keys("l")
	h.m.residents.Map.NoStall = true
	h.wants("not MoE: nothing to stream", "n/a", "compute")
	s.Model.MoELayers = 40
	h.wants("waiting n/a: reads are page faults")
	h.m.residents.Map.Layers[0].Tokens = 0
	h.wants("n/a: what layers cost is told of an answer's tokens")
	s.Remote.Server = "vLLM"
	h.wants("n/a: the layers are not computed here")
	h.keys("esc")
	h.wants("n/a: the experts are not computed here")
	s.Remote.Server = ""
	s.Cache.Streaming = true
	h.m.residents.Map.Reset(0, 0)
	h.wants("n/a: what is open here does not tell of its experts")
	h.m.residents.Map = nil
	h.wants("nothing is known yet")
	for _, key := range []string{"up", "down", "left", "right", "end", "pgdown", "z"} {
		h.keys(key)
	}
}

// Layers are sorted by their waiting; an estimate says that it is one.
func TestLayersByWaiting(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.ask("Why?")
	h.typed("/layers")
	h.keys("enter")
	h.tick()
	h.wants("a token waits 155 ms; half of that in 13 of 40 layers")
	first := func() string { return strings.Fields(strings.Split(h.screen(), "\n")[3])[1] }
	if first() != "0" {
		t.Errorf("layer %s comes first", first())
	}
	h.keys("s")
	if first() != "6" {
		t.Errorf("layer %s waits longest", first())
	}
	h.m.residents.Map.Estimated, h.m.residents.Map.Timed = true, false
	h.wants("estimated", "the rest was not recorded", "n/a")
	h.m.residents.Map.Rebuilt = true
	h.wants("n/a/256")
	h.keys("f8")
	h.wants("1704 of 10240 in memory", "rebuilt of what was recorded", "its layer: n/a of 256 in memory")
}

// The map stands still while the panes are held, and every size gives a whole frame.
func TestTheMapAtEverySize(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.keys("tab", "space", "f8") // held still before the map was looked at
	was := h.m.residents.Map
	if was == nil || int64(was.Token) != h.m.live.Count {
		t.Fatal("nothing was held still")
	}
	h.tick()
	h.tick()
	if h.m.residents.Map != was {
		t.Error("a frozen map moves")
	}
	h.wants("FROZEN")
	h.keys("space")
	h.tick()
	h.tick()
	if h.m.residents.Map == was {
		t.Error("the map does not go on")
	}
	for _, name := range []string{"", "l"} {
		if name != "" {
			h.keys(name)
		}
		for w := 60; w <= 300; w += 13 {
			for hgt := 16; hgt <= 70; hgt += 9 {
				h.send(tea.WindowSizeMsg{Width: w, Height: hgt})
				h.screen()
				h.keys("pgdown", "end", "up")
				h.screen()
				if t.Failed() {
					t.Fatalf("at %d x %d", w, hgt)
				}
			}
		}
	}
}

// BenchmarkMap draws the map of 48 layers of 128 experts at 160 x 50, as often as the
// screen does: per mille of a core at 12 frames a second.
func BenchmarkMap(b *testing.B) {
	f := newFake()
	f.s.Model.Layers, f.s.Model.MoELayers, f.s.Model.Experts = 48, 48, 128
	f.s.Count, f.s.Step = 100, 100
	m := newModel(Options{}, term.Caps{})
	m.w, m.h, m.state = 160, 50, idle
	m.eng = f
	f.Snapshot(m.live)
	m.show(m.live)
	m.takeMap(look(f, &profile.ExpertMap{}))
	m.toggle(m.pages["experts"])
	for b.Loop() {
		m.frame()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)*12/1e6, "permille")
}
