package pane

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// timeline shows where the time of the last tokens went: a column a token,
// stacked from below compute, mgmt, other, stall. Stall is on top so that the
// ceiling line, the time a token would take if flash were free, runs where the
// stall begins.
type timeline struct{ base }

func newTimeline(b base) Pane { return &timeline{b} }

func (p *timeline) Title(w int) string {
	th, s := p.th, p.s
	last := profile.Maybe[int64]{}
	if r, ok := s.Latest(0); ok {
		last = profile.Some(r.Wall)
	}
	parts := func(unit, ceil, rate string) []term.Part {
		f := last.Text(units.Ms, unit)
		tail := th.Labelled(2, ceil, s.Ceiling.Text(units.Sig, rate))
		if p.remote() {
			tail = th.Text(2, th.Dim, "between deltas")
		}
		return []term.Part{
			{S: th.Dim.On("last ") + th.Bold.On(f), W: 5 + th.Width(f)},
			th.Labelled(1, "p50", s.Wall.P50.Text(units.Ms, "")),
			th.Labelled(1, "p95", s.Wall.P95.Text(units.Ms, " ms")),
			tail,
		}
	}
	return p.titled(w, parts(" ms", "ceiling", " tok/s"), parts("", "ceil", "/s"))
}

func (p *timeline) Rows() (want, most int) { return 5, 200 }

func (p *timeline) Render() []string {
	if p.h == 0 || p.blank() {
		return p.fill(nil)
	}
	var rows []string
	tableRows := 0
	if p.expanded { // also the latest tokens in figures
		tableRows = min(p.h/2, 24)
	}
	chart := p.h - 1 - tableRows
	if chart > 0 {
		rows = p.chart(chart)
	}
	rows = append(rows, p.legend())
	if tableRows > 2 {
		rows = append(rows, p.tokens(tableRows)...)
	}
	return p.fill(rows)
}

// legend names the parts with their glyphs and the run's means.
func (p *timeline) legend() string {
	th := p.th
	mean := &p.s.Mean
	if p.remote() {
		return th.Row(p.w, 2, th.Coloured(0, th.Other, th.G.Other+" gap between deltas, mean", mean.Wall.Text(units.Ms, " ms")), th.Text(1, th.Dim, "what it went to is not told"))
	}
	items := func(head, sep, tail string, f func(float64) string) []term.Part {
		item := func(st term.Style, glyph, name string, v profile.Maybe[int64]) term.Part {
			val := v.Text(func(ns int64) string { return f(units.InMs(ns)) }, "")
			return term.Part{S: st.On(glyph) + sep + name + " " + val, W: 1 + len(sep) + len(name) + 1 + len(val)}
		}
		return []term.Part{
			th.Text(0, th.Dim, head),
			item(th.Compute, th.G.Compute, "compute", mean.Compute),
			item(th.Mgmt, th.G.Mgmt, "mgmt", mean.Mgmt),
			item(th.Stall, th.G.Stall, "stall", mean.Stall),
			item(th.Other, th.G.Other, "other", mean.Other),
			th.Text(0, th.Dim, tail),
		}
	}
	s := th.FirstFit(p.w, items("mean:", " ", "ms/token", units.Sig), items("mean:", " ", "", units.Sig), items("mean:", " ", "", units.Short), items("mean", "", "", units.Short))
	return s + term.Blanks(p.w-th.Width(s))
}

const axisWidth = 6 // "1234 " and the axis

// scale returns the top of the axis in ns: a round number of milliseconds that
// holds all but the rare slow token, which is drawn as cut off.
func (p *timeline) scale(n int) int64 {
	walls := make([]int64, 0, profile.RingTokens)
	for i := range n {
		if r, ok := p.s.Latest(i); ok {
			walls = append(walls, r.Wall)
		}
	}
	if len(walls) == 0 {
		return 100e6
	}
	slices.Sort(walls)
	top := stats.SortedQuantile(walls, 0.95)
	if m := stats.SortedQuantile(walls, 0.5); top > 3*m {
		top = 3 * m
	}
	return roundUp(top + top/20)
}

// roundUp returns the next 1, 2, 3, 4, 5, 6 or 8 times a power of ten.
func roundUp(ns int64) int64 {
	v := float64(max(ns, 1))
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if v <= m*unit*1.0001 {
			return int64(m * unit)
		}
	}
	return int64(10 * unit)
}

