package tui

import (
	"fmt"
	"unicode/utf8"

	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
)

// finding is a search in the chat, typed into the status line.
type finding struct {
	on   bool
	text string
}

const findLabel = " find: "

// openFind begins a search, or goes on to the next place if one is open.
func (m *Model) openFind(text string) {
	if m.finding.on && text == "" {
		m.chat.FindNext(+1)
		return
	}
	m.views.Clear()
	m.setFocus(onPrompt)
	m.finding = finding{on: true, text: text}
	m.layout()
	m.chat.Find(text)
}

func (m *Model) closeFind() {
	m.finding = finding{}
	m.chat.Find("")
}

// findKey takes a key while a search is open; false: it means what it means elsewhere.
func (m *Model) findKey(name string, k tea.KeyPressMsg) (tea.Cmd, bool) {
	f := &m.finding
	switch name {
	case "esc", "ctrl+c":
		m.closeFind()
	case "enter", "down", "ctrl+f":
		m.chat.FindNext(+1)
	case "up", "shift+enter":
		m.chat.FindNext(-1)
	case "tab":
		run, step, ok := m.chat.FoundToken()
		if !ok {
			m.say(m.th.Read, "no token is known of what is shown: it was not said by the model, or in another start of the program")
			return nil, true
		}
		m.closeFind()
		if m.pickSaid(run, step) {
			m.setFocus(onPanes)
			m.status = "" // the pane says it
		}
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(f.text)
		f.text = f.text[:len(f.text)-n]
		m.chat.Find(f.text)
	case "ctrl+u":
		f.text = ""
		m.chat.Find("")
	case "left", "right", "home", "end":
	default:
		if k.Text == "" {
			return nil, false
		}
		f.text += term.Clean(k.Text)
		m.chat.Find(f.text)
	}
	return nil, true
}

// findLine is the status line while a search is open.
func (m *Model) findLine() string {
	th := m.th
	count := "type what to look for"
	if m.finding.text != "" {
		at, of, more := m.chat.Found()
		count = fmt.Sprintf("%d of %d", at, of)
		switch {
		case of == 0:
			count = "not there"
		case more:
			count += " or more"
		}
	}
	st := th.Accent
	if count == "not there" {
		st = th.Read
	}
	return th.Row(m.w, 2, th.Text(0, th.Bold, findLabel+th.Shown(m.findShown())), th.Text(0, st, count),
		th.Text(1, th.Dim, "Enter next"), th.Text(2, th.Dim, "Up previous"), th.Text(4, th.Dim, "Tab what it cost"), th.Text(3, th.Dim, "Esc closes"))
}

// findShown is what is typed, or its end where that is long.
func (m *Model) findShown() string {
	s := m.finding.text
	for m.th.Width(s) > m.w/2 {
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}
