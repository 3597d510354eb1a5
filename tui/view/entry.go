package view

import (
	"strings"
	"unicode/utf8"

	"bmoe/tui/term"
)

// entry is a line that is being typed into a view.
type entry struct {
	on   bool
	text string
}

// begin begins with a text that is there.
func (e *entry) begin(text string) { e.on, e.text = true, text }

// key takes a key. done says that the line is to be taken; known is false for a key
// that means what it means elsewhere: all others are the line's.
func (e *entry) key(name string) (done, known bool) {
	switch name {
	case "enter":
		e.on = false
		return true, true
	case "esc":
		e.on = false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(e.text)
		e.text = e.text[:len(e.text)-n]
	case "ctrl+u":
		e.text = ""
	case "space":
		e.text += " "
	case "ctrl+c", "ctrl+z", "ctrl+l":
		e.on = name != "ctrl+c"
		return false, false
	default:
		if utf8.RuneCountInString(name) == 1 && term.Hidden(name) == 0 {
			e.text += name
		}
	}
	return false, true
}

// show is the line in w columns; its end is where one types.
func (e *entry) show(th *term.Theme, w int) string {
	s := th.Shown(strings.ReplaceAll(e.text, "\t", " ")) + "_"
	for th.Width(s) > w && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}