// chart draws the columns in h rows, the newest token on the right.
func (p *timeline) chart(h int) []string {
	th := p.th
	cols := max(p.w-axisWidth, 1)
	n := int(min(p.s.Count, profile.RingTokens))
	slots, shown := p.slots(cols, n)
	top := p.scale(max(shown, 1))
	per := float64(top) / float64(h)

	lineRow, line := -1, ""
	if c := p.s.Ceiling; c.OK {
		token := units.Second / c.Value
		lineRow, line = int(token/per), units.Ms(int64(token))
	}
	rows := make([]string, h)
	var b strings.Builder
	for row := h - 1; row >= 0; row-- {
		b.Reset()
		if row == lineRow && row > 0 && row < h-1 {
			b.WriteString(th.Bold.On(th.PadLeft(line, 4)) + th.Dim.On(" "+th.G.Vertical))
		} else {
			b.WriteString(p.axis(row, h, top, lineRow))
		}
		var run term.Style
		var cells strings.Builder
		flush := func() {
			b.WriteString(run.On(cells.String()))
			cells.Reset()
		}
		put := func(st term.Style, g string) {
			if st != run {
				flush()
				run = st
			}
			cells.WriteString(g)
		}
		for c := range cols {
			st, g := term.Style(""), " "
			if slots[c] == betweenRuns {
				st, g = th.Dim, th.G.Vertical
			} else if r, ok := p.s.Latest(slots[c]); ok {
				st, g = p.cell(r, (float64(row)+0.5)*per)
				if row == h-1 && float64(r.Wall) > float64(top)*1.02 {
					st, g = th.Stall, th.G.Over
				}
			}
			if row == lineRow && c%2 == 0 && n > 0 {
				st, g = th.Bold, th.G.Line
			}
			put(st, g)
		}
		flush()
		rows[h-1-row] = b.String()
	}
	return rows
}

// What a column may hold instead of a token.
const (
	noToken     = -1
	betweenRuns = -2
)

// slots says which token each column shows, 0 being the newest, with a column
// between two runs; and how many tokens are shown of n.
func (p *timeline) slots(cols, n int) (slots []int, shown int) {
	slots = make([]int, cols)
	run := 0
	for c := cols - 1; c >= 0; c-- {
		r, ok := p.s.Latest(shown)
		switch {
		case !ok || shown == n:
			slots[c] = noToken
		case run != 0 && r.Run != run:
			slots[c], run = betweenRuns, r.Run
		default:
			slots[c], run = shown, r.Run
			shown++
		}
	}
	return slots, shown
}

// cell returns what a token was doing at a height in its column.
func (p *timeline) cell(r *profile.Record, at float64) (term.Style, string) {
	th := p.th
	if r.Undivided {
		if at < float64(r.Wall) {
			return th.Other, th.G.Other
		}
		return "", " "
	}
	sum := float64(r.Compute)
	if at < sum {
		return th.Compute, th.G.Compute
	}
	if sum += float64(r.Mgmt); at < sum {
		return th.Mgmt, th.G.Mgmt
	}
	if sum += float64(r.Other); at < sum {
		return th.Other, th.G.Other
	}
	if sum += float64(r.Stall.Value); at < sum {
		return th.Stall, th.G.Stall
	}
	return "", " "
}

// axis labels the top, the middle and the bottom row.
// The ceiling has a label of its own and needs room around it.
func (p *timeline) axis(row, h int, top int64, lineRow int) string {
	label := ""
	switch {
	case row == h-1:
		label = p.th.Cut(units.Ms(top), 4)
	case row == 0:
		label = "0"
	case h >= 5 && row == h/2 && lineRow != row-1 && lineRow != row+1:
		label = units.Ms(top / 2)
	}
	return p.th.Dim.On(fmt.Sprintf("%4s %s", label, p.th.G.Vertical))
}

// tokenColumns are the figures of the table, the least important dropped first
// where the screen is narrow.
var tokenColumns = []struct {
	name    string
	w, rank int
	get     func(r *profile.Record) string
}{
	{"run.token", 9, 0, func(r *profile.Record) string { return fmt.Sprintf("%d.%d", r.Run, r.Step) }},
	{"wall ms", 7, 0, func(r *profile.Record) string { return units.Ms(r.Wall) }},
	{"compute", 7, 0, func(r *profile.Record) string { return r.Part(r.Compute).Text(units.Ms, "") }},
	{"mgmt", 6, 2, func(r *profile.Record) string { return r.Part(r.Mgmt).Text(units.Ms, "") }},
	{"stall", 6, 0, func(r *profile.Record) string { return r.Stall.Text(units.Ms, "") }},
	{"other", 6, 3, func(r *profile.Record) string { return r.Part(r.Other).Text(units.Ms, "") }},
	{"read MiB", 8, 1, func(r *profile.Record) string { return r.Part(r.ExpertBytes).Text(units.Mebibytes[int64], "") }},
	{"hit %", 5, 0, func(r *profile.Record) string {
		return profile.Ratio(100*float64(r.Hits), float64(r.Lookups)).Text(units.Percent, "")
	}},
	{"evict", 5, 0, func(r *profile.Record) string { return r.Part(r.Evictions).Text(whole, "") }},
	{"re-read", 7, 1, func(r *profile.Record) string { return r.Part(r.Rereads).Text(whole, "") }},
}

func whole(n int64) string { return fmt.Sprint(n) }

// tokens lists the latest tokens in figures, the newest first.
func (p *timeline) tokens(h int) []string {
	th := p.th
	line := func(st term.Style, cell func(i int) string) string {
		parts := make([]term.Part, len(tokenColumns))
		for i, c := range tokenColumns {
			parts[i] = th.Text(c.rank, st, th.PadLeft(cell(i), c.w))
		}
		return th.Row(p.w, 1, parts...)
	}
	rows := []string{term.Blanks(p.w), line(th.Dim, func(i int) string { return tokenColumns[i].name })}
	for i := range h - 2 {
		r, ok := p.s.Latest(i)
		if !ok {
			break
		}
		rows = append(rows, line("", func(i int) string { return tokenColumns[i].get(r) }))
	}
	return rows
}
