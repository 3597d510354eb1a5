package pane

import (
	"fmt"
	"slices"
	"strings"

	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// An expanded pane shows how its figures came about: charts of the latest tokens, and of
// what it has seen itself.

// point is a column of a chart.
type point struct {
	v    float64
	ok   bool
	edge bool // between two runs
}

// history returns a figure of the latest tokens for a chart of n columns, the newest last.
func (p *base) history(n int, figure func(*profile.Record) profile.Maybe[float64]) []point {
	var out []point
	run := 0
	for i := 0; len(out) < n; i++ {
		r, ok := p.s.Latest(i)
		if !ok {
			break
		}
		if run != 0 && r.Run != run {
			out = append(out, point{edge: true})
		}
		run = r.Run
		v := figure(r)
		out = append(out, point{v: v.Value, ok: v.OK})
	}
	out = out[:min(len(out), n)]
	slices.Reverse(out)
	return out
}

// measured returns the values of those points that have one, sorted.
func measured(points []point) []float64 {
	var out []float64
	for _, p := range points {
		if p.ok {
			out = append(out, p.v)
		}
	}
	slices.Sort(out)
	return out
}

// topOf returns the top of an axis that holds all but rare values, which are drawn as cut
// off.
func topOf(points []point) float64 {
	sorted := measured(points)
	if len(sorted) == 0 {
		return 1
	}
	top := sorted[int(0.95*float64(len(sorted)-1))]
	if top <= 0 {
		top = sorted[len(sorted)-1]
	}
	if top <= 0 { // none of them is more
		return 1
	}
	return float64(roundUp(int64(top*1.05e6))) / 1e6
}

// plot draws points in h rows, the last on the right, over an axis that begins at 0.
func (p *base) plot(points []point, h int, top float64, label func(float64) string, st term.Style) []string {
	th := p.th
	w := max(p.w-axisWidth, 1)
	points = points[max(len(points)-w, 0):]
	rows := make([]string, h)
	for row := range h {
		text := ""
		switch row {
		case h - 1:
			text = th.Cut(label(top), 4)
		case 0:
			text = "0"
		}
		var b strings.Builder
		for _, pt := range points {
			b.WriteString(p.cellAt(pt, row, h, top))
		}
		rows[h-1-row] = th.Dim.On(fmt.Sprintf("%4s %s", text, th.G.Vertical)) + term.Blanks(w-len(points)) + st.On(b.String())
	}
	return rows
}

// cellAt is a column's cell in a row, counted from below.
func (p *base) cellAt(pt point, row, h int, top float64) string {
	g := &p.th.G
	switch {
	case pt.edge:
		return g.Vertical
	case !pt.ok:
		return " "
	case row == h-1 && pt.v > top*1.02:
		return g.Over
	}
	eighths := int(8*(pt.v/top*float64(h)-float64(row)) + 0.5)
	if row == 0 && pt.v > 0 {
		eighths = max(eighths, 1)
	}
	if eighths <= 0 {
		return " "
	}
	return g.Levels[min(eighths, 8)-1]
}

// spark draws values between 0 and top in a row of as many columns.
func (p *base) spark(values []float64, top float64, w int, st term.Style) string {
	values = values[max(len(values)-w, 0):]
	var b strings.Builder
	for _, v := range values {
		b.WriteString(p.cellAt(point{v: v, ok: true}, 0, 1, max(top, v)))
	}
	return term.Blanks(w-len(values)) + st.On(b.String())
}

// figure is what an expanded pane charts of each token.
type figure struct {
	name string
	of   func(*profile.Record) profile.Maybe[float64]
	text func(float64) string
	st   term.Style
	top  float64 // of its axis; 0: as the values want it
}

// charts draws figures on each other in h rows: a line that names each, and its chart.
// Figures that no token has are named as not measured.
func (p *base) charts(h int, all []figure) []string {
	th := p.th
	var rows []string
	there := 0
	for _, f := range all {
		if len(measured(p.history(1<<10, f.of))) > 0 {
			there++
		}
	}
	each := 0
	if there > 0 {
		each = (h - len(all)) / there
	}
	for _, f := range all {
		points := p.history(max(p.w-axisWidth, 1), f.of)
		sorted := measured(points)
		if len(sorted) == 0 {
			rows = append(rows, th.Row(p.w, 2, th.Labelled(0, f.name, units.NotMeasured)))
			continue
		}
		rows = append(rows, th.Row(p.w, 2, th.Text(0, th.Bold, f.name), th.Labelled(0, "median", f.text(stats.Median(sorted))),
			th.Labelled(1, "least", f.text(sorted[0])), th.Labelled(1, "most", f.text(sorted[len(sorted)-1])), th.Text(2, th.Dim, fmt.Sprintf("the last %d tokens", len(sorted)))))
		if each > 0 {
			top := f.top
			if top == 0 {
				top = topOf(points)
			}
			rows = append(rows, p.plot(points, each, top, f.text, f.st)...)
		}
	}
	return rows
}
