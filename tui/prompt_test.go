package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// What the prompt shows is what is sent: nothing hides in it, however it came.
func TestNothingHidesInThePrompt(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	const hiding = "a\u202eb\U000E0041\x1b[31m\u009bc\u2028d"
	const want = "ab^[[31m?c\nd"
	h.send(tea.PasteMsg{Content: hiding})
	if got := h.m.prompt.Value(); got != want {
		t.Errorf("pasted %q, want %q", got, want)
	}
	h.wants("2 invisible characters left out of the prompt")
	h.send(tea.KeyPressMsg{Code: 'e', Text: "e\u2066"})
	h.send(tea.KeyPressMsg{Code: 0x200f, Text: "\u200f"})
	h.wants("1 invisible character left out of the prompt")
	if got := h.m.prompt.Value(); got != want+"e" {
		t.Errorf("typed %q, want %q", got, want+"e")
	}
	if frame := ansi.Strip(h.m.frame()); strings.ContainsAny(frame, "\u202e\U000E0041\x1b\u009b\u2028\u2066\u200f") {
		t.Errorf("in the frame: %q", frame)
	}
	h.keys("enter")
	h.wait("the answer", func() bool { return h.m.state == idle })
	if got := h.f.prompts; len(got) != 1 || got[0] != want+"e" {
		t.Errorf("sent %q", got)
	}
}

// A paste goes to the prompt from wherever the screen is.
func TestAPasteLeavesAView(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	for i, key := range []string{"f1", "f10"} {
		h.keys(key, "tab")
		h.keys(key)
		h.send(tea.PasteMsg{Content: "pasted "})
		if got := h.m.prompt.Value(); h.m.views.Top() != nil || h.m.focus != onPrompt || got != strings.Repeat("pasted ", i+1) {
			t.Errorf("after %s: %q on screen %v", key, got, len(h.m.views))
		}
	}
}

// A panic in any command, alone or among others, ends the program in good order.
func TestAPanicInACommandEndsTheProgram(t *testing.T) {
	fails := func() tea.Msg { panic(errors.New("a fault")) }
	for name, cmd := range map[string]tea.Cmd{"alone": fails, "in a batch": tea.Batch(fails, func() tea.Msg { return nil })} {
		h := start(t, 120, 40, Options{}, newFake())
		h.m.tock = func(time.Duration, func(time.Time) tea.Msg) tea.Cmd { return cmd }
		h.tick()
		h.wait("the end", func() bool { return h.quit })
		if h.m.panicked == nil || !strings.Contains(h.m.panicked.Error(), "screen: panic with a value of type *errors.errorString in bmoe/tui.") {
			t.Errorf("%s: %v", name, h.m.panicked)
		}
	}
}

// Pictures that are made of several do not push the frame, however the terminal
// measures them.
func TestJoinedPicturesStayInTheFrame(t *testing.T) {
	const family = "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466"
	for _, method := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		for _, text := range []string{"a family " + family + " here", strings.Repeat(family, 12)} {
			h := start(t, 80, 24, Options{}, newFake())
			h.m.th.Method = method
			h.send(tea.PasteMsg{Content: text})
			for range 2 { // in the prompt, then in the chat
				for i, row := range strings.Split(ansi.Strip(h.m.frame()), "\n") {
					if w := method.StringWidth(row); w != 80 {
						t.Errorf("row %d is %d wide: %q", i, w, row)
					}
				}
				h.keys("enter")
				h.wait("the answer", func() bool { return h.m.state == idle })
			}
		}
	}
}
