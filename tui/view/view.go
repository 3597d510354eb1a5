// Package view draws what fills the whole screen: one file a view, and one list of
// them. Views lie on a stack; the chat and its panes are what is below it.
package view

import (
	"slices"

	"bmoe/tui/term"
)

// Kinds are the views that keys and commands open. A new view is one file, and one
// line here: its keys, its command and its line in the help and the footer follow.
var Kinds = []Kind{
	{Name: "help", Key: "f1", Twin: "?", Help: "keys and commands", New: newHelp},
	{Name: "experts", Rank: 5, Key: "f8", Twin: "x", Help: "every expert: in memory or not, and what happened to it last", New: newExperts, Own: []HelpLine{
		{Keys: "Left Right Up Down", Text: "pick an expert of the map; PgUp PgDn: ten layers on; Home End: a layer's first and last"},
		{Keys: "z", Text: "a row of the map for a layer, or for two"},
	}},
	{Name: "layers", Twin: "l", Help: "what each layer cost: which of them the waiting was for", New: newLayers, Own: []HelpLine{
		{Keys: "s", Text: "sort layers by their waiting, or by number"},
	}},
	{Name: "runs", Rank: 1, Key: "f10", Twin: "r", Help: "every run of the session, compared", New: newList, Own: []HelpLine{
		{Keys: "Up Down k j", Text: "pick a run in the list of runs"},
		{Keys: "Enter", Text: "compare every run with the picked one; again: choose for itself"},
		{Keys: "w", Text: "write the list of runs as CSV and as Markdown"},
		{Keys: "n", Text: "a note on the picked run, a line that is kept with the session"},
	}},
	{Name: "sessions", Help: "conversations that were kept: go on with one, rename, delete", New: func(s Source) View { return s.Sessions }},
	{Name: "models", Rank: 4, Key: "ctrl+o", Twin: "M", Screen: true, Help: "models here and on the server: pick one to change to, or download one", New: func(s Source) View { return s.Models }, Own: []HelpLine{
		{Keys: "Enter", Text: "change to the picked model; Esc goes back while it opens"},
		{Keys: "Left Right", Text: "sort the models"},
	}},
	{Name: "settings", Help: "every setting: its value, where that comes from, how it is changed", New: func(s Source) View { return s.Settings }},
}

// Kind tells of a view what the screen must know to offer it.
type Kind struct {
	Name string // of the command too, and in the footer
	Rank int    // in the footer, the highest goes first when room is short
	Key  string // opens and closes it anywhere, as the terminal library names it; empty: the command does
	Twin string // does so with the panes focused, and from another view
	Help string
	Own  []HelpLine // its own keys, if they need words
	// Screen is true if the chat without a screen has no command of its name.
	Screen bool
	New    func(Source) View
}

// Source is what views may show. What it points to changes as the session goes on.
type Source struct {
	Theme *term.Theme
	Runs  *Runs
	// Sessions is the list of kept conversations, a view itself.
	Sessions *Sessions
	// Settings is the page of settings, a view likewise.
	Settings *Settings
	// Models is the list of models, a view likewise.
	Models *Models
	// Residents are the model's experts and layers.
	Residents *Residents
	Keys      func() []HelpLine // every key and command
}

// Figures says what figures a view shows, and so what its frame must warn of.
type Figures uint8

// The kinds of figures.
const (
	None Figures = iota // words only
	Past                // of runs that are over
	Live                // of the run that goes on; they can be held still
)

// View is a page over the whole screen. It is a plain value of the screen's own
// goroutine.
type View interface {
	// Title returns the frame's top line, at most w columns.
	Title(w int) string
	Figures() Figures
	// Render returns exactly h rows of w columns.
	Render(w, h int) []string
	// Key takes a key, as the terminal library names it. A key that the view does
	// not know means what it means elsewhere.
	Key(name string) (known bool)
	// Wheel obeys the mouse wheel, up with -1 and down with +1.
	Wheel(dir int)
	// Hints are what the status line says of the view's keys, the most important
	// first.
	Hints() []string
}

// Typist is a view into which letters can be typed, so that they are no keys then.
type Typist interface{ Typing() bool }

// Stack is the views that are open. The last one fills the screen.
type Stack []View

// Top returns the view that is shown, nil if none is.
func (s Stack) Top() View {
	if len(s) == 0 {
		return nil
	}
	return s[len(s)-1]
}

// Toggle closes a view if it is shown, and brings it to the top otherwise.
func (s *Stack) Toggle(v View) {
	shown := s.Top() == v
	*s = slices.DeleteFunc(*s, func(o View) bool { return o == v })
	if !shown {
		*s = append(*s, v)
	}
}

// Close closes the view that is shown, if one is.
func (s *Stack) Close() {
	if len(*s) > 0 {
		s.Toggle(s.Top())
	}
}

// Clear closes all views.
func (s *Stack) Clear() { *s = (*s)[:0] }

// fill cuts rows to h, or adds blank ones of w columns.
func fill(rows []string, w, h int) []string {
	for len(rows) < h {
		rows = append(rows, term.Blanks(w))
	}
	return rows[:h]
}
