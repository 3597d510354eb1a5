package tui

import "bmoe/tui/view"

// expanded is the picked pane as a view: it has the screen to itself.
type expanded struct{ m *Model }

func (e expanded) Title(w int) string    { return e.m.panes[e.m.picked].Title(w) }
func (e expanded) Figures() view.Figures { return view.Live }
func (e expanded) Key(string) bool       { return false }
func (e expanded) Wheel(int)             {}

func (e expanded) Hints() []string {
	return []string{"e or Esc closes", paneCaps() + " another pane", "Space freezes"}
}

func (e expanded) Render(w, h int) []string {
	p := e.m.panes[e.m.picked]
	p.SetSize(w, h)
	p.SetExpanded(true)
	return p.Render()
}
