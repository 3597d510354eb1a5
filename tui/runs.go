package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// runList is the list of runs as a view: equal runs are a row, each row is held
// against a base.
type runList struct {
	ab.Runs
	th     *term.Theme
	h      int       // rows
	at     int       // picked group
	top    int       // first shown
	chosen *ab.Group // as the base of all; nil: each group has its own

	again string      // how to ask for a run again: a key or a command
	early map[int]int // prompt tokens done, by the number of a run that ended before its first token
}

// add takes a run, and how far its prefill had got. Its group is picked if the
// newest was.
func (l *runList) add(r *backend.Run, prefilled int) {
	if stoppedEarly(r) {
		if l.early == nil {
			l.early = map[int]int{}
		}
		l.early[r.N] = prefilled
	}
	newest := l.Last() == nil || l.picked() == l.Of(l.Last())
	l.Add(r)
	if newest {
		l.at = slices.Index(l.Groups(), l.Of(r))
	}
}

func (l *runList) move(n int) {
	l.at = min(max(l.at+n, 0), max(len(l.Groups())-1, 0))
}

func (l *runList) picked() *ab.Group { return l.Groups()[l.at] }

// choose makes the picked runs the base of all others, or lets them be chosen
// again.
func (l *runList) choose() {
	if len(l.All()) == 0 || l.chosen == l.picked() {
		l.chosen = nil
		return
	}
	l.chosen = l.picked()
}

// against returns what a group is held against, nil if nothing.
func (l *runList) against(g *ab.Group) *ab.Group {
	switch l.chosen {
	case nil:
		return l.Base(g)
	case g:
		return nil
	}
	return l.chosen
}

// summary is the line under an answer.
func (l *runList) summary(r *backend.Run) string {
	if stoppedEarly(r) {
		return l.endOfPrefill(r)
	}
	t := &r.Result.PerToken
	s := fmt.Sprintf("%s, %s tok/s; %s ms/token, %s of it stall; hit %s %%",
		units.Plural(int64(r.Result.NGen), "token"), r.Result.DecodeTPS.Text(units.Sig, ""), t.Wall.Text(toMs, ""), t.Stall.Text(toMs, ""), r.Result.Cache.HitPct.Text(units.Percent, ""))
	switch r.Result.StopReason {
	case "length":
		s += "; ended at the token limit"
	case "context":
		s += "; ended because the context is full"
	}
	if f := flags(r); f != "" {
		s += "; " + f
	}
	return s
}

// stoppedEarly reports that a run ended before its first token, so that it has
// no figures of decoding.
func stoppedEarly(r *backend.Run) bool { return r.Err != nil && r.Result.NGen == 0 }

// endOfPrefill says how far a run got that has no token.
func (l *runList) endOfPrefill(r *backend.Run) string {
	verb := "failed"
	if errors.Is(r.Err, context.Canceled) {
		verb = "stopped"
	}
	return fmt.Sprintf("%s in prefill after %d of %s", verb, l.early[r.N], units.Plural(int64(r.Result.NPrompt-r.Result.NCached), "prompt token"))
}

// flags are the words that qualify a run's figures.
func flags(r *backend.Run) string { return term.CleanLine(r.Result.Qualifiers()) }

// shortFlags are the flags for the table, where there is little room. What
// disturbed a run stands in the column of changes.
func shortFlags(g *ab.Group) string {
	var rest profile.Result
	for _, f := range g.First().Result.Flags {
		if !slices.Contains(g.First().Disturbed.Flags(), f) {
			rest.Flags = append(rest.Flags, f)
		}
	}
	return strings.Replace(term.CleanLine(rest.Qualifiers()), "SIMULATED", "SIM", 1)
}

// verdict says in one line what the latest run tells beside others; empty if
// there is nothing to hold it against.
func (l *runList) verdict() string {
	c, ok := l.Verdict()
	if !ok {
		if n := len(l.Of(l.Last()).Runs); n > 1 {
			return l.pooled(l.Of(l.Last()))
		}
		return ""
	}
	return l.sentence(&c)
}

