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
type timeline struct {
	base
	lens  *Lens  // nil: the latest tokens
	right int64  // with a lens: the first token of the column on the right; -1: the last column
	slots []slot // as last drawn
}

func newTimeline(b base) Pane { return &timeline{base: b, right: -1} }

func (p *timeline) Title(w int) string {
	th, s := p.th, p.s
	if p.picked() != nil {
		return p.pickedTitle(w)
	}
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
		return append(append([]term.Part{{S: th.Dim.On("last ") + th.Bold.On(f), W: 5 + th.Width(f)}}, p.zoomed()...),
			th.Labelled(1, "p50", s.Wall.P50.Text(units.Ms, "")),
			th.Labelled(1, "p95", s.Wall.P95.Text(units.Ms, " ms")),
			tail)
	}
	return p.titled(w, parts(" ms", "ceiling", " tok/s"), parts("", "ceil", "/s"))
}

func (p *timeline) Rows() (want, most int) { return 5, 200 }

func (p *timeline) Render() []string {
	if p.h == 0 || p.blank() {
		return p.fill(nil)
	}
	var rows, detail []string
	tableRows := 0
	if p.expanded { // also the latest tokens in figures
		if p.picked() != nil {
			detail = p.detail()
			detail = detail[:min(len(detail), p.h*2/3)]
		}
		tableRows = min((p.h-len(detail))/2, 24)
	}
	chart := p.h - 1 - tableRows - len(detail)
	if chart > 0 {
		rows = p.chart(chart)
	}
	rows = append(append(rows, p.legend()), detail...)
	if tableRows > 2 {
		rows = append(rows, p.tokens(tableRows)...)
	}
	return p.fill(rows)
}

// legend names the parts with their glyphs and the run's means.
func (p *timeline) legend() string {
	th := p.th
	mean, head := p.s.Mean, "mean"
	if r := p.picked(); r != nil {
		one := *r
		one.Tokens = 1
		mean, head = one.Means(), "this"
	}
	if p.remote() {
		return th.Row(p.w, 2, th.Coloured(0, th.Other, th.G.Other+" gap between deltas, "+head, mean.Wall.Text(units.Ms, " ms")), th.Text(1, th.Dim, "what it went to is not told"))
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
	s := th.FirstFit(p.w, items(head+":", " ", "ms/token", units.Sig), items(head+":", " ", "", units.Sig), items(head+":", " ", "", units.Short), items(head, "", "", units.Short))
	return s + term.Blanks(p.w-th.Width(s))
}

const axisWidth = 6 // "1234 " and the axis

// scale returns the top of the axis in ns: a round number of milliseconds that
// holds all but the rare slow token, which is drawn as cut off.
func (p *timeline) scale(shown []slot) int64 {
	walls := make([]int64, 0, len(shown))
	for _, c := range shown {
		if c.kind == aColumn {
			walls = append(walls, c.mean(c.Wall))
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
	p.slots = p.fitColumns(max(p.w-axisWidth, 1))
	top := p.scale(p.slots)
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
		for i := range p.slots {
			c := &p.slots[i]
			st, g := term.Style(""), " "
			switch c.kind {
			case betweenRuns:
				st, g = th.Dim, th.G.Vertical
			case aColumn:
				st, g = p.cell(&c.Column, (float64(row)+0.5)*per)
				if row == h-1 && float64(c.mean(c.Wall)) > float64(top)*1.02 {
					st, g = th.Stall, th.G.Over
				}
				if g == " " && c.Tokens > 1 && int(float64(c.Slowest)/per) == row {
					st, g = th.Stall, th.G.Line
				}
			}
			switch {
			case c.picked && row == 0:
				st, g = th.Selected, th.G.Pick
			case c.picked:
				st = th.Selected + st
			case row == lineRow && i%2 == 0 && p.s.Count > 0:
				st, g = th.Bold, th.G.Line
			}
			put(st, g)
		}
		flush()
		rows[h-1-row] = b.String()
	}
	return rows
}

// cell returns what a column's mean token was doing at a height in it.
func (p *timeline) cell(c *Column, at float64) (term.Style, string) {
	th := p.th
	if c.Undivided {
		if at < float64(c.mean(c.Wall)) {
			return th.Other, th.G.Other
		}
		return "", " "
	}
	sum := float64(c.mean(c.Compute))
	if at < sum {
		return th.Compute, th.G.Compute
	}
	if sum += float64(c.mean(c.Mgmt)); at < sum {
		return th.Mgmt, th.G.Mgmt
	}
	if sum += float64(c.mean(c.Other)); at < sum {
		return th.Other, th.G.Other
	}
	if sum += float64(c.mean(c.Stall)); at < sum {
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
