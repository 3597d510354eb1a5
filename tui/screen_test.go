package tui

import (
	"fmt"
	"strings"
	"testing"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// afterPair is a session with a run and the same again after a release.
func afterPair(t *testing.T, w, h int, o Options) *harness {
	f := newFake()
	hs := start(t, w, h, o, f)
	hs.ask("Why is this laptop slow?")
	hs.keys("f2")
	hs.wait("the release", func() bool { return f.config().release && hs.m.state == idle })
	hs.keys("ctrl+g")
	hs.wait("the second run", func() bool { return len(hs.m.runs.All()) == 2 && hs.m.state == idle })
	hs.tick()
	hs.sameThought()
	return hs
}

func TestWholeScreens(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			kind := "unicode"
			if ascii {
				kind = "ascii"
			}
			name := fmt.Sprintf("%dx%d-%s", size.w, size.h, kind)
			t.Run(name, func(t *testing.T) {
				hs := afterPair(t, size.w, size.h, Options{ASCII: ascii})
				shot := func(part string) {
					s := hs.screen()
					if ascii && strings.IndexFunc(s, func(r rune) bool { return r > 126 }) >= 0 {
						t.Errorf("%s: a character that is not ASCII", part)
					}
					golden(t, part+"-"+name, s)
				}
				shot("main")
				hs.keys("tab")
				shot("panes")
				hs.keys("e")
				shot("timeline")
				hs.keys("e", "tab", "f10")
				shot("runs")
				hs.keys("f1")
				shot("help")
			})
		}
	}
}

// Every pane by itself, small, medium and large, before the first token and
// after a run.
func TestPanes(t *testing.T) {
	sizes := []struct{ w, h int }{{52, 3}, {70, 6}, {110, 16}}
	for _, ascii := range []bool{false, true} {
		for _, state := range []string{"fresh", "ran"} {
			kind := state + "-unicode"
			if ascii {
				kind = state + "-ascii"
			}
			t.Run(kind, func(t *testing.T) {
				f := newFake()
				h := start(t, 120, 40, Options{ASCII: ascii}, f)
				if state == "ran" {
					h.ask("Why?")
				}
				for _, p := range h.m.panes {
					name := strings.TrimPrefix(fmt.Sprintf("%T", p), "*pane.")
					var out []string
					for _, size := range sizes {
						p.SetSize(size.w, size.h)
						title := p.Title(size.w)
						rows := p.Render()
						if len(rows) != size.h {
							t.Errorf("%s: %d rows, want %d", name, len(rows), size.h)
						}
						for _, r := range rows {
							if w := h.m.th.Width(r); w != size.w {
								t.Errorf("%s at %dx%d: a row of %d columns: %q", name, size.w, size.h, w, ansi.Strip(r))
							}
						}
						if w := h.m.th.Width(title); w > size.w {
							t.Errorf("%s: a title of %d columns for %d", name, w, size.w)
						}
						out = append(out, fmt.Sprintf("%d x %d", size.w, size.h), title)
						out = append(out, rows...)
					}
					golden(t, "pane-"+name+"-"+kind, ansi.Strip(strings.Join(out, "\n")))
				}
			})
		}
	}
}

// What the panes say in the less usual states.
func TestPaneStates(t *testing.T) {
	f := newFake()
	f.simulated = true
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	s := h.m.live
	s.Mapping.State, s.Mapping.Reason = profile.MappingDeclined, "2 weights inside"
	s.Mapping.WeightsInside, s.Mapping.Inside = profile.Some[int64](2), "token_embd.weight, output.weight"
	s.Cache.BelowTokenCycle, s.Cache.BudgetAuto = true, true
	s.Lanes.Mode, s.Lanes.Reason, s.Lanes.N = "BUFFERED", "O_DIRECT is refused by tmpfs", 64
	s.Process.Disturbed.Drive, s.Process.ForeignIO = profile.Some(true), profile.Some(350.0*units.MiB)
	s.Process.Temperature = profile.Some(71.0)
	h.m.show(s)
	golden(t, "states-odd-120x40", h.screen())

	s.Cache.Streaming, s.Lanes.Engine, s.Mapping.State, s.Mapping.Views = false, "", profile.MappingNone, 0
	s.Process = profile.Process{}
	s.Model.HostMemory = profile.Maybe[int64]{}
	h.m.show(s)
	golden(t, "states-resident-120x40", h.screen())

	s.Model.MoELayers, s.Model.Experts, s.Model.ExpertsUsed = 0, 0, 0
	h.m.show(s)
	screen := h.screen()
	for _, want := range []string{"cache  not MoE: nothing to stream", "lanes  not MoE: nothing to stream",
		"threads, ubatch, dense-weights, release-mmap apply", "there are no experts that a token could read"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen of a dense model does not say %q:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "page faults of the mapping") {
		t.Error("the screen of a dense model tells of experts that are read through the mapping")
	}
}