// sentence words a comparison: who against whom, what differs, how much, and
// whether the texts are the same.
func (l *runList) sentence(c *ab.Comparison) string {
	a, b := c.Base, c.Group
	s := fmt.Sprintf("run %s against run %s (%s): %s", b.Name(), a.Name(), c.What(), c.Difference)
	if was, is := a.Median(ab.DecodeTPS), b.Median(ab.DecodeTPS); c.Verdict != stats.NotComparable && was.OK && is.OK {
		s += fmt.Sprintf("; %s tok/s from %s", units.Sig(is.Value), units.Sig(was.Value))
		if c.Partial() {
			s += fmt.Sprintf(", compared over the %d tokens that both have", c.Tokens+1)
		}
	}
	if c.SameStart {
		s += "; text " + c.Text()
	}
	return s
}

// pooled tells of equal runs how many there are and by how much they differ.
func (l *runList) pooled(g *ab.Group) string {
	return fmt.Sprintf("run %s: %d equal runs, median %s tok/s, from lowest to highest %s", g.Name(), len(g.Runs),
		g.Median(ab.DecodeTPS).Text(units.Sig, ""), g.Spread(ab.DecodeTPS).Text(func(v float64) string { return units.Percent(100 * v) }, " %"))
}

// toMs formats seconds as milliseconds, without the unit.
func toMs(v float64) string { return units.Sig(v * 1e3) }

// settings lists what can be changed between runs, and what somebody chose.
func settings(vs []backend.Value) string {
	var out []string
	for _, v := range vs {
		if v.Live || v.Given {
			out = append(out, v.Name+" "+v.Shown)
		}
	}
	return strings.Join(out, ", ")
}

// severalPrompts reports that the runs did not all start alike, so that each
// must say what it was asked.
func (l *runList) severalPrompts() bool {
	for _, r := range l.All() {
		if r.StartKey != l.All()[0].StartKey {
			return true
		}
	}
	return false
}

// runColumn is a column of the table.
type runColumn struct {
	name string
	w    int
	rank int // the highest goes first when the screen is narrow
	get  func(g *ab.Group) string
}

// words reports that a column holds words, not a figure.
func (c *runColumn) words() bool {
	return c.name == "prompt" || c.name == "flags" || c.name == changeColumn
}

// figureColumn is a column of a figure's median.
func figureColumn(name string, w, rank int, format func(float64) string, f func(r *profile.Result) profile.Maybe[float64]) runColumn {
	return runColumn{name, w, rank, func(g *ab.Group) string { return g.Median(f).Text(format, "") }}
}

const changeColumn = "change" // of the decode speed; against which runs, the list knows

var runColumns = []runColumn{
	figureColumn("tok/s", 6, 0, units.Sig, ab.DecodeTPS),
	{changeColumn, changeWidth, 0, nil},
	figureColumn("compute", 7, 5, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute }),
	figureColumn("mgmt", 6, 6, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt }),
	figureColumn("stall", 6, 2, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall }),
	figureColumn("other", 6, 7, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other }),
	figureColumn("p50 ms", 6, 4, units.Sig, func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 }),
	figureColumn("MiB/tok", 7, 4, units.Fixed(1), func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken }),
	figureColumn("hit %", 5, 3, units.Percent, hitRate),
	{"evict", 7, 7, func(g *ab.Group) string { return g.First().Result.Cache.Evictions.Text(count, "") }}, // those of all: decided by the route
}

const (
	nameColumn  = 6  // "12 x10"
	changeWidth = 18 // "faster +44..+48 %"
	textColumn  = 10
	diffColumn  = 16 // least

	flagsColumn = 13 // at most

	wideRuns = 150 // columns from which a change has room for its reason
)

func (l *runList) title() string {
	return l.th.Title.On("runs") + "  " + l.th.Dim.On("compute, mgmt, stall and other in ms/token")
}

