package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/profile"
)

// runList is every run of the session, each held against a baseline.
type runList struct {
	th       *theme
	runs     []*backend.Run
	h        int // rows
	at       int // picked
	top      int // first shown
	baseline int // chosen; -1: each run's is the first it can be compared with

	again string      // how to ask for a run again: a key or a command
	early map[int]int // prompt tokens done, by the number of a run that ended before its first token
}

// add takes a run, and how far its prefill had got.
func (l *runList) add(r *backend.Run, prefilled int) {
	if stoppedEarly(r) {
		if l.early == nil {
			l.early = map[int]int{}
		}
		l.early[r.N] = prefilled
	}
	if l.at == len(l.runs)-1 {
		l.at++ // the newest stays picked
	}
	l.runs = append(l.runs, r)
	l.at = min(l.at, len(l.runs)-1)
}

func (l *runList) move(n int) {
	l.at = min(max(l.at+n, 0), max(len(l.runs)-1, 0))
}

// choose makes the picked run the baseline, or lets it be chosen again.
func (l *runList) choose() {
	if l.baseline == l.at || len(l.runs) == 0 {
		l.baseline = -1
		return
	}
	l.baseline = l.at
}

// against returns the run that run i is held against, -1 if none.
func (l *runList) against(i int) int {
	if l.baseline >= 0 {
		if l.baseline == i {
			return -1
		}
		return l.baseline
	}
	for j := range i {
		if engine.Compare(l.runs[j], l.runs[i]).Comparable {
			return j
		}
	}
	return -1
}

// related returns the latest earlier run of the same prompt, -1 if there is
// none.
func (l *runList) related(i int) int {
	for j := i - 1; j >= 0; j-- {
		if l.runs[j].StartKey == l.runs[i].StartKey {
			return j
		}
	}
	return -1
}

// summary is the line under an answer.
func (l *runList) summary(r *backend.Run) string {
	if stoppedEarly(r) {
		return l.endOfPrefill(r)
	}
	t := &r.Result.PerToken
	s := fmt.Sprintf("%s, %s tok/s; %s ms/token, %s of it stall; hit %s %%",
		plural(int64(r.Result.NGen), "token"), maybe(r.Result.DecodeTPS, sig, ""), maybe(t.Wall, toMs, ""), maybe(t.Stall, toMs, ""), maybe(r.Result.Cache.HitPct, percent, ""))
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
	return fmt.Sprintf("%s in prefill after %d of %s", verb, l.early[r.N], plural(int64(r.Result.NPrompt-r.Result.NCached), "prompt token"))
}

// flags are the words that qualify a run's figures.
func flags(r *backend.Run) string {
	out := make([]string, 0, len(r.Result.Flags))
	for _, f := range r.Result.Flags {
		out = append(out, strings.ToUpper(cleanLine(f)))
	}
	return strings.Join(out, " ")
}

// shortFlags are flags for the table, where there is little room.
func shortFlags(r *backend.Run) string { return strings.Replace(flags(r), "SIMULATED", "SIM", 1) }

// verdict says in one line how run i compares; empty if there is nothing to
// compare it with.
func (l *runList) verdict(i int) string {
	j := l.against(i)
	if j < 0 {
		if k := l.related(i); k >= 0 {
			return l.notCompared(k, i)
		}
		return ""
	}
	a, b := l.runs[j], l.runs[i]
	c := engine.Compare(a, b)
	if !c.Comparable {
		return l.notCompared(j, i)
	}
	return fmt.Sprintf("run %d against run %d (%s): %s tok/s from %s, %s; stall %s ms/token from %s, %s; text %s",
		b.N, a.N, differs(c), maybe(b.Result.DecodeTPS, sig, ""), maybe(a.Result.DecodeTPS, sig, ""), maybe(c.SpeedPct, signed, ""),
		maybe(b.Result.PerToken.Stall, toMs, ""), maybe(a.Result.PerToken.Stall, toMs, ""), maybe(c.StallPct, signed, ""), sameText(c))
}

// notCompared says why run i is not held against run j, what can be said of
// the two all the same, and what would make a pair.
func (l *runList) notCompared(j, i int) string {
	a, b := l.runs[j], l.runs[i]
	c := engine.Compare(a, b)
	s := fmt.Sprintf("run %d is not compared with run %d: %s", b.N, a.N, c.Reason)
	if c.SameStart {
		s += "; text " + sameText(c)
	}
	if a.StartKey == b.StartKey && b.ColdCache && b.Err == nil && i == len(l.runs)-1 {
		s += "; " + l.again + " once more: the next pair starts alike"
	}
	return s
}

func differs(c engine.Comparison) string {
	if len(c.Differs) == 0 {
		return "same settings"
	}
	return strings.Join(c.Differs, ", ")
}

// sameText says whether two runs from the same start gave the same bytes,
// whatever their caches held; a dash when that cannot be asked.
func sameText(c engine.Comparison) string {
	switch {
	case !c.SameStart:
		return "-"
	case c.Identical:
		return "identical"
	}
	return "DIFFERS"
}

