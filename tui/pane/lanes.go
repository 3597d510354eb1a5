package pane

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// lanes shows what each reader gets from the drive.
type lanes struct {
	base
	seen []seenRates // the latest last
}

// seenRates are the lanes' rates at a time.
type seenRates struct {
	at    int64
	rates [profile.MaxLanes]float64
}

const (
	mostSeen  = 240
	seenEvery = 250_000_000 // ns
)

func newLanes(b base) Pane { return &lanes{base: b} }

// Apply implements Pane. The rates of each lane are kept, since tokens do not tell of them.
func (p *lanes) Apply(s *profile.Snapshot, of int) {
	p.base.Apply(s, of)
	n := len(p.seen)
	switch {
	case s.Phase == profile.Idle || s.Lanes.N == 0 || !s.Lanes.Rate.OK:
		return
	case n > 0 && s.At < p.seen[n-1].at+seenEvery:
		return // also of what is held still
	}
	if n == mostSeen {
		p.seen = p.seen[:copy(p.seen, p.seen[1:])]
	}
	next := seenRates{at: s.At}
	for i := range min(s.Lanes.N, profile.MaxLanes) {
		next.rates[i] = s.Lanes.Lane[i].Rate.Value
	}
	p.seen = append(p.seen, next)
}

func (p *lanes) Title(w int) string {
	if p.remote() {
		return p.absent(w, "nothing is read here")
	}
	th, l := p.th, &p.s.Lanes
	if l.Engine == "" && !p.blank() {
		return p.titled(w, []term.Part{th.Text(0, th.Dim, notStreaming(p.s, "nothing is streamed"))}, nil)
	}
	st := term.Style("")
	if l.Mode != "direct" {
		st = th.Read
	}
	mode := th.Text(2, st, term.CleanLine(l.Mode))
	if p.of > 0 {
		parts := []term.Part{th.Labelled(0, fmt.Sprintf("run %d:", p.of), l.RateRun.Text(units.MiBPerSecond, "")), mode}
		return p.titled(w, parts, parts)
	}
	give := fmt.Sprintf("%d lanes give ", l.N)
	if l.N == 1 {
		give = "1 lane gives "
	}
	rate := th.Text(1, "", l.RateRun.Text(units.MiBPerSecond, ""))
	times, alone := profile.Maybe[float64]{}, l.Alone
	if l.RateRun.OK && alone.OK {
		times = profile.Ratio(l.RateRun.Value, alone.Value)
	}
	if !times.OK {
		return p.titled(w, []term.Part{th.Text(0, "", give+l.RateRun.Text(units.MiBPerSecond, "")), mode}, []term.Part{th.Text(0, "", give+l.RateRun.Text(units.MiBPerSecond, ""))})
	}
	told := times.Text(units.Fixed(1), "x one alone")
	return p.titled(w, []term.Part{th.Text(0, th.Bold, give+told), rate, mode}, []term.Part{th.Text(0, th.Bold, give+times.Text(units.Fixed(1), "x")), rate})
}

func (p *lanes) Rows() (want, most int) {
	if p.remote() {
		return 0, 0
	}
	if p.s == nil || p.s.Lanes.Engine == "" {
		return 1, 1
	}
	n := (p.s.Lanes.N + p.columns() - 1) / p.columns()
	if p.s.Lanes.Reason != "" {
		n++
	}
	return min(n, 4) + 1, n + 2 // the last of them only where there is plenty of room
}

// laneCell is the least width of a lane's cell: number, bar, rate.
const laneCell = 10

// columns returns how many lanes stand side by side, so that the rows are as
// few and as even as the width allows.
func (p *lanes) columns() int {
	n := max(p.s.Lanes.N, 1)
	most := min(max((p.w+2)/(laneCell+2), 1), 8)
	rows := (n + most - 1) / most
	return (n + rows - 1) / rows
}

func (p *lanes) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	if p.remote() {
		return p.fill(nil)
	}
	th, l := p.th, &p.s.Lanes
	if l.Engine == "" {
		text := "reads are page faults of the mapping, not lanes"
		if p.s.Model.MoELayers == 0 {
			text = "there are no experts that a token could read"
		}
		return p.fill([]string{th.Row(p.w, 2, th.Text(0, "", text))})
	}
	var rows []string
	took := []term.Part{th.Text(0, "", "a read takes "+l.P50.Text(units.Ms, " ms")+" (p99 "+l.P99.Text(units.Ms, "")+")")}
	engine := th.Labelled(3, "engine", term.CleanLine(l.Engine))
	if p.of > 0 { // the bars would be of lanes that are gone
		rows = append(rows,
			th.Row(p.w, 2, th.Text(0, th.Dim, fmt.Sprintf("settings changed after run %d, which had", p.of))),
			th.Row(p.w, 2, append(took, engine)...))
	} else {
		rows = p.bars()
		rows = rows[:min(len(rows), max(p.h-1, 1))] // with more lanes than room, the sum stays
		if !l.Overlap {
			took = append(took, th.Text(1, th.Read, "overlap off: nothing computes meanwhile"))
		}
		rows = append(rows, th.Row(p.w, 2, append(took, th.Labelled(1, "now", l.Rate.Text(units.MiBPerSecond, "")), engine)...))
	}
	if l.Reason != "" {
		rows = append(rows, th.Row(p.w, 2, th.Text(0, th.Read, term.CleanLine(l.Reason))))
	}
	rows = append(rows, th.Row(p.w, 2,
		th.Labelled(0, "reads", fmt.Sprint(l.Reads)),
		th.Labelled(1, "of", units.Mebibytes(l.Bytes)+" MiB"),
		th.Labelled(1, "one lane alone", l.Alone.Text(units.MiBPerSecond, "")),
		th.Labelled(2, "told after", l.Wake50.Text(units.Ms, " ms"))))
	if p.expanded {
		rows = p.detail(rows)
	}
	return p.fill(rows)
}

