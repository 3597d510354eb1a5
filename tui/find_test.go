package tui

import (
	"fmt"
	"strings"
	"testing"

	"bmoe/engine/backend"

	tea "charm.land/bubbletea/v2"
)

// told is a fake whose deltas carry the records of their tokens, as a session's do.
func told() *fakeEngine {
	f := newFake()
	f.tells = true
	return f
}

func TestFindInTheChat(t *testing.T) {
	for _, o := range []Options{{}, {ASCII: true}} {
		h := start(t, 80, 24, o, told())
		for range 3 {
			h.ask("Why is this laptop slow?")
		}
		h.keys("ctrl+f")
		h.wants("find:", "type what to look for")
		h.typed("LANES")
		h.wants("find: LANES", "5 of 6") // the first on the screen
		h.keys("enter")
		h.wants("6 of 6")
		h.keys("enter", "up", "up")
		h.wants("5 of 6")
		h.keys("backspace", "backspace")
		h.wants("find: LAN  ", "of 9")
		h.typed("x")
		h.wants("not there")
		h.keys("ctrl+u")
		h.send(tea.PasteMsg{Content: "Press F2"})
		h.wants("find: Press F2", "3 of 3")
		if got := h.m.prompt.Value(); got != "" {
			t.Errorf("the prompt got %q", got)
		}
		h.keys("esc")
		h.lacks("find:")
		h.typed("/find on this host")
		h.keys("enter")
		h.wants("find: on this host", "3 of 3")
		h.keys("ctrl+c")
		h.lacks("find:", "again quits")
	}
}

// A word that was found leads to what its token cost, and a token to its word.
func TestFromTheTextToTheToken(t *testing.T) {
	h := start(t, 120, 40, Options{}, told())
	h.ask("Why is this laptop slow?")
	h.keys("ctrl+f")
	h.typed("mapped:")
	h.keys("tab")
	r := h.m.scrubbing.lens.Record
	if got := h.m.scrubbing.lens.Text; strings.TrimSpace(got) != "mapped:" || r.Run != 1 || h.m.focus != onPanes {
		t.Fatalf("picked %q, token %d of run %d", got, r.Step, r.Run)
	}
	h.keys("right")
	if got := h.m.scrubbing.lens.Text; strings.TrimSpace(got) != "on" {
		t.Errorf("the next token said %q", got)
	}
	h.wants(`"on "`)
	if frame := h.m.frame(); !strings.Contains(frame, string(h.m.th.Selected)+"on ") {
		t.Error("the token's text is not marked in the chat")
	}
	h.keys("space")
	if frame := h.m.frame(); strings.Contains(frame, string(h.m.th.Selected)+"on ") {
		t.Error("the token's text is marked still")
	}
	// A click on a word does the same.
	for y, row := range strings.Split(h.screen(), "\n") {
		if x := strings.Index(row, "served"); x > 0 && x < 60 {
			h.send(tea.MouseClickMsg{X: len([]rune(row[:x])), Y: y, Button: tea.MouseLeft})
			break
		}
	}
	if got := strings.TrimSpace(h.m.scrubbing.lens.Text); got != "served" || !h.m.scrubbing.picking() {
		t.Errorf("the click picked %q", got)
	}
	h.wants("7 experts missed; Esc lets go of it")
	if h.m.focus != onPrompt {
		t.Error("the click took the keys from the prompt")
	}
	h.keys("esc")
	if h.m.frozen != nil || h.m.scrubbing.picking() {
		t.Error("Esc does not let go of the token")
	}
	// What nobody said by a token, or the first of them, says so.
	h.keys("ctrl+f")
	h.typed("laptop")
	h.keys("tab")
	h.wants("no token is known")
	h.keys("esc", "ctrl+t", "ctrl+f")
	h.typed("The lanes give")
	h.keys("tab")
	h.wants("the first token comes of the prompt")
}

// An answer's marks are shown as what they mean, unless the user wants them as written.
func TestMarkdownInTheChat(t *testing.T) {
	const answer = "## Result\n\nThe **mapping** costs `half`:\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nx := 1\n```\n"
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			f := told()
			f.script = nil
			for _, w := range strings.SplitAfter(answer, " ") {
				f.script = append(f.script, backend.Delta{Text: w})
			}
			h := start(t, size.w, size.h, Options{ASCII: ascii}, f)
			h.ask("Why?")
			h.lacks("**", "## Result", "```")
			name := fmt.Sprintf("markdown-%dx%d", size.w, size.h)
			if ascii {
				name += "-ascii"
			}
			golden(t, name, h.screen())
			h.typed("/markdown")
			h.keys("enter")
			h.wants("Markdown off", "The **mapping** costs `half`:")
			h.typed("/markdown on")
			h.keys("enter")
			h.lacks("**")
			if h.said(answer); h.m.chat.Blocks()[1].Text() != answer {
				t.Errorf("the text itself changed: %q", h.m.chat.Blocks()[1].Text())
			}
		}
	}
}