// toMs formats seconds as milliseconds, without the unit.
func toMs(v float64) string { return sig(v * 1e3) }

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
	for _, r := range l.runs {
		if r.StartKey != l.runs[0].StartKey {
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
	get  func(r *backend.Run) string
}

// words reports that a column holds words, not a figure.
func (c *runColumn) words() bool { return c.name == "prompt" || c.name == "flags" }

func timeColumn(name string, w, rank int, f func(r *profile.Result) profile.Maybe[float64]) runColumn {
	return runColumn{name, w, rank, func(r *backend.Run) string { return maybe(f(&r.Result), toMs, "") }}
}

const changeColumn = "change" // of the decode speed; against which run, the list knows

var runColumns = []runColumn{
	{"tok/s", 6, 0, func(r *backend.Run) string { return maybe(r.Result.DecodeTPS, sig, "") }},
	{changeColumn, 7, 0, nil},
	timeColumn("compute", 7, 5, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute }),
	timeColumn("mgmt", 6, 6, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt }),
	timeColumn("stall", 6, 0, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall }),
	timeColumn("other", 6, 7, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other }),
	{"p50 ms", 6, 4, func(r *backend.Run) string { return maybe(r.Result.IO.P50, sig, "") }},
	{"MiB/tok", 7, 4, func(r *backend.Run) string { return maybe(r.Result.ReadMiBPerToken, fixed(1), "") }},
	{"hit %", 5, 3, func(r *backend.Run) string { return maybe(r.Result.Cache.HitPct, percent, "") }},
	{"evict", 7, 7, func(r *backend.Run) string { return maybe(r.Result.Cache.Evictions, count, "") }},
}

const (
	textColumn = 10
	diffColumn = 18 // least

	flagsColumn = 13 // at most
)

func (l *runList) title() string {
	return l.th.title.on("runs") + "  " + l.th.dim.on("compute, mgmt, stall and other in ms/token")
}

