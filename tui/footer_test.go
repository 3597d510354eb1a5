package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// clickOn clicks on the first place of a text in the footer.
func (h *harness) clickOn(text string) {
	h.t.Helper()
	rows := strings.Split(h.screen(), "\n")
	for y := h.m.h - len(h.m.footer()); y < h.m.h; y++ {
		if x := strings.Index(rows[y], text); x >= 0 {
			h.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
			return
		}
	}
	h.t.Fatalf("%q is not in the footer:\n%s", text, h.screen())
}

// A click on a key of the footer does what the key does, at every size and in a view.
func TestClickOnTheFooter(t *testing.T) {
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}, {200, 60}} {
		f := newFake()
		h := start(t, size[0], size[1], Options{}, f)
		h.clickOn("F4")
		h.idle()
		h.clickOn("F3")
		h.idle()
		if f.config().lanes != 4 || len(f.changes) != 2 {
			t.Errorf("%v: %d lanes, %v", size, f.config().lanes, f.changes)
		}
		h.clickOn("lanes") // of the last of its keys
		h.idle()
		if f.config().lanes != 8 {
			t.Errorf("%v: %d lanes", size, f.config().lanes)
		}
		h.clickOn("F1")
		if h.m.views.Top() != h.m.pages["help"] {
			t.Errorf("%v: no help", size)
		}
		h.clickOn("Esc")
		if h.m.views.Top() != nil || h.m.focus != onPrompt {
			t.Errorf("%v: the help is still open", size)
		}
		h.clickOn("Tab")
		if h.m.focus != onPanes {
			t.Errorf("%v: no panes", size)
		}
		h.clickOn("m ")
		h.idle()
		if !f.config().release {
			t.Errorf("%v: no release", size)
		}
		for x := range size[0] { // anywhere: nothing is out of bounds
			for y := range 3 {
				h.m.clickFooter(x, y)
			}
		}
	}
}

// State never hides a key: what the footer has without values and notes it has with
// them.
func TestStateHidesNoKey(t *testing.T) {
	for w := 60; w <= 130; w++ {
		for _, panes := range []bool{false, true} {
			h, _ := picker(t, w, 24, Options{})
			if panes {
				h.m.setFocus(onPanes)
			}
			keys := func() (all []string) {
				rows, _ := h.m.footRows()
				for _, row := range rows {
					for _, it := range row {
						for _, c := range it.caps {
							all = append(all, c.text)
						}
					}
				}
				return all
			}
			with := keys()
			for i := range h.m.settings { // short values, and no note
				h.m.settings[i].Value, h.m.settings[i].Unit = "", ""
			}
			if without := keys(); len(with) != len(without) {
				t.Errorf("%d columns, panes %v: %q with state, %q without", w, panes, with, without)
			}
			if w >= 80 && !panes && len(with) < 15 {
				t.Errorf("%d columns: %q", w, with)
			}
		}
	}
}

// Where letters are typed into a view, the footer shows the keys that work there.
func TestFooterWhileTyping(t *testing.T) {
	h, _ := picker(t, 120, 40, Options{})
	h.listed()
	h.wants("F1 help", "^O models")
	h.lacks("? help")
	h.clickOn("F1")
	if h.m.views.Top() != h.m.pages["help"] {
		t.Error("no help")
	}
	h.clickOn("?")
	h.clickOn("^O")
	if h.m.views.Top() != nil {
		t.Error("the list is still open")
	}
}

// The help says how much of it is above and below what is shown, and no key or command
// of it is cut at 80 columns.
func TestHelpFitsAndSaysWhatIsHidden(t *testing.T) {
	h := start(t, 80, 24, Options{}, newFake())
	h.keys("f1")
	h.lacks("above")
	h.wants("lines below")
	seen := h.screen()
	for range 60 {
		h.keys("down")
		seen += h.screen()
	}
	h.wants("lines above", "lines below")
	golden(t, "help-scrolled-80x24", h.screen())
	for range 20 {
		h.keys("pgdown")
		seen += h.screen()
	}
	h.wants("lines above")
	h.lacks("below")
	for _, l := range h.m.helpLines() {
		for _, part := range append(strings.Fields(l.Keys), l.Twins, l.Command) {
			if !strings.Contains(seen, part) {
				t.Errorf("%q is nowhere in the help", part)
			}
		}
	}
}
