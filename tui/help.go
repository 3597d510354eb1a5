package tui

import (
	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/tui/term"
)

// helpPage lists every key and command, from the table that dispatches them.
type helpPage struct {
	th       *term.Theme
	top      int // first row shown
	settings []backend.Setting
}

func (p *helpPage) scroll(n int) { p.top = max(p.top+n, 0) }

// render returns exactly h rows of w columns.
func (p *helpPage) render(w, h int) []string {
	th := p.th
	rows := p.rows(w)
	p.top = min(p.top, max(len(rows)-h, 0))
	rows = rows[p.top:min(p.top+h, len(rows))]
	for len(rows) < h {
		rows = append(rows, term.Blanks(w))
	}
	if n := len(p.rows(w)) - p.top - h; n > 0 {
		rows[h-1] = th.Pad(th.Read.On(th.G.Down+" "+units.Plural(int64(n+1), "line")+" below"), w)
	}
	return rows
}

// rows is the whole page. What a line explains is wrapped beside its keys.
func (p *helpPage) rows(w int) []string {
	th := p.th
	keysW, twinW, cmdW := 17, 13, 18
	if w < 100 {
		keysW, twinW = 15, 12
	}
	textW := w - keysW - twinW - cmdW
	keyed := map[string]bool{}
	rows := []string{th.Dim.On(th.Pad("key", keysW)+th.Pad("in the panes", twinW)+th.Pad("command", cmdW)) + th.Dim.On(th.Pad("what it does", textW))}
	for i := range keyTable {
		r := &keyTable[i]
		keys := r.any
		switch {
		case len(r.chat) > 0:
			keys = append(r.any[:len(r.any):len(r.any)], r.chat...)
		case len(r.runs) > 0:
			keys = r.runs
		}
		twins := caps(r.panes, " ")
		if r.label == "pane" {
			twins = "1-6"
		}
		capsLines := term.Words(caps(keys, " "), keysW-1)
		cmd, help := r.cmd, r.help
		if s := backend.Find(p.settings, r.setting); s != nil {
			cmd = usage(p.settings, s)
			keyed[s.Name] = true
		}
		for n, text := range term.Words(help, textW) {
			rows = append(rows, p.line(w, keysW, twinW, cmdW, at(capsLines, n), first(n, twins), first(n, cmd), text))
		}
		for n := len(term.Words(help, textW)); n < len(capsLines); n++ {
			rows = append(rows, p.line(w, keysW, twinW, cmdW, capsLines[n], "", "", ""))
		}
	}
	for i := range p.settings {
		if s := &p.settings[i]; s.Live && !keyed[s.Name] { // a command is all it has
			for n, text := range term.Words(backend.Mention(s.Help, p.settings, backend.AsCommand), textW) {
				rows = append(rows, p.line(w, keysW, 0, twinW+cmdW, "", "", first(n, usage(p.settings, s)), text))
			}
		}
	}
	rows = append(rows, term.Blanks(w))
	for _, s := range term.Words("Changes made during an answer take effect before the next run. With Shift held, the mouse selects text; --no-mouse leaves the mouse to the terminal. A command alone shows its setting, or turns it if it is a switch; every setting has one. A message that begins with a slash is written with two.", w) {
		rows = append(rows, th.Pad(th.Dim.On(s), w))
	}
	return rows
}

func (p *helpPage) line(w, keysW, twinW, cmdW int, keys, twins, cmd, text string) string {
	th := p.th
	return th.Pad(th.Bold.On(th.Pad(keys, keysW)+th.Pad(twins, twinW))+th.Accent.On(th.Pad(cmd, cmdW))+text, w)
}

func at(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}

func first(n int, s string) string {
	if n == 0 {
		return s
	}
	return ""
}