// columns drops what a narrow screen has no room for.
func (l *runList) columns(w int) []runColumn {
	cols := slices.Clone(runColumns)
	if l.severalPrompts() {
		prompt := func(r *backend.Run) string { return l.th.shown(cleanLine(r.Prompt)) }
		cols = append([]runColumn{{"prompt", min(10+max(w-80, 0)/10, 24), 1, prompt}}, cols...)
	}
	wide := 0
	for _, r := range l.runs {
		wide = max(wide, len(shortFlags(r)))
	}
	if wide > 0 {
		cols = append(cols, runColumn{"flags", min(max(wide, len("flags")), flagsColumn), 0, shortFlags})
	}
	for {
		total := 5 + diffColumn + 2 + textColumn
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
	if len(l.runs) == 0 {
		return []string{th.pad("no run yet: ask something, then "+l.again+" to repeat it with other settings", w)}
	}
	cols := l.columns(w)
	diffW := w - 5 - 2 - textColumn
	for _, c := range cols {
		diffW -= c.w + 1
	}
	var head strings.Builder
	head.WriteString(" run " + th.pad("settings that differ", diffW))
	for _, c := range cols {
		if c.words() {
			head.WriteString(" " + th.pad(c.name, c.w))
		} else {
			head.WriteString(" " + th.padLeft(c.name, c.w))
		}
	}
	head.WriteString("  " + th.pad("text", textColumn))
	rows := []string{th.dim.on(head.String())}

	details := detailRows(h)
	page := max(h-1-details, 1)
	l.top = min(max(l.top, l.at-page+1), l.at)
	for i := l.top; i < min(l.top+page, len(l.runs)); i++ {
		rows = append(rows, l.row(i, cols, diffW))
	}
	for len(rows) < h-details {
		rows = append(rows, blanks(w))
	}
	return append(rows, l.detail(w, details)...)
}

// row is one run in the table.
func (l *runList) row(i int, cols []runColumn, diffW int) string {
	th, r := l.th, l.runs[i]
	what, text, change := l.relation(i)
	var b strings.Builder
	mark := " "
	if i == l.at {
		mark = th.g.focus
	}
	fmt.Fprintf(&b, "%s%3d %s", mark, r.N, th.pad(th.shown(what), diffW))
	for _, c := range cols {
		v := change
		switch {
		case c.words():
			v = th.pad(c.get(r), c.w)
		case stoppedEarly(r):
			v = "-"
		case c.get != nil:
			v = c.get(r)
		}
		b.WriteString(" " + th.padLeft(v, c.w))
	}
	b.WriteString("  " + th.pad(text, textColumn))
	s := b.String()
	switch {
	case i == l.at:
		return th.selected.on(s)
	case text == "DIFFERS":
		return th.read.on(s)
	}
	return s
}

// relation says how a run stands to its baseline.
func (l *runList) relation(i int) (what, text, change string) {
	r := l.runs[i]
	if stoppedEarly(r) {
		return l.endOfPrefill(r), "-", "-"
	}
	j := l.against(i)
	if j < 0 {
		if l.baseline == i {
			return "baseline (chosen): " + settings(r.Settings), "-", "-"
		}
		if k := l.related(i); k >= 0 {
			return fmt.Sprintf("no pair with %d: %s", l.runs[k].N, settings(r.Settings)), sameText(engine.Compare(l.runs[k], r)), "-"
		}
		return "baseline: " + settings(r.Settings), "-", "-"
	}
	c := engine.Compare(l.runs[j], r)
	switch {
	case l.runs[j].StartKey != r.StartKey:
		return "another start", "-", "-"
	case !c.Comparable:
		return c.Reason, sameText(c), "-"
	}
	what = differs(c)
	if l.baseline < 0 && j > 0 {
		what = fmt.Sprintf("to %d: %s", l.runs[j].N, what)
	}
	return what, sameText(c), maybe(c.SpeedPct, signed, "")
}

// detail tells all about the picked run.
func (l *runList) detail(w, h int) []string {
	th, r := l.th, l.runs[l.at]
	rows := []string{th.dim.on(repeat(th.g.h, w))}
	add := func(st style, s string) {
		for _, line := range appendWrapped(nil, s, 0, w, th.method) {
			rows = append(rows, th.pad(st.on(s[line.start:line.end]), w))
		}
	}
	head := fmt.Sprintf("run %d  %s  %s", r.N, r.When.Format("15:04"), th.shown(cleanLine(r.Prompt)))
	rows = append(rows, th.pad(th.bold.on(th.cut(head, w)), w))
	add("", settings(r.Settings))
	add("", l.summary(r))
	if stoppedEarly(r) {
		return l.filled(rows, w, h)
	}
	if j := l.against(l.at); j >= 0 {
		add("", l.deltas(j, l.at))
	} else if v := l.verdict(l.at); v != "" {
		add("", v)
	} else {
		add(th.dim, "other runs of the same prompt are compared with this one; "+l.again+" makes one")
	}
	add("", l.figures(r))
	return l.filled(rows, w, h)
}

// filled cuts or fills rows to h.
func (l *runList) filled(rows []string, w, h int) []string {
	for len(rows) < h {
		rows = append(rows, blanks(w))
	}
	return rows[:h]
}

// figures lists what a narrow table leaves out.
func (l *runList) figures(r *backend.Run) string {
	t, c, io := &r.Result.PerToken, &r.Result.Cache, &r.Result.IO
	return fmt.Sprintf("compute %s, mgmt %s, stall %s (any worker %s), other %s ms/token; read p50 %s, p99 %s ms, %s MiB/token; %s evictions, %s re-reads; prefill %s tok/s, first token after %s s",
		maybe(t.Compute, toMs, ""), maybe(t.Mgmt, toMs, ""), maybe(t.Stall, toMs, ""), maybe(t.StallUnion, toMs, ""),
		maybe(t.Other, toMs, ""), maybe(io.P50, sig, ""), maybe(io.P99, sig, ""), maybe(r.Result.ReadMiBPerToken, fixed(1), ""),
		maybe(c.Evictions, count, ""), maybe(c.Rereads, count, ""), maybe(r.Result.PrefillTPS, sig, ""), maybe(r.Result.TTFT, sig, ""))
}

func count(n int64) string { return fmt.Sprint(n) }

// deltas lists every figure's change.
func (l *runList) deltas(j, i int) string {
	a, b := l.runs[j], l.runs[i]
	c := engine.Compare(a, b)
	if !c.Comparable {
		return l.notCompared(j, i)
	}
	change := func(x, y profile.Maybe[float64]) string {
		if !x.OK || !y.OK || x.Value == 0 {
			if x.OK && y.OK && y.Value == 0 {
				return "0 %"
			}
			return notMeasured
		}
		return signed((y.Value/x.Value - 1) * 100)
	}
	number := func(v profile.Maybe[int64]) profile.Maybe[float64] {
		return profile.Maybe[float64]{Value: float64(v.Value), OK: v.OK}
	}
	ra, rb := &a.Result, &b.Result
	return fmt.Sprintf("against run %d (%s), text %s: tok/s %s, wall %s, compute %s, mgmt %s, stall %s, other %s, read p50 %s, MiB/token %s, hits %s, evictions %s, re-reads %s",
		a.N, differs(c), sameText(c),
		change(ra.DecodeTPS, rb.DecodeTPS), change(ra.PerToken.Wall, rb.PerToken.Wall), change(ra.PerToken.Compute, rb.PerToken.Compute),
		change(ra.PerToken.Mgmt, rb.PerToken.Mgmt), change(ra.PerToken.Stall, rb.PerToken.Stall), change(ra.PerToken.Other, rb.PerToken.Other),
		change(ra.IO.P50, rb.IO.P50), change(ra.ReadMiBPerToken, rb.ReadMiBPerToken), change(number(ra.Cache.Hits), number(rb.Cache.Hits)),
		change(number(ra.Cache.Evictions), number(rb.Cache.Evictions)), change(number(ra.Cache.Rereads), number(rb.Cache.Rereads)))
}