func TestSimulatedIsSaidEverywhere(t *testing.T) {
	f := newFake()
	f.simulated = true
	h := start(t, 200, 60, Options{}, f)
	h.ask("Why?")
	lines := strings.Split(h.screen(), "\n")
	for _, at := range []string{"bmoe", "1 token", "2 cache", "3 lanes", "4 file", "5 process", "6 why it is slow"} {
		found := false
		for _, l := range lines {
			found = found || strings.Contains(l, at) && strings.Contains(l, "SIMULATED")
		}
		if !found {
			t.Errorf("%s is not labelled SIMULATED", at)
		}
	}
	h.said("SIMULATED")
	h.keys("f10")
	if !strings.Contains(strings.Split(h.screen(), "\n")[1], "SIMULATED") {
		t.Error("the runs are not labelled SIMULATED")
	}
}

func TestWhatWasNotMeasuredIsNotZero(t *testing.T) {
	f := newFake()
	f.s.Process, f.s.Mapping, f.s.Model.HostMemory = profile.Process{}, profile.Mapping{}, profile.Maybe[int64]{}
	h := start(t, 200, 60, Options{}, f)
	h.wants("20.8 GiB on n/a RAM", "hits n/a", "p50 n/a", "CPU n/a", "page faults n/a", "memory n/a", "others now n/a, CPU n/a", "collector n/a", "waits n/a", "without waiting n/a")
}

func TestSmallScreens(t *testing.T) {
	h := start(t, 59, 16, Options{}, newFake())
	golden(t, "small-59x16", h.screen())
	for _, size := range [][2]int{{1, 1}, {5, 2}, {60, 15}, {300, 3}} {
		h.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		h.screen()
		h.m.View()
	}
	h.send(tea.WindowSizeMsg{Width: 60, Height: 16})
	golden(t, "least-60x16", h.screen())
	h.keys("tab")
	golden(t, "least-panes-60x16", h.screen())
	for _, key := range []string{"e", "e", "5", "e", "f10", "f1", "esc"} {
		h.keys(key)
		h.screen()
	}
}

// Every size must give a frame of exactly that size, whatever is open.
func TestEverySizeFits(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	h.typed(strings.Repeat("a long prompt ", 40))
	for _, open := range []string{"", "tab", "e", "f10", "f1"} {
		if open != "" {
			h.keys(open)
		}
		for w := 60; w <= 230; w += 7 {
			for hgt := 16; hgt <= 70; hgt += 9 {
				h.send(tea.WindowSizeMsg{Width: w, Height: hgt})
				h.screen()
				if t.Failed() {
					t.Fatalf("at %d x %d with %q", w, hgt, open)
				}
			}
		}
	}
}

// The colours are the palette's, and nothing is told by them alone: stripped
// frames are what all the other goldens hold.
func TestColours(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	dark := h.m.frame()
	golden(t, "colours-dark-120x40", strings.ReplaceAll(dark, "\x1b", "<ESC>"))
	h.send(tea.BackgroundColorMsg{Color: lipgloss.Color("#ffffff")})
	light := h.m.frame()
	if light == dark {
		t.Error("a light background changes nothing")
	}
	if ansi.Strip(light) != ansi.Strip(dark) {
		t.Error("colours change the text")
	}
}

func TestTextForTerminalsWithoutUTF8(t *testing.T) {
	h := loadingScreen(t, 120, 40, Options{}, newFake())
	h.m.th.ASCIIText, h.m.th.G = true, term.ASCIIGlyphs
	h.f.script[20].Text = "“café” – naïve… "
	h.wait("the engine", func() bool { return h.m.state == idle })
	h.ask("Grüße")
	if s := h.screen(); strings.IndexFunc(s, func(r rune) bool { return r > 126 }) >= 0 {
		t.Errorf("a character that is not ASCII:\n%s", s)
	}
	h.wants(`"caf?" - na?ve...`)
}
