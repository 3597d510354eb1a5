package view

import (
	"bmoe/internal/units"
	"bmoe/tui/term"
)

// HelpLine is a line of the help.
type HelpLine struct {
	Keys    string // anywhere
	Twins   string // with the panes focused
	Command string
	Text    string // what they do
	Wide    bool   // the command has the twins' room too
}

// help lists every key and command, from the tables that dispatch them.
type help struct {
	Source
	top int // first row shown
}

func newHelp(s Source) View { return &help{Source: s} }

func (p *help) Title(int) string { return p.Theme.Title.On("help") }
func (p *help) Figures() Figures { return None }
func (p *help) Hints() []string  { return []string{"Up/Down scrolls", "Esc closes this page"} }
func (p *help) Wheel(dir int)    { p.scroll(3 * dir) }
func (p *help) scroll(n int)     { p.top = max(p.top+n, 0) }

// Key scrolls.
func (p *help) Key(name string) bool {
	switch name {
	case "up", "k":
		p.scroll(-1)
	case "down", "j":
		p.scroll(+1)
	case "pgup":
		p.scroll(-10)
	case "pgdown":
		p.scroll(+10)
	default:
		return false
	}
	return true
}

func (p *help) Render(w, h int) []string {
	th := p.Theme
	rows := p.rows(w)
	p.top = min(p.top, max(len(rows)-h, 0))
	above, below := p.top, len(rows)-p.top-h
	rows = fill(rows[p.top:], w, h)
	if above > 0 {
		rows[0] = th.Pad(th.Read.On(th.G.Up+" "+units.Plural(int64(above+1), "line")+" above"), w)
	}
	if below > 0 {
		rows[h-1] = th.Pad(th.Read.On(th.G.Down+" "+units.Plural(int64(below+1), "line")+" below"), w)
	}
	return rows
}

// rows is the whole page. What a line explains is wrapped beside its keys.
func (p *help) rows(w int) []string {
	th := p.Theme
	keysW, twinW, cmdW := 17, 13, 18
	if w < 100 {
		keysW, twinW = 15, 12
	}
	textW := w - keysW - twinW - cmdW
	rows := []string{th.Dim.On(th.Pad("key", keysW)+th.Pad("in panes", twinW)+th.Pad("command", cmdW)) + th.Dim.On(th.Pad("what it does", textW))}
	for _, l := range p.Keys() {
		twinW, cmdW := twinW, cmdW
		if l.Wide {
			twinW, cmdW = 0, twinW+cmdW
		}
		keys, texts := term.Words(l.Keys, keysW-1), term.Words(l.Text, textW)
		for n := range max(len(keys), len(texts)) {
			twins, cmd := l.Twins, l.Command
			if n > 0 {
				twins, cmd = "", ""
			}
			row := th.Bold.On(th.Pad(at(keys, n), keysW)+th.Pad(twins, twinW)) + th.Accent.On(th.Pad(cmd, cmdW)) + at(texts, n)
			rows = append(rows, th.Pad(row, w))
		}
	}
	rows = append(rows, term.Blanks(w))
	for _, s := range term.Words("Changes made during an answer take effect before the next run. With Shift held, the mouse selects text; --no-mouse leaves the mouse to the terminal. A command alone shows its setting, or turns it if it is a switch; every setting has one. A message that begins with a slash is written with two.", w) {
		rows = append(rows, th.Pad(th.Dim.On(s), w))
	}
	return rows
}

func at(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}