// columns drops what a narrow screen has no room for.
func (l *runList) columns(w int) []runColumn {
	cols := slices.Clone(runColumns)
	if w >= wideRuns {
		cols[slices.IndexFunc(cols, func(c runColumn) bool { return c.name == changeColumn })].w = len("not comparable: disturbed: drive")
	}
	if l.severalPrompts() {
		prompt := func(g *ab.Group) string { return l.th.Shown(term.CleanLine(g.First().Prompt)) }
		cols = append([]runColumn{{"prompt", min(10+max(w-80, 0)/10, 24), 1, prompt}}, cols...)
	}
	wide := 0
	for _, g := range l.Groups() {
		wide = max(wide, len(shortFlags(g)))
	}
	if wide > 0 {
		cols = append(cols, runColumn{"flags", min(max(wide, len("flags")), flagsColumn), 1, shortFlags})
	}
	for {
		total := nameColumn + 2 + diffColumn + 2 + textColumn
		worst := -1
		for i, c := range cols {
			total += c.w + 1
			if c.rank > 0 && (worst < 0 || c.rank >= cols[worst].rank) {
				worst = i
			}
		}
		if total <= w || worst < 0 {
			return cols
		}
		cols = slices.Delete(cols, worst, worst+1)
	}
}

// detailRows is how much of h rows the picked run gets.
func detailRows(h int) int { return min(11, h*3/5) }

// page is how many runs are shown at once.
func (l *runList) page() int { return max(l.h-2-1-detailRows(l.h-2), 1) }

func (l *runList) render(w, h int) []string {
	th := l.th
	if len(l.All()) == 0 {
		return []string{th.Pad("no run yet: ask something, then "+l.again+" to repeat it with other settings", w)}
	}
	cols := l.columns(w)
	diffW := w - nameColumn - 2 - 2 - textColumn
	for _, c := range cols {
		diffW -= c.w + 1
	}
	var head strings.Builder
	head.WriteString(" " + th.Pad("run", nameColumn) + " " + th.Pad("settings that differ", diffW))
	for _, c := range cols {
		if c.words() {
			head.WriteString(" " + th.Pad(c.name, c.w))
		} else {
			head.WriteString(" " + th.PadLeft(c.name, c.w))
		}
	}
	head.WriteString("  " + th.Pad("text", textColumn))
	rows := []string{th.Dim.On(head.String())}

	details := detailRows(h)
	page := max(h-1-details, 1)
	l.top = min(max(l.top, l.at-page+1), l.at)
	for i := l.top; i < min(l.top+page, len(l.Groups())); i++ {
		rows = append(rows, l.row(i, cols, diffW))
	}
	for len(rows) < h-details {
		rows = append(rows, term.Blanks(w))
	}
	return append(rows, l.detail(w, details)...)
}

// row is one group in the table.
func (l *runList) row(i int, cols []runColumn, diffW int) string {
	th, g := l.th, l.Groups()[i]
	what, text, change := l.relation(g)
	var b strings.Builder
	mark := " "
	if i == l.at {
		mark = th.G.Focus
	}
	b.WriteString(mark + th.Pad(g.Name(), nameColumn) + " " + th.Pad(th.Shown(what), diffW))
	for _, c := range cols {
		v := change
		switch {
		case c.get == nil:
		case stoppedEarly(g.First()) && !c.words():
			v = "-"
		default:
			v = c.get(g)
		}
		if c.words() {
			b.WriteString(" " + th.Pad(v, c.w))
		} else {
			b.WriteString(" " + th.PadLeft(v, c.w))
		}
	}
	b.WriteString("  " + th.Pad(text, textColumn))
	s := b.String()
	switch {
	case i == l.at:
		return th.Selected.On(s)
	case text == ab.Differs:
		return th.Read.On(s)
	}
	return s
}

// relation says how a group stands to its base.
func (l *runList) relation(g *ab.Group) (what, text, change string) {
	r := g.First()
	if stoppedEarly(r) {
		return l.endOfPrefill(r), "-", "-"
	}
	base := l.against(g)
	if base == nil {
		change = "base"
		if r.Disturbed.Any() {
			change = r.Disturbed.String()
		}
		if l.chosen == g {
			return "base (chosen): " + settings(r.Settings), "-", change
		}
		return settings(r.Settings), "-", change
	}
	c := l.Compare(base, g)
	what = c.What()
	if l.chosen == nil && base != l.Groups()[0] {
		what = fmt.Sprintf("to %s: %s", base.Name(), what)
	}
	return what, c.Text(), c.Difference.String()
}

