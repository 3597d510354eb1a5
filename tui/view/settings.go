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
	Typed  bool // Enter has a value typed; else it turns it, as a switch
}

// Settings is the page of all settings. It asks for those to be changed that can be.
type Settings struct {
	th      *term.Theme
	rows    func() []Setting
	at, top int
	h       int
	asked   *SettingWish
	typing  entry // a value
}

// SettingWish is a setting to be changed: by a step, or to a value that was typed.
type SettingWish struct {
	Name  string
	Dir   int // 0: to the value
	Value string
}

// NewSettings returns the page of what rows returns.
func NewSettings(th *term.Theme, rows func() []Setting) *Settings {
	return &Settings{th: th, rows: rows}
}

// Asked returns what was asked for since the last call.
func (l *Settings) Asked() (SettingWish, bool) {
	w := l.asked
	if l.asked = nil; w == nil {
		return SettingWish{}, false
	}
	return *w, true
}

// Typing implements Typist.
func (l *Settings) Typing() bool { return l.typing.on }

func (l *Settings) Title(int) string {
	return l.th.Title.On("settings") + "  " + l.th.Dim.On("and where each value comes from")
}

func (l *Settings) Figures() Figures { return None }
func (l *Settings) Wheel(dir int)    { l.move(dir) }

func (l *Settings) Hints() []string {
	if l.typing.on {
		return []string{"Enter takes the value", "Esc leaves it"}
	}
	return []string{"Left/Right changes it", "Enter types a value", "Up/Down picks a setting", "Esc closes"}
}

func (l *Settings) move(n int) { l.at = min(max(l.at+n, 0), max(len(l.rows())-1, 0)) }

// Key picks a setting, and asks for it to be changed.
func (l *Settings) Key(name string) bool {
	rows := l.rows()
	if l.typing.on {
		done, known := l.typing.key(name)
		if done && l.at < len(rows) {
			l.asked = &SettingWish{Name: rows[l.at].Name, Value: l.typing.text}
		}
		return known
	}
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
	switch {
	case dir == 0 || l.at >= len(rows) || !rows[l.at].Live:
	case name == "enter" && rows[l.at].Typed:
		l.typing.begin("")
	default:
		l.asked = &SettingWish{Name: rows[l.at].Name, Dir: dir}
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
		if i == l.at && l.typing.on {
			v = l.typing.show(th, value)
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
