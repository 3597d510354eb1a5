package tui

import "bmoe/tui/view"

// expanded is the picked pane as a view: it has the screen to itself.
type expanded struct{ m *Model }

func (e expanded) Title(w int) string    { return e.m.panes[e.m.picked].Title(w) }
func (e expanded) Figures() view.Figures { return view.Live }
func (e expanded) Key(string) bool       { return false }
func (e expanded) Wheel(int)             {}

func (e expanded) Hints() []string {
	if e.m.onTokens() {
		return tokenHints
	}
	return []string{"e or Esc closes", paneCaps() + " another pane", "Space freezes", "Left/Right tokens", "s slowest", "z zoom"}
}

func (e expanded) Render(w, h int) []string {
	p := e.m.panes[e.m.picked]
	p.SetSize(w, h)
	p.SetExpanded(true)
	return p.Render()
}

// tokenHints are what the status line says while a token is picked.
var tokenHints = []string{"Left/Right token", "PgUp/PgDn ten", "Home/End", "s slowest", "z/Z zoom", "w whole run", "Space goes on"}