// detail tells all about the picked group.
func (l *runList) detail(w, h int) []string {
	th, g := l.th, l.picked()
	r := g.Last()
	rows := []string{th.Dim.On(term.Repeat(th.G.Horizontal, w))}
	add := func(st term.Style, s string) {
		for _, line := range term.Wrap(nil, s, 0, w, th.Method) {
			rows = append(rows, th.Pad(st.On(s[line.Start:line.End]), w))
		}
	}
	head := fmt.Sprintf("run %d  %s  %s", r.N, r.When.Format("15:04"), th.Shown(term.CleanLine(r.Prompt)))
	rows = append(rows, th.Pad(th.Bold.On(th.Cut(head, w)), w))
	add("", settings(r.Settings))
	add("", l.summary(r))
	if stoppedEarly(r) {
		return l.filled(rows, w, h)
	}
	if len(g.Runs) > 1 {
		add("", l.pooled(g))
	}
	if base := l.against(g); base != nil {
		c := l.Compare(base, g)
		add("", l.sentence(&c))
		add("", l.sideBySide(&c))
	} else {
		add(th.Dim, "other runs of the same prompt are compared with this one; "+l.again+" makes one")
	}
	add("", l.figures(r))
	return l.filled(rows, w, h)
}

// filled cuts or fills rows to h.
func (l *runList) filled(rows []string, w, h int) []string {
	for len(rows) < h {
		rows = append(rows, term.Blanks(w))
	}
	return rows[:h]
}

// figures lists what a narrow table leaves out.
func (l *runList) figures(r *backend.Run) string {
	t, c, io := &r.Result.PerToken, &r.Result.Cache, &r.Result.IO
	return fmt.Sprintf("compute %s, mgmt %s, stall %s (any worker %s), other %s ms/token; read p50 %s, p99 %s ms, %s MiB/token; %s evictions, %s re-reads; prefill %s tok/s, first token after %s s",
		t.Compute.Text(toMs, ""), t.Mgmt.Text(toMs, ""), t.Stall.Text(toMs, ""), t.StallUnion.Text(toMs, ""),
		t.Other.Text(toMs, ""), io.P50.Text(units.Sig, ""), io.P99.Text(units.Sig, ""), r.Result.ReadMiBPerToken.Text(units.Fixed(1), ""),
		c.Evictions.Text(count, ""), c.Rereads.Text(count, ""), r.Result.PrefillTPS.Text(units.Sig, ""), r.Result.TTFT.Text(units.Sig, ""))
}

func count(n int64) string { return fmt.Sprint(n) }

// sideBySide lists the figures of both groups. Only the speed's change is
// claimed: figures by themselves say what was measured.
func (l *runList) sideBySide(c *ab.Comparison) string {
	var b strings.Builder
	figure := func(name string, format func(float64) string, f func(*profile.Result) profile.Maybe[float64]) {
		fmt.Fprintf(&b, ", %s %s from %s", name, c.Group.Median(f).Text(format, ""), c.Base.Median(f).Text(format, ""))
	}
	figure("wall", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Wall })
	figure("compute", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute })
	figure("mgmt", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt })
	figure("stall", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall })
	figure("other", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other })
	figure("read p50", units.Sig, func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 })
	figure("MiB/token", units.Fixed(1), func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken })
	number := func(f func(*profile.Result) profile.Maybe[int64]) func(*profile.Result) profile.Maybe[float64] {
		return func(r *profile.Result) profile.Maybe[float64] {
			v := f(r)
			return profile.Maybe[float64]{Value: float64(v.Value), OK: v.OK}
		}
	}
	figure("hit %", units.Percent, hitRate)
	figure("evictions", units.Fixed(0), number(func(r *profile.Result) profile.Maybe[int64] { return r.Cache.Evictions }))
	figure("re-reads", units.Fixed(0), number(func(r *profile.Result) profile.Maybe[int64] { return r.Cache.Rereads }))
	return "ms/token: " + strings.TrimPrefix(b.String(), ", ")
}
