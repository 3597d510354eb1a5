package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// What the model, its file or an error says may try to draw on the screen.
func TestEscapeSequencesStayText(t *testing.T) {
	f := newFake()
	const evil = "\x1b[2J\x1b[H\u009b31mgotcha\x07\x00"
	f.script[0].Reasoning, f.script[20].Text = evil, evil
	f.warnings = []string{evil}
	f.s.Model.Name, f.s.Model.Arch, f.s.Mapping.Inside, f.s.Lanes.Reason = evil, evil, evil, evil
	f.decline = evil
	h := start(t, 120, 40, Options{}, f)
	h.ask(evil)
	h.keys("f2", "ctrl+t")
	h.wait("idle", func() bool { return h.m.state == idle })
	for _, k := range []string{"", "f10", "f10", "tab"} {
		if k != "" {
			h.keys(k)
		}
		frame := ansi.Strip(h.m.frame()) // takes away what the screen itself styles with
		for _, bad := range []string{"\x1b", "\u009b", "\x07", "\x00"} {
			if strings.Contains(frame, bad) {
				t.Errorf("%q is in the frame after %q", bad, k)
			}
		}
		if strings.Contains(h.m.frame(), "\x1b[2J") {
			t.Errorf("a sequence of the model's is in the frame after %q", k)
		}
	}
}

// long fills the chat beyond the screen.
func long(h *harness) {
	for i := range 12 {
		h.m.chat.Note(h.time, false, fmt.Sprintf("note %02d", i))
		h.m.chat.Ask(h.time, strings.Repeat(fmt.Sprintf("turn %02d has some words to wrap ", i), 6))
	}
}

func (h *harness) topLine() string {
	return strings.TrimSpace(ansi.Strip(h.m.chat.Render()[0]))
}

func TestTheTranscriptStaysPutWhileScrolledUp(t *testing.T) {
	h := midRun(t, 80, 24, 3)
	long(h)
	b := h.m.answer // goes on above and below what is read
	h.keys("pgup", "pgup")
	h.wants("lines below: End jumps there")
	before := h.topLine()
	h.release(20)
	h.m.chat.Note(h.time, false, "something at the end")
	if got := h.topLine(); got != before {
		t.Fatalf("the top line was %q and became %q", before, got)
	}
	if b.Text() == "" {
		t.Fatal("nothing was added meanwhile")
	}
	h.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if h.topLine() == before {
		t.Fatal("the wheel does not scroll")
	}
	h.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if got := h.topLine(); got != before {
		t.Fatalf("up and down again: %q, want %q", got, before)
	}
	h.keys("end")
	h.lacks("lines below")
	h.wants("something at the end")
	h.keys("home")
	h.wants("Why is this laptop slow?")
	h.keys("pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown")
	h.lacks("lines below")
	h.finish()
}

func TestUnfoldingReasoning(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.ask("Why?")
	h.wants("[+]")
	h.lacks("The lanes give one")
	h.keys("ctrl+t")
	h.wants("[-]", "│ The lanes give one lane's rate")
	h.keys("ctrl+t")
	h.lacks("The lanes give one")
	row := -1
	for i, l := range strings.Split(h.screen(), "\n") {
		if strings.Contains(l, "thought for") {
			row = i
		}
	}
	h.send(tea.MouseClickMsg{X: 10, Y: row, Button: tea.MouseLeft})
	h.wants("The lanes give one")

	long(h)
	h.keys("pgup")
	before := h.topLine()
	for range 2 {
		h.keys("ctrl+t")
		if got := h.topLine(); got != before {
			t.Fatalf("folding above moved the text: %q became %q", before, got)
		}
	}
}

func TestDroppedTurnsAreTold(t *testing.T) {
	h := midRun(t, 120, 40, 3)
	h.f.mu.Lock()
	h.f.s.DroppedTurns = 2
	h.f.mu.Unlock()
	h.tick()
	h.wants("the context is full: the oldest 2 turns dropped")
	h.tick()
	if n := strings.Count(h.screen(), "the context is full"); n != 1 {
		t.Fatalf("told %d times", n)
	}
	h.finish()
}

func BenchmarkView(b *testing.B) {
	t := new(testing.T)
	h := start(t, 200, 60, Options{}, newFake())
	for range 20 {
		h.ask("Why is this laptop slow?")
	}
	b.Run("typing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.m.View()
		}
	})
	b.Run("ticking", func(b *testing.B) {
		b.ReportAllocs()
		s := h.m.live
		for b.Loop() {
			h.m.show(s)
			h.m.View()
		}
	})
}
