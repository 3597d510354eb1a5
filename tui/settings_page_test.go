package tui

import (
	"testing"
)

// The page shows every setting with where its value comes from, and changes those that
// can be changed.
func TestPageOfSettings(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.command("/settings")
	h.wants("threads", "default", "F3 F4", "start with --threads VALUE")
	h.keys("down", "right")
	h.idle()
	h.wants("8  (applied)", "/lanes [N] changes it")
	if c := f.config(); c.lanes != 8 {
		t.Errorf("%d lanes", c.lanes)
	}
	h.keys("left")
	h.idle()
	h.keys("up", "right") // threads stay
	h.idle()
	if c := f.config(); c.lanes != 4 || len(f.changes) != 2 {
		t.Errorf("%d lanes, %v", c.lanes, f.changes)
	}
	h.keys("esc")
	if h.m.views.Top() != nil {
		t.Error("the page is still open")
	}
}

// TestGoldenSettings draws the page at the sizes of the other views.
func TestGoldenSettings(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		h := start(t, size[0], size[1], Options{}, newFake())
		h.command("/settings")
		h.keys("down", "down")
		golden(t, sized("settings", size), h.screen())
	}
}
