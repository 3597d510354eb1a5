// Package pane draws the stacked figures on the right of the screen: one file a
// pane, and one list of them. A pane is told what to draw and how much room it
// has; it knows neither its number nor what is beside it.
package pane

import (
	"slices"
	"strconv"

	"bmoe/profile"
	"bmoe/tui/term"
)

const why = "why it is slow"

// kinds are the panes from top to bottom, which is also their number. A new pane
// is one file, and one line here.
var kinds = []kind{
	{"token", newTimeline},
	{"cache", newCache},
	{"lanes", newLanes},
	{"file", newMapping},
	{"process", newProcess},
	{why, newDiagnosis},
}

// Count is how many panes there are.
func Count() int { return len(kinds) }

// Why is which of them says why a run was slow.
func Why() int {
	return slices.IndexFunc(kinds, func(k kind) bool { return k.name == why })
}

type kind struct {
	name string
	new  func(base) Pane
}

// Pane is one of the stacked figures.
type Pane interface {
	// Apply says what to draw; it stays valid until the next Apply. With the
	// settings changed since the last run, of is that run's number, else 0.
	Apply(s *profile.Snapshot, of int)
	// SetSize gives the columns and rows inside the frame; h may be 0.
	SetSize(w, h int)
	// SetExpanded says whether the pane has the screen to itself.
	SetExpanded(on bool)
	// Title returns the frame's top line, at most w columns.
	Title(w int) string
	// Rows returns how many rows show all of it, and how many it can use.
	Rows() (want, most int)
	// Render returns exactly h rows of w columns.
	Render() []string
}

// New returns the panes, with nothing to draw yet. say puts the settings that a text
// mentions in the screen's words.
func New(th *term.Theme, say func(string) string) []Pane {
	panes := make([]Pane, len(kinds))
	for i, k := range kinds {
		panes[i] = k.new(base{th: th, say: say, s: &profile.Snapshot{Phase: profile.Loading}, number: strconv.Itoa(i + 1), name: strconv.Itoa(i+1) + " " + k.name})
	}
	return panes
}

// base is what every pane has.
type base struct {
	th       *term.Theme
	say      func(string) string
	number   string
	name     string // with its number
	s        *profile.Snapshot
	of       int // see Pane.Apply
	w, h     int
	expanded bool
}

func (p *base) Apply(s *profile.Snapshot, of int) { p.s, p.of = s, of }
func (p *base) SetSize(w, h int)                  { p.w, p.h = w, h }
func (p *base) SetExpanded(on bool)               { p.expanded = on }

// blank reports that there is nothing to draw yet: a figure of 0 would be a lie.
func (p *base) blank() bool { return p.s.Phase == profile.Loading }

// fill cuts or fills rows to the pane's height.
func (p *base) fill(rows []string) []string {
	if len(rows) > p.h {
		return rows[:p.h]
	}
	for len(rows) < p.h {
		rows = append(rows, term.Blanks(p.w))
	}
	return rows
}

// titled puts the pane's number and name before its figures. Where the full
// words do not fit, the short ones are tried before any figure is dropped.
func (p *base) titled(w int, full, short []term.Part) string {
	if p.blank() {
		full, short = nil, nil
	}
	head := []term.Part{p.th.Text(0, p.th.Title, p.name)}
	return p.th.FirstFit(w, append(head, full...), append(head, short...))
}

// plenty is how many rows the first pane takes before others get details that
// they can do without.
const plenty = 24

// Stack shares out h rows among panes whose frames touch: a title row each and
// a bottom row. It returns the rows inside each frame. When they do not all
// fit, the picked pane is served first, then the others from the top; what is
// left over goes to the first pane, whose chart gains by it.
func Stack(panes []Pane, picked, h int) []int {
	rows := make([]int, len(panes))
	left := h - len(panes) - 1
	give := func(i, n int) {
		n = max(min(n, left), 0)
		rows[i] += n
		left -= n
	}
	want, _ := panes[picked].Rows()
	give(picked, want)
	for i, p := range panes {
		if i != picked {
			want, _ := p.Rows()
			give(i, want)
		}
	}
	for i := len(panes) - 1; i > 0 && left > plenty; i-- {
		_, most := panes[i].Rows()
		give(i, min(most-rows[i], left-plenty))
	}
	give(0, left)
	return rows
}
