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

// A frame of a chat of 2,000 messages costs what one of ten does.
func BenchmarkLongChat(b *testing.B) {
	for _, n := range []int{10, 2000} {
		t := new(testing.T)
		h := start(t, 200, 60, Options{}, newFake())
		for i := range n / 2 {
			h.m.chat.Ask(h.time, fmt.Sprintf("question %d", i))
			a := h.m.chat.Answer(h.time, "")
			a.AddText(answerText + "\n\n- **one**\n- two")
			a.Finish()
		}
		h.m.View()
		b.Run(fmt.Sprint(n, " messages"), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if i%40 < 20 {
					h.m.chat.Scroll(-1)
				} else {
					h.m.chat.Scroll(1)
				}
				h.m.View()
			}
		})
		b.Run(fmt.Sprint(n, " messages, resized"), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				h.send(tea.WindowSizeMsg{Width: 200 - i%2, Height: 60})
				h.m.View()
			}
		})
	}
}

// Whatever an answer becomes while it is written, what is read above its end stays
// where it is: in it too, with a table that widens and a code block that opens.
func TestMarkdownDoesNotMoveWhatIsRead(t *testing.T) {
	h := start(t, 80, 24, Options{}, newFake())
	long(h)
	a := h.m.chat.Answer(h.time, "")
	for i := range 40 {
		a.AddText(fmt.Sprintf("- point **%d** of the answer\n", i))
	}
	h.keys("pgup")
	before := h.topLine()
	if !strings.Contains(before, "point") {
		t.Fatalf("the top line is %q", before)
	}
	rest := "\n| a | b |\n|---|---|\n| 1 | 2 |\n| a much longer cell than those before it, which has to be broken | and another one of that kind, to be sure |\n\n```go\nx := 1\n```\n**end**"
	for n := range rest {
		a.AddText(rest[n : n+1])
		if got := h.topLine(); got != before {
			t.Fatalf("after %q the top line was %q and became %q", rest[:n+1], before, got)
		}
	}
	h.keys("ctrl+t")
	h.do("/markdown off")
	if got := h.topLine(); strings.Trim(strings.ReplaceAll(got, "**", ""), "- ") != strings.Trim(before, "• ") {
		t.Errorf("without Markdown the top line is %q, was %q", got, before)
	}
}

// How fast it decodes, and how long the first token took, are on the screen at every
// width, with the context's use where there is room.
func TestSpeedIsShownAtEveryWidth(t *testing.T) {
	for w := minWidth; w <= 200; w += 7 {
		h := midRun(t, w, 24, 20)
		top, _, _ := strings.Cut(h.screen(), "\n")
		for _, want := range []string{"tok/s", "TTFT 1.9 s", "decoding 20/256"} {
			if !strings.Contains(top, want) {
				t.Errorf("%d columns: %q is not in %q", w, want, top)
			}
		}
		if w >= 80 && !strings.Contains(top, "ctx 119/4096") {
			t.Errorf("%d columns: the context is not in %q", w, top)
		}
		h.finish()
	}
}
