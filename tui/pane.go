package tui

import (
	"bmoe/profile"
	"bmoe/tui/term"
)

// pane is one of the stacked figures on the right. A pane is told what to
// draw and how much room it has; it does not know what is beside it.
type pane interface {
	// Apply says what to draw; it stays valid until the next Apply. With the
	// settings changed since the last run, of is that run's number, else 0.
	Apply(s *profile.Snapshot, of int)
	SetSize(w, h int)       // columns and rows inside the frame; h may be 0
	Title(w int) string     // the frame's top line, at most w columns
	Rows() (want, most int) // rows that show all of it; rows it can use in all
	Render() []string       // exactly h rows of w columns
}

// paneBase is what every pane has.
type paneBase struct {
	th   *term.Theme
	s    *profile.Snapshot
	of   int // see pane.Apply
	w, h int
}

func (p *paneBase) Apply(s *profile.Snapshot, of int) { p.s, p.of = s, of }
func (p *paneBase) SetSize(w, h int)                  { p.w, p.h = w, h }

// blank reports that there is nothing to draw yet: a figure of 0 would be a lie.
func (p *paneBase) blank() bool { return p.s.Phase == profile.Loading }

// fill cuts or fills rows to the pane's height.
func (p *paneBase) fill(rows []string) []string {
	if len(rows) > p.h {
		return rows[:p.h]
	}
	for len(rows) < p.h {
		rows = append(rows, term.Blanks(p.w))
	}
	return rows
}

// titled puts a pane's number and name before its figures. Where the full
// words do not fit, the short ones are tried before any figure is dropped.
func (p *paneBase) titled(w int, name string, full, short []term.Part) string {
	if p.blank() {
		full, short = nil, nil
	}
	head := []term.Part{p.th.Text(0, p.th.Title, name)}
	return p.th.FirstFit(w, append(head, full...), append(head, short...))
}

// stack shares out h rows among panes whose frames touch: a title row each and
// a bottom row. It returns the rows inside each frame. When they do not all
// fit, the picked pane is served first, then the others from the top; what is
// left over goes to the first pane, the timeline, whose resolution it is.
func stack(panes []pane, picked, h int) []int {
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
	for i := len(panes) - 1; i > 0 && left > 24; i-- { // tall screens: details, once the timeline has plenty
		_, most := panes[i].Rows()
		give(i, min(most-rows[i], left-24))
	}
	give(0, left)
	return rows
}
