package tui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"bmoe/engine/backend"

	tea "charm.land/bubbletea/v2"
)

// Whatever is pressed, in whatever order, at whatever size: every frame has its rows and
// columns, and nothing panics.
func TestAnyKeysInAnyOrder(t *testing.T) {
	keys := []string{"tab", "tab", "esc", "space", "left", "left", "right", "pgup", "pgdown", "home", "end", "s", "z", "Z", "w", "e", "y", "q", "1", "2", "6", "g", "t",
		"f1", "f2", "f4", "f6", "f8", "f10", "ctrl+f", "enter", "up", "down", "backspace", "ctrl+t", "ctrl+u", "ctrl+home", "ctrl+end", "l", "x", "a", "/", "ctrl+o", "ctrl+s", "ctrl+n", "n", "d", "r"}
	lines := []string{"hello", "/why slowest", "/why 3", "/why 9999", "/edit", "/regenerate", "/file /nowhere", "/file off", "/find the", "/markdown", "/new", "/copy", "/freeze", "/overlap", "/again", "/thoughts"}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := seeded()
		f.tells = true
		f.script = append(f.script, backend.Delta{Text: "\n| a | b |\n|---|---|\n| **1** | `2` |\n"})
		h := start(t, 80, 24, Options{ASCII: seed%2 == 1}, f)
		var done []string
		for range 120 {
			var what string
			switch n := r.IntN(20); {
			case n == 0:
				w, hh := 60+r.IntN(140), 16+r.IntN(50)
				what = fmt.Sprintf("%dx%d", w, hh)
				h.send(tea.WindowSizeMsg{Width: w, Height: hh})
			case n == 1:
				x, y := r.IntN(h.m.w), r.IntN(h.m.h)
				what = fmt.Sprintf("click %d,%d", x, y)
				h.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
			case n < 4:
				what = lines[r.IntN(len(lines))]
				h.typed(what)
				h.keys("enter")
			case n == 4:
				what = "tick"
				h.tick()
			case n == 5:
				what = "wait"
				h.wait("the engine", func() bool { return h.m.state == idle })
			default:
				what = keys[r.IntN(len(keys))]
				h.keys(what)
			}
			done = append(done, what)
			rows := strings.Split(h.m.frame(), "\n")
			for i, l := range rows {
				if w := h.m.th.Width(l); w != h.m.w || len(rows) != h.m.h {
					t.Fatalf("seed %d: %d rows, row %d of %d columns on %dx%d after %q", seed, len(rows), i, w, h.m.w, h.m.h, done)
				}
			}
		}
		h.wait("the engine", func() bool { return h.m.state == idle })
	}
}
