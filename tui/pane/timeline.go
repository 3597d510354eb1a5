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
			th.Labelled(3, "p95", s.Wall.P95.Text(units.Ms, " ms")),
			tail)
	}
	return p.titled(w, parts(" ms", "without waiting", " tok/s"), parts("", "no waits", "/s"))
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
	if chart > 4 && !p.remote() {
		rows = append(rows, p.shares())
		chart--
	}
	if chart > 0 {
		rows = append(rows, p.chart(chart)...)
	}
	rows = append(append(rows, p.legend()), detail...)
	if tableRows > 2 {
		rows = append(rows, p.tokens(tableRows)...)
	}
	return p.fill(rows)
}

// shares is a bar of where a token's time goes: the run's mean, or the picked token.
func (p *timeline) shares() string {
	mean := p.s.Mean
	if r := p.picked(); r != nil {
		one := *r
		one.Tokens = 1
		mean = one.Means()
	}
	return shares(p.th, &mean, p.w)
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
	items := func(head, sep, tail, cacheWork string, f func(float64) string) []term.Part {
		item := func(st term.Style, glyph, name string, v profile.Maybe[int64]) term.Part {
			val := v.Text(func(ns int64) string { return f(units.InMs(ns)) }, "")
			return term.Part{S: st.On(glyph) + sep + name + " " + val, W: 1 + len(sep) + len(name) + 1 + len(val)}
		}
		return []term.Part{
			th.Text(0, th.Dim, head),
			item(th.Stall, th.G.Stall, "waits", mean.Stall),
			item(th.Compute, th.G.Compute, "computes", mean.Compute),
			item(th.Mgmt, th.G.Mgmt, cacheWork, mean.Mgmt),
			item(th.Other, th.G.Other, "sync", mean.Other),
			th.Text(0, th.Dim, tail),
		}
	}
	s := th.FirstFit(p.w, items(head+":", " ", "ms a token", "cache work", units.Sig), items(head+" ms:", " ", "", "cache work", units.Short), items(head+" ms", "", "", "cache", units.Short), items("ms", "", "", "cache", units.Short))
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
	stacks := make([]stack, len(p.slots))
	for i := range p.slots {
		if c := &p.slots[i]; c.kind == aColumn {
			stacks[i] = stacked(&c.Column, per)
		}
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
				st, g = p.cell(&stacks[i], row)
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

// stack is how a column is drawn: rows of each part from below, and eighths of a row of
// the last one on top.
type stack struct {
	rows    [4]int // compute, mgmt, other, stall
	full    int    // their sum
	eighths int
}

// stacked cuts a column in rows of per ns. A part that is less than half a row gets
// none, however many columns it is in: drawn, it would look like more than it is. What
// is left over is the largest part's.
func stacked(c *Column, per float64) stack {
	n := float64(max(c.Tokens, 1)) * per
	parts := [4]float64{float64(c.Compute) / n, float64(c.Mgmt) / n, float64(c.Other) / n, float64(c.Stall) / n}
	total := float64(c.Wall) / n
	if c.Undivided {
		parts = [4]float64{2: total}
	}
	s := stack{full: int(total)}
	if s.eighths = int((total - float64(s.full)) * 8); s.full == 0 {
		s.eighths = max(s.eighths, 1)
	}
	largest, left := 0, s.full
	for i, x := range parts {
		s.rows[i] = int(x + 0.5)
		left -= s.rows[i]
		if x > parts[largest] {
			largest = i
		}
	}
	for ; left < 0; left++ { // rounded up more often than down
		most := 0
		for i, n := range s.rows {
			if n > s.rows[most] {
				most = i
			}
		}
		s.rows[most]--
	}
	s.rows[largest] += left
	return s
}

// cell returns what stands in a row of a column, from below.
func (p *timeline) cell(s *stack, row int) (term.Style, string) {
	th := p.th
	looks := [4]struct {
		st term.Style
		g  string
	}{{th.Compute, th.G.Compute}, {th.Mgmt, th.G.Mgmt}, {th.Other, th.G.Other}, {th.Stall, th.G.Stall}}
	top := 0
	for i, n := range s.rows {
		if n > 0 {
			top = i
		}
		if row -= n; row < 0 {
			return looks[i].st, looks[i].g
		}
	}
	if row > 0 || s.eighths == 0 {
		return "", " "
	}
	if th.NoColor { // only the texture tells what it is
		if s.eighths < 4 {
			return "", " "
		}
		return looks[top].st, looks[top].g
	}
	return looks[top].st, th.G.Levels[s.eighths-1]
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
	case row == h-2 && row > 0 && lineRow != row:
		label = "ms"
	case h >= 5 && row == h/2 && lineRow != row-1 && lineRow != row+1:
		label = units.Ms(top / 2)
	}
	return p.th.Dim.On(fmt.Sprintf("%4s %s", label, p.th.G.Vertical))
}
