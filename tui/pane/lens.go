package pane

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// Lens is what of the session's tokens the first pane shows, where that is not the
// latest ones, a column each.
type Lens struct {
	Columns []Column // the oldest first
	Zoom    int64    // tokens a column
	Picked  int64    // number of the picked token, from 0; below 0: none
	// The rest is of the picked token.
	Record profile.Record
	Text   string           // what it said; empty: not known
	Why    []string         // what it waited for
	Near   []profile.Record // records around it, the newest first
	Before bool             // older tokens are no longer known
}

// Column is what one or more tokens cost that are drawn in one column. Times are ns.
type Column struct {
	Run                               int
	First, Tokens                     int64 // the number of its first, and how many
	Wall, Compute, Mgmt, Other, Stall int64 // added up
	Slowest                           int64 // of its tokens
	Undivided                         bool  // see profile.Record
}

// Add takes in another token.
func (c *Column) Add(r *profile.Record) {
	c.Tokens++
	c.Wall += r.Wall
	c.Compute += r.Compute
	c.Mgmt += r.Mgmt
	c.Other += r.Other
	c.Stall += r.Stall.Value
	c.Slowest = max(c.Slowest, r.Wall)
	c.Undivided = r.Undivided
}

// Has reports whether a token is in the column.
func (c *Column) Has(token int64) bool { return c.First <= token && token < c.First+c.Tokens }

func (c *Column) mean(sum int64) int64 { return sum / max(c.Tokens, 1) }

// Timeline is the pane that shows single tokens.
type Timeline interface {
	Pane
	// Look says what tokens it shows; nil: the latest.
	Look(*Lens)
	// Columns is how many tokens it has room for, a column each.
	Columns() int
	// At returns the first token of the column that is drawn at x, within the frame.
	At(x int) (token int64, ok bool)
}

func (p *timeline) Look(l *Lens) {
	p.lens = l
	if l == nil || l.Picked < 0 {
		p.right = -1
	}
}

func (p *timeline) Columns() int { return max(p.w-axisWidth, 1) }

func (p *timeline) At(x int) (token int64, ok bool) {
	x -= axisWidth
	if x < 0 || x >= len(p.slots) || p.slots[x].kind != aColumn {
		return 0, false
	}
	return p.slots[x].First, true
}

// picked returns the record of the token that is picked, nil if none is.
func (p *timeline) picked() *profile.Record {
	if p.lens == nil || p.lens.Picked < 0 {
		return nil
	}
	return &p.lens.Record
}

// slot is what a column of the screen holds.
type slot struct {
	Column
	kind   slotKind
	picked bool
}

type slotKind uint8

const (
	noToken slotKind = iota
	betweenRuns
	aColumn
)

// fitColumns says what each column of the screen shows, with a column between two
// runs. With a token picked the picture stays where it is while that is in it.
func (p *timeline) fitColumns(room int) []slot {
	if p.lens == nil {
		count := p.s.Count
		return fit(room, func(i int) (Column, bool) {
			r, ok := p.s.Latest(i)
			if !ok {
				return Column{}, false
			}
			c := Column{Run: r.Run, First: count - 1 - int64(i)}
			c.Add(r)
			return c, true
		}, -1)
	}
	cols, at := p.lens.Columns, p.lens.Picked
	last := len(cols) - 1
	pick := -1
	for i := range cols {
		if cols[i].Has(at) {
			pick = i
		}
		if at >= 0 && cols[i].First == p.right {
			last = i
		}
	}
	last = max(last, pick)
	for {
		slots := fit(room, func(i int) (Column, bool) {
			if i > last {
				return Column{}, false
			}
			return cols[last-i], true
		}, at)
		shown := pick < 0
		for i := range slots {
			shown = shown || slots[i].picked
		}
		if shown || last <= pick {
			if at >= 0 && last >= 0 {
				p.right = cols[last].First
			}
			return slots
		}
		last--
	}
}

// fit lays columns out from the right; get returns the i-th last one.
func fit(room int, get func(i int) (Column, bool), picked int64) []slot {
	slots := make([]slot, room)
	run, i := 0, 0
	for x := room - 1; x >= 0; x-- {
		c, ok := get(i)
		if !ok {
			break
		}
		if run != 0 && c.Run != run {
			slots[x].kind, run = betweenRuns, c.Run
			continue
		}
		slots[x] = slot{c, aColumn, picked >= 0 && c.Has(picked)}
		run = c.Run
		i++
	}
	return slots
}

// zoomed says that a column is more than a token.
func (p *timeline) zoomed() []term.Part {
	if p.lens == nil || p.lens.Zoom < 2 {
		return nil
	}
	return []term.Part{p.th.Text(1, p.th.Read, fmt.Sprintf("%d tokens a column", p.lens.Zoom))}
}

// pickedTitle is the title with a token picked: which, and what it cost.
func (p *timeline) pickedTitle(w int) string {
	th, r := p.th, p.picked()
	of := fmt.Sprintf(" of run %d", r.Run)
	ps := []term.Part{
		{S: th.Bold.On(fmt.Sprint(r.Step)) + th.Dim.On(of), W: len(fmt.Sprint(r.Step)) + len(of)},
		th.Text(0, th.Bold, units.Ms(r.Wall)+" ms"),
	}
	if p.lens.Text != "" {
		ps = append(ps, th.Text(1, th.Accent, th.Cut(fmt.Sprintf("%q", th.Shown(p.lens.Text)), 20)))
	}
	ps = append(ps, p.zoomed()...)
	ps = append(ps, th.Labelled(2, "p50", p.s.Wall.P50.Text(units.Ms, "")), th.Labelled(3, "p95", p.s.Wall.P95.Text(units.Ms, " ms")))
	return p.titled(w, ps, ps)
}

// detail tells of the picked token: what it cost, and what it waited for.
func (p *timeline) detail() []string {
	th, r := p.th, p.picked()
	rows := []string{term.Blanks(p.w)}
	say := func(st term.Style, text string) {
		for i, s := range term.Words(th.Shown(text), max(p.w-2, 1)) {
			if i > 0 {
				s = "  " + s
			}
			rows = append(rows, th.Pad(st.On(s), p.w))
		}
	}
	for i, line := range p.lens.Why {
		st := term.Style("")
		switch {
		case i == 0:
			st = th.Bold
		case strings.Contains(line, "[estimated]"):
			st = th.Accent
		}
		say(st, line)
	}
	if !r.Undivided {
		say(th.Dim, fmt.Sprintf("read %s, %s of %s experts were there; CPU %s, page faults %s",
			r.Part(r.ExpertBytes).Text(units.Mebibytes[int64], " MiB"), r.Part(r.Hits).Text(whole, ""), r.Part(r.Lookups).Text(whole, ""), r.CPU.Text(units.Ms, " ms"), r.MajorFaults.Text(whole, "")))
	}
	if p.lens.Before {
		say(th.Dim, fmt.Sprintf("earlier tokens are %s: the latest %d are kept", units.NotMeasured, profile.HistoryTokens))
	}
	return rows
}
