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

// A value can be typed; what the setting does not take is refused, and Esc leaves it.
func TestValueTypedOnThePage(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.command("/settings")
	h.keys("enter") // threads are fixed
	h.keys("down", "down", "enter")
	h.wants("Enter takes the value", "F1 help")
	h.typed("4500")
	h.wants("4500_")
	h.keys("enter")
	h.idle()
	if f.config().cacheMiB != 4500 {
		t.Errorf("%+v", f.config())
	}
	h.keys("enter")
	h.typed("much")
	h.keys("enter")
	h.idle()
	h.wants(`/cache "much": want 1 or more MiB`)
	h.keys("enter")
	h.typed("1")
	h.keys("esc")
	h.keys("down", "enter") // a switch turns
	h.idle()
	if c := f.config(); c.cacheMiB != 4500 || c.overlap || len(f.changes) != 2 {
		t.Errorf("%+v, %v", c, f.changes)
	}
	h.wants("settings  and where")
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
