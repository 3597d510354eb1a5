package tui

import (
	"fmt"
	"strings"
	"testing"

	"bmoe/internal/units"
	"bmoe/profile"

	tea "charm.land/bubbletea/v2"
)

// detailed fills in what the fake's answers leave out of a snapshot.
func detailed(s *profile.Snapshot) {
	for i := range s.Lanes.Latency {
		if i >= 8 && i < 20 {
			s.Lanes.Latency[i] = int64((i-7)*(20-i)) * 9
		}
	}
	c := &s.Cache
	c.WhatIfs = 0
	for i := range int64(8) {
		w := profile.WhatIf{Budget: 2250 * units.MiB * (i + 1), Hit: profile.Some(40 + 7.5*float64(i)), ReadPerTok: profile.Some(float64(300-36*i) * units.MiB), TPS: profile.Some(2.8 + float64(i))}
		if i == 1 {
			w.Budget, w.InForce = 3000*units.MiB, true
		}
		c.WhatIf[c.WhatIfs] = w
		c.WhatIfs++
	}
	for i := range s.Tokens {
		if r := &s.Tokens[i]; r.Run > 0 {
			r.WindowBytes, r.CPU, r.MajorFaults = r.ExpertBytes*12/10, profile.Some(850_000_000+int64(i%7)*10_000_000), profile.Some(int64(i%5))
		}
	}
}

// The expanded panes use their room.
func TestExpandedPanes(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			kind := map[bool]string{false: "unicode", true: "ascii"}[ascii]
			h := start(t, size.w, size.h, Options{ASCII: ascii}, newFake())
			h.ask("Why?")
			for i := range 60 { // the lanes pane has been looking on
				s := *h.m.live
				s.Phase, s.At = profile.Decode, int64(i)*300_000_000
				for l := range 4 {
					s.Lanes.Lane[l].Rate = profile.Some(float64(200+(i*7+l*13)%60) * units.MiB)
				}
				h.m.panes[2].Apply(&s, 0)
			}
			detailed(h.m.live)
			h.m.show(h.m.live)
			h.keys("tab", "e")
			for _, pane := range []struct{ key, name, says string }{{"2", "cache", "hits by budget"}, {"3", "lanes", "how long reads took"}, {"5", "process", "CPU ms a token"}} {
				h.keys(pane.key)
				h.wants(pane.says)
				golden(t, fmt.Sprintf("expanded-%s-%dx%d-%s", pane.name, size.w, size.h, kind), h.screen())
			}
			h.keys("e")
		}
	}
}

// What an expanded pane has no figures of is n/a; every size is filled.
func TestExpandedPanesWithoutFigures(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.keys("tab", "e", "2")
	h.wants("hits by budget: n/a", "hits % n/a")
	h.keys("3")
	h.wants("how long reads took  n/a", "all lanes, MiB/s by token n/a", "last n/a")
	h.keys("5")
	h.wants("CPU ms a token n/a", "page faults a token n/a", "tok/s n/a")
	h.keys("e")
	h.ask("Why?")
	h.ask("And why again?") // two runs, with an edge between
	detailed(h.m.live)
	h.keys("tab", "e")
	for w := 60; w <= 300; w += 17 {
		for hgt := 16; hgt <= 70; hgt += 6 {
			h.send(tea.WindowSizeMsg{Width: w, Height: hgt})
			for i := range h.m.panes {
				h.keys(fmt.Sprint(i + 1))
				h.screen()
			}
			if t.Failed() {
				t.Fatalf("at %d x %d", w, hgt)
			}
		}
	}
	h.keys("2")
	if s := h.screen(); strings.Count(s, "▶") != 2 { // the frame's, and the budget in force
		t.Errorf("the budget in force is not marked:\n%s", s)
	}
}
