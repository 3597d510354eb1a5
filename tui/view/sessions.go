package view

import (
	"fmt"
	"strings"
	"time"

	"bmoe/internal/units"
	"bmoe/tui/term"
)

// Session is a kept conversation as its list shows it.
type Session struct {
	ID, Name, Model string
	Saved           time.Time
	Questions       int
	StateBytes      int64 // of what the model remembers; 0: nothing
	Open            bool  // it is the one on the screen
}

// Sessions is the list of kept conversations. It asks for what it cannot do itself.
type Sessions struct {
	th      *term.Theme
	rows    []Session
	known   bool   // the folder has been read
	failed  string // why it cannot be
	at, top int
	h       int

	naming entry  // a name
	sure   string // the ID of the one that the next d deletes
	asked  *Wish
}

// Deed is what a list of sessions asks for.
type Deed uint8

// The deeds.
const (
	TakeUp Deed = iota
	Rename
	Delete
)

// Wish is a deed, and the session that it is about.
type Wish struct {
	Do   Deed
	ID   string
	Name string // a new one
}

// NewSessions returns a list that nothing is known of yet.
func NewSessions(th *term.Theme) *Sessions { return &Sessions{th: th} }

// Set takes what the folder has. The picked session stays so.
func (l *Sessions) Set(rows []Session) {
	id := ""
	if l.at < len(l.rows) {
		id = l.rows[l.at].ID
	}
	l.rows, l.known, l.failed = rows, true, ""
	l.at = min(l.at, max(len(rows)-1, 0))
	for i := range rows {
		if rows[i].ID == id {
			l.at = i
		}
	}
}

// Fail says why there is no list.
func (l *Sessions) Fail(why string) { l.rows, l.known, l.failed = nil, true, why }

// Asked returns what was asked for since the last call.
func (l *Sessions) Asked() (Wish, bool) {
	w := l.asked
	if l.asked = nil; w == nil {
		return Wish{}, false
	}
	return *w, true
}

func (l *Sessions) Title(int) string {
	text := l.th.Title.On("sessions")
	if len(l.rows) > 0 {
		text += "  " + l.th.Dim.On(units.Plural(int64(len(l.rows)), "conversation")+" kept")
	}
	return text
}

func (l *Sessions) Figures() Figures { return None }
func (l *Sessions) Wheel(dir int)    { l.move(dir) }

func (l *Sessions) Hints() []string {
	switch {
	case l.naming.on:
		return []string{"Enter takes the name", "Esc leaves it"}
	case l.sure != "":
		return []string{"d again deletes it for good", "any other key keeps it"}
	}
	return []string{"Enter goes on with it", "r renames", "d deletes", "Esc closes"}
}

func (l *Sessions) move(n int) { l.at = min(max(l.at+n, 0), max(len(l.rows)-1, 0)) }

// Key picks a session and says what is to be done with it.
func (l *Sessions) Key(name string) bool {
	if l.naming.on {
		return l.typed(name)
	}
	sure := l.sure
	l.sure = ""
	switch name {
	case "up", "k":
		l.move(-1)
		return true
	case "down", "j":
		l.move(+1)
		return true
	case "pgup":
		l.move(-l.page())
		return true
	case "pgdown":
		l.move(+l.page())
		return true
	}
	if len(l.rows) == 0 {
		return false
	}
	s := &l.rows[l.at]
	switch name {
	case "enter":
		if !s.Open {
			l.asked = &Wish{Do: TakeUp, ID: s.ID}
		}
	case "r":
		l.naming.begin(s.Name)
	case "d":
		if sure != s.ID {
			l.sure = s.ID
			return true
		}
		l.asked = &Wish{Do: Delete, ID: s.ID}
	default:
		return sure != "" && name != "esc"
	}
	return true
}

// typed takes a key of a name.
func (l *Sessions) typed(name string) bool {
	done, known := l.naming.key(name)
	if done && strings.TrimSpace(l.naming.text) != "" {
		l.asked = &Wish{Do: Rename, ID: l.rows[l.at].ID, Name: l.naming.text}
	}
	return known
}

func (l *Sessions) page() int { return max(l.h-1, 1) }

func (l *Sessions) Render(w, h int) []string {
	l.h = h
	th := l.th
	switch {
	case !l.known:
		return fill([]string{th.Pad("reading the folder", w)}, w, h)
	case l.failed != "":
		return fill([]string{th.Pad(th.Read.On(th.Cut(l.failed, w)), w)}, w, h)
	case len(l.rows) == 0:
		return fill([]string{th.Pad("nothing is kept yet: a chat is saved when the program ends, by /new, and by ^S", w)}, w, h)
	}
	const when, asked = 16, 9
	model, size := min(w/4, 36), 9
	if w < 100 { // the name is what one looks for
		model, size = 12, 0
	}
	name := max(w-2-when-2-model-2-asked-2-size-2, 10)
	column := func(state string) string {
		if size == 0 {
			return ""
		}
		return "  " + th.PadLeft(state, size)
	}
	rows := []string{th.Dim.On(th.Pad("  "+th.Pad("saved", when)+"  "+th.Pad("name", name)+"  "+th.Pad("model", model)+"  "+th.PadLeft("questions", asked)+column("state"), w))}
	page := l.page()
	l.top = min(max(l.top, l.at-page+1), l.at)
	for i := l.top; i < min(l.top+page, len(l.rows)); i++ {
		s := &l.rows[i]
		mark, called := " ", th.Shown(term.CleanLine(s.Name))
		if i == l.at {
			mark = th.G.Focus
		}
		if s.Open {
			called = "(open) " + called
		}
		if i == l.at && l.naming.on {
			called = l.naming.show(th, name)
		}
		state := "-"
		if s.StateBytes > 0 {
			state = units.Size(s.StateBytes)
		}
		line := mark + " " + th.Pad(s.Saved.Format("2006-01-02 15:04"), when) + "  " + th.Pad(th.Cut(called, name), name) + "  " +
			th.Pad(th.Cut(th.Shown(term.CleanLine(s.Model)), model), model) + "  " + th.PadLeft(fmt.Sprint(s.Questions), asked) + column(state)
		line = th.Pad(line, w)
		if i == l.at {
			line = th.Selected.On(line)
		}
		rows = append(rows, line)
	}
	return fill(rows, w, h)
}

// Typing implements Typist.
func (l *Sessions) Typing() bool { return l.naming.on }
