package view

import (
	"bmoe/tui/term"
)

// Setting is a row of the page of settings.
type Setting struct {
	Name   string
	Value  string // with its unit; empty: not set
	Note   string // what becomes of a wish
	Origin string
	Keys   string // on the screen; empty: it has none
	How    string // it is changed: a command, or a flag at the next start
	Help   string
	Idle   string // why it changes nothing; empty if it does
	Live   bool
}

// Settings is the page of all settings. It asks for those to be changed that can be.
type Settings struct {
	th      *term.Theme
	rows    func() []Setting
	at, top int
	h       int
	asked   string
	dir     int
}

// NewSettings returns the page of what rows returns.
func NewSettings(th *term.Theme, rows func() []Setting) *Settings {
	return &Settings{th: th, rows: rows}
}

// Asked returns the setting that was to be changed by a step since the last call.
func (l *Settings) Asked() (name string, dir int) {
	name, dir = l.asked, l.dir
	l.asked = ""
	return name, dir
}

func (l *Settings) Title(int) string {
	return l.th.Title.On("settings") + "  " + l.th.Dim.On("and where each value comes from")
}

func (l *Settings) Figures() Figures { return None }
func (l *Settings) Wheel(dir int)    { l.move(dir) }

func (l *Settings) Hints() []string {
	return []string{"Left/Right changes it", "Up/Down picks a setting", "Esc closes"}
}

func (l *Settings) move(n int) { l.at = min(max(l.at+n, 0), max(len(l.rows())-1, 0)) }

// Key picks a setting, and asks for it to be changed.
func (l *Settings) Key(name string) bool {
	dir := 0
	switch name {
	case "up", "k":
		l.move(-1)
	case "down", "j":
		l.move(+1)
	case "pgup":
		l.move(-l.page())
	case "pgdown":
		l.move(+l.page())
	case "left":
		dir = -1
	case "right", "enter":
		dir = +1
	default:
		return false
	}
	if rows := l.rows(); dir != 0 && len(rows) > 0 && rows[l.at].Live {
		l.asked, l.dir = rows[l.at].Name, dir
	}
	return true
}

// What the list leaves to the lines about the picked setting.
const helpRows = 6

func (l *Settings) page() int { return max(l.h-1-helpRows, 1) }

func (l *Settings) Render(w, h int) []string {
	l.h = h
	th, all := l.th, l.rows()
	if len(all) == 0 {
		return fill([]string{th.Pad("what is open here has no settings", w)}, w, h)
	}
	l.at = min(l.at, len(all)-1)
	const origin, keys = 7, 8
	name := min(max(w/4, 16), 24)
	value := w - 2 - name - 2 - 2 - origin - 2 - keys
	row := func(mark, n, v, o, k string) string {
		return mark + " " + th.Pad(n, name) + "  " + th.Pad(v, value) + "  " + th.Pad(o, origin) + "  " + th.Pad(k, keys)
	}
	rows := []string{th.Dim.On(row(" ", "setting", "value", "from", "keys"))}
	page := l.page()
	l.top = min(max(l.top, l.at-page+1), l.at)
	for i := l.top; i < min(l.top+page, len(all)); i++ {
		s := &all[i]
		mark := " "
		if i == l.at {
			mark = th.G.Focus
		}
		v := th.Shown(term.CleanLine(s.Value))
		switch {
		case s.Note != "":
			v += "  (" + s.Note + ")"
		case v == "":
			v = "-"
		}
		line := row(mark, th.Cut(s.Name, name), th.Cut(v, value), s.Origin, s.Keys)
		switch {
		case i == l.at:
			line = th.Selected.On(line)
		case s.Idle != "" || !s.Live:
			line = th.Dim.On(line)
		}
		rows = append(rows, line)
	}
	for len(rows) < h-helpRows {
		rows = append(rows, term.Blanks(w))
	}
	rows = append(rows[:max(h-helpRows, 1)], th.Dim.On(term.Repeat(th.G.Horizontal, w)))
	s := &all[l.at]
	text := s.Help + ". " + s.How
	if s.Idle != "" {
		text += ". It changes nothing now: " + s.Idle
	}
	for _, line := range term.Words(th.Shown(text), w) {
		rows = append(rows, th.Pad(line, w))
	}
	return fill(rows, w, h)
}