// detail adds what an expanded pane has room for: how long reads took, each lane over
// time, and what tokens read.
func (p *lanes) detail(rows []string) []string {
	th, l := p.th, &p.s.Lanes
	left := p.h - len(rows)
	lanes := min(l.N, max(left/3-1, 0))
	chart := (left - lanes - 6) / 2
	if chart < 2 {
		chart, lanes = (left-4)/2, 0
	}
	if chart < 1 {
		return rows
	}
	rows = append(append(rows, term.Blanks(p.w)), p.latencies(chart)...)
	if lanes > 0 {
		name := "each lane"
		if lanes < l.N {
			name = fmt.Sprintf("the first %d of %d lanes", lanes, l.N)
		}
		rows = append(rows, th.Row(p.w, 2, th.Text(0, th.Bold, name), th.Text(0, th.Dim, "MiB/s while a run reads, four columns a second")))
		w := p.w - 24
		var top float64
		for _, s := range p.seen[max(len(p.seen)-w, 0):] {
			for i := range l.N {
				top = max(top, s.rates[i])
			}
		}
		for lane := range lanes {
			var values []float64
			for _, s := range p.seen {
				values = append(values, s.rates[lane])
			}
			now := units.NotMeasured
			if len(values) > 0 {
				now = units.Sig(values[len(values)-1] / units.MiB)
			}
			rows = append(rows, th.Dim.On(fmt.Sprintf("%3d ", lane+1))+p.spark(values, top, w, th.Read)+th.PadLeft("last "+now, 20))
		}
	}
	rate := func(r *profile.Record) profile.Maybe[float64] {
		return profile.Ratio(units.InMiB(r.WindowBytes)*1e9, float64(r.Wall))
	}
	return append(rows, p.charts(p.h-len(rows), []figure{{name: "all lanes, MiB/s by token", of: rate, text: units.Sig, st: th.Read}})...)
}

// thousands writes a count in at most four columns.
func thousands(v float64) string {
	if v < 10_000 {
		return units.Decimals(v, 0)
	}
	return units.Decimals(v/1000, 0) + "k"
}

// latencies draws how many reads took how long, in h rows, with a line above and the axis
// below.
func (p *lanes) latencies(h int) []string {
	th, l := p.th, &p.s.Lanes
	first, last, most, all := -1, 0, int64(0), int64(0)
	for i, n := range l.Latency {
		if n == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last, most, all = i, max(most, n), all+n
	}
	title := []term.Part{th.Text(0, th.Bold, "how long reads took"), th.Labelled(0, "reads", fmt.Sprint(all)), th.Labelled(0, "p50", l.P50.Text(units.Ms, "")), th.Labelled(0, "p99", l.P99.Text(units.Ms, " ms"))}
	if first < 0 {
		return []string{th.Row(p.w, 2, th.Text(0, th.Bold, "how long reads took"), th.Text(0, th.Dim, units.NotMeasured))}
	}
	w := max(p.w-axisWidth, 1)
	wide := max(min(w/(last-first+1), 8), 1)
	var points []point
	var axis strings.Builder
	for i := first; i <= last && (i-first+1)*wide <= w; i++ {
		for c := range wide {
			points = append(points, point{v: float64(l.Latency[i]), ok: c < wide-1 || wide == 1})
		}
		if at := (i - first) * wide; axis.Len() <= at && i > 0 { // where the range begins
			label := units.Ms(profile.LatencyBounds[i-1])
			if at+len(label) < w {
				axis.WriteString(term.Blanks(at-axis.Len()) + label + " ")
			}
		}
	}
	rows := []string{th.Row(p.w, 2, title...)}
	for len(points) < w {
		points = append(points, point{})
	}
	rows = append(rows, p.plot(points, h, float64(most), thousands, th.Read)...)
	return append(rows, th.Pad(th.Dim.On(term.Blanks(axisWidth)+axis.String()+"ms"), p.w))
}

// bars draws the lanes side by side, as many in a row as fit; the bars share
// one scale.
func (p *lanes) bars() []string {
	th, l := p.th, &p.s.Lanes
	n := min(l.N, len(l.Lane))
	// The scale is what one lane gives alone: side by side, lanes that are served one
	// at a time look as short as they are.
	most := l.Alone.Value
	for i := range n {
		if !l.Alone.OK {
			most = max(most, l.Lane[i].Rate.Value)
		}
	}
	cols := p.columns()
	cell := (p.w+2)/cols - 2
	var rows []string
	digits := len(fmt.Sprint(n))
	for from := 0; from < n; from += cols {
		var b strings.Builder
		used := 0
		for i := from; i < min(from+cols, n); i++ {
			rate := l.Lane[i].Rate
			share := 0.0
			if most > 0 {
				share = min(rate.Value/most, 1)
			}
			text := fmt.Sprintf("%4s", rate.Text(func(v float64) string { return units.Decimals(v/units.MiB, 0) }, ""))
			if cell >= 2*laneCell {
				text += " MiB/s"
			}
			bar := th.Bar(share, cell-len(text)-digits-2, th.Read)
			if i > from {
				b.WriteString("  ")
				used += 2
			}
			b.WriteString(th.Dim.On(fmt.Sprintf("%*d", digits, i+1)) + " " + bar.S + " " + text)
			used += digits + 1 + bar.W + 1 + len(text)
		}
		rows = append(rows, b.String()+term.Blanks(p.w-used))
	}
	return rows
}
