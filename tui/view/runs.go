package view

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

// Runs are the runs of a session in words: equal runs are one, each is held against
// a base.
type Runs struct {
	ab.Runs
	th     *term.Theme
	at     int       // picked group
	chosen *ab.Group // as the base of all; nil: each group has its own

	notes  map[int]string // a line on a run, by its number
	asking entry          // for a note
	asked  RunsWish

	again string      // how to ask for a run again: a key or a command
	early map[int]int // prompt tokens done, by the number of a run that ended before its first token
}

// NewRuns returns a list without a run; again is how a run is asked for again, a key
// or a command.
func NewRuns(th *term.Theme, again string) *Runs { return &Runs{th: th, again: again} }

// Clear forgets all runs: they were of another model.
func (l *Runs) Clear() { *l = Runs{th: l.th, again: l.again} }

// Take takes a run, and how far its prefill had got. Its group is picked if the
// newest was.
func (l *Runs) Take(r *backend.Run, prefilled int) {
	if StoppedEarly(r) {
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

// RunsWish is what the list of runs asks for, since it cannot do it itself.
type RunsWish uint8

// The wishes.
const (
	NoWish    RunsWish = iota
	KeepNote           // a note has changed
	WriteRuns          // as files
)

// Asked returns what was asked for since the last call.
func (l *Runs) Asked() RunsWish {
	w := l.asked
	l.asked = NoWish
	return w
}

// Note returns the note on a run, by its number; empty if there is none.
func (l *Runs) Note(n int) string { return l.notes[n] }

// SetNote puts a note on a run. An empty one takes it away.
func (l *Runs) SetNote(n int, text string) {
	if l.notes == nil {
		l.notes = map[int]string{}
	}
	if l.notes[n] = strings.TrimSpace(term.CleanLine(text)); l.notes[n] == "" {
		delete(l.notes, n)
	}
}

// NoteOf returns the note on a group: that of its latest run that has one.
func (l *Runs) NoteOf(g *ab.Group) string {
	for _, r := range slices.Backward(g.Runs) {
		if s := l.Note(r.N); s != "" {
			return s
		}
	}
	return ""
}

// questions lists the numbers of groups by what was asked: those that started alike stand
// together, the question that was asked first before the others.
func (l *Runs) questions() (out [][]int) {
	for i, g := range l.Groups() {
		at := slices.IndexFunc(out, func(q []int) bool { return l.Groups()[q[0]].First().SameStart(g.First()) })
		if at < 0 {
			at = len(out)
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}

// move picks another group, in the order in which they are shown.
func (l *Runs) move(n int) {
	order := slices.Concat(l.questions()...)
	if len(order) > 0 {
		l.at = order[min(max(slices.Index(order, l.at)+n, 0), len(order)-1)]
	}
}

func (l *Runs) picked() *ab.Group { return l.Groups()[l.at] }

// choose makes the picked runs the base of all others, or lets them be chosen
// again.
func (l *Runs) choose() {
	if len(l.All()) == 0 || l.chosen == l.picked() {
		l.chosen = nil
		return
	}
	l.chosen = l.picked()
}

// against returns what a group is held against, nil if nothing.
func (l *Runs) against(g *ab.Group) *ab.Group {
	switch l.chosen {
	case nil:
		return l.Base(g)
	case g:
		return nil
	}
	return l.chosen
}

// Summary is the line under an answer.
func (l *Runs) Summary(r *backend.Run) string {
	if StoppedEarly(r) {
		return l.endOfPrefill(r)
	}
	t := &r.Result.PerToken
	s := ""
	if r.Engine != "" {
		s = fmt.Sprintf("%s, %s tok/s; first after %s s; %s ms a token; by %s",
			units.Plural(int64(r.Result.NGen), "token"), r.Result.DecodeTPS.Text(units.Sig, ""), r.Result.TTFT.Text(units.Sig, ""), t.Wall.Text(toMs, ""), term.CleanLine(r.Engine))
	} else {
		s = fmt.Sprintf("%s, %s tok/s; %s ms a token, %s of it waiting; hits %s %%",
			units.Plural(int64(r.Result.NGen), "token"), r.Result.DecodeTPS.Text(units.Sig, ""), t.Wall.Text(toMs, ""), t.Stall.Text(toMs, ""), r.Result.Cache.HitPct.Text(units.Percent, ""))
	}
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

// StoppedEarly reports that a run ended before its first token, so that it has
// no figures of decoding.
func StoppedEarly(r *backend.Run) bool { return r.Err != nil && r.Result.NGen == 0 }

// endOfPrefill says how far a run got that has no token.
func (l *Runs) endOfPrefill(r *backend.Run) string {
	verb := "failed"
	if errors.Is(r.Err, context.Canceled) {
		verb = "stopped"
	}
	return fmt.Sprintf("%s in prefill after %d of %s", verb, l.early[r.N], units.Plural(int64(r.Result.NPrompt-r.Result.NCached), "prompt token"))
}

// flags are the words that qualify a run's figures.
func flags(r *backend.Run) string { return term.CleanLine(r.Result.Qualifiers()) }

// Latest says in one line what the latest run tells beside others; empty if
// there is nothing to hold it against.
func (l *Runs) Latest() string {
	c, ok := l.Verdict()
	if !ok {
		if n := len(l.Of(l.Last()).Runs); n > 1 {
			return l.Pooled(l.Of(l.Last()))
		}
		return ""
	}
	return l.Sentence(&c)
}

// Sentence words a comparison: who against whom, what differs, how much, and
// whether the texts are the same.
func (l *Runs) Sentence(c *ab.Comparison) string {
	a, b := c.Base, c.Group
	s := fmt.Sprintf("run %s against run %s (%s): %s", b.Name(), a.Name(), c.What(), c.Difference)
	switch was, is := a.Median(ab.DecodeTPS), b.Median(ab.DecodeTPS); {
	case c.SameStart && a.First().Engine != b.First().Engine: // side by side, whatever can be claimed of it
		s += fmt.Sprintf("; %s tok/s from %s, first token after %s s from %s", is.Text(units.Sig, ""), was.Text(units.Sig, ""), b.Median(TTFT).Text(units.Sig, ""), a.Median(TTFT).Text(units.Sig, ""))
	case c.Verdict != stats.NotComparable && was.OK && is.OK:
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

// Pooled tells of equal runs how many there are and by how much they differ.
func (l *Runs) Pooled(g *ab.Group) string {
	return fmt.Sprintf("run %s: %d equal runs, median %s tok/s, from lowest to highest %s", g.Name(), len(g.Runs),
		g.Median(ab.DecodeTPS).Text(units.Sig, ""), g.Spread(ab.DecodeTPS).Text(func(v float64) string { return units.Percent(100 * v) }, " %"))
}

// toMs formats seconds as milliseconds, without the unit.
func toMs(v float64) string { return units.Sig(v * 1e3) }

// SettingsText lists what is told of every run, and what somebody chose.
func SettingsText(vs []backend.Value) string {
	var out []string
	for _, v := range vs {
		if (v.Main || v.Given) && v.Name != backend.EngineSetting { // who answered is said otherwise
			out = append(out, v.Name+" "+v.Shown)
		}
	}
	return strings.Join(out, ", ")
}

// changes lists the settings in which b differs from a, with what they were.
func changes(a, b []backend.Value) string {
	var out []string
	for _, v := range b {
		was := slices.IndexFunc(a, func(o backend.Value) bool { return o.Name == v.Name })
		switch {
		case was < 0:
			out = append(out, v.Name+" "+v.Shown)
		case a[was].Value != v.Value:
			out = append(out, fmt.Sprintf("%s %s (was %s)", v.Name, v.Shown, a[was].Shown))
		}
	}
	return term.CleanLine(strings.Join(out, ", "))
}

// Relation says how a group stands to its base.
func (l *Runs) Relation(g *ab.Group) (what, text, change string) {
	r := g.First()
	if StoppedEarly(r) {
		return l.endOfPrefill(r), "-", "-"
	}
	base := l.against(g)
	if base == nil {
		change = "base"
		if r.Disturbed.Any() {
			change = r.Disturbed.String()
		}
		if l.chosen == g {
			return "base (chosen): " + SettingsText(r.Settings), "-", change
		}
		return SettingsText(r.Settings), "-", change
	}
	c := l.Compare(base, g)
	what = c.What()
	if l.chosen == nil && base != l.Groups()[0] {
		what = fmt.Sprintf("to %s: %s", base.Name(), what)
	}
	return what, c.Text(), c.Difference.String()
}

// figures lists what a narrow table leaves out.
func (l *Runs) figures(r *backend.Run) string {
	if far := r.Result.Remote; far != nil {
		seconds := func(v profile.Maybe[float64]) string { return v.Text(units.Sig, " s") }
		return fmt.Sprintf("engine %s; first token after %s, the network there and back %s; as it tells: queue %s, loading %s, prefill %s (%s tok/s), decode %s (%s tok/s), prompt tokens cached %s; compute, stall and experts n/a: not told",
			term.CleanLine(r.Engine), seconds(r.Result.TTFT), far.RoundTrip.Text(toMs, " ms"), seconds(far.Queue), seconds(far.Load), seconds(far.Prefill), far.PrefillTPS.Text(units.Sig, ""),
			seconds(far.Decode), far.DecodeTPS.Text(units.Sig, ""), far.Cached.Text(count, ""))
	}
	t, c, io := &r.Result.PerToken, &r.Result.Cache, &r.Result.IO
	return fmt.Sprintf("compute %s, cache work %s, waits %s (any worker %s), sync %s ms a token; read p50 %s, p99 %s ms, %s MiB/token; %s evictions, %s re-reads; prefill %s tok/s, first token after %s s",
		t.Compute.Text(toMs, ""), t.Mgmt.Text(toMs, ""), t.Stall.Text(toMs, ""), t.StallUnion.Text(toMs, ""),
		t.Other.Text(toMs, ""), io.P50.Text(units.Sig, ""), io.P99.Text(units.Sig, ""), r.Result.ReadMiBPerToken.Text(units.Fixed(1), ""),
		c.Evictions.Text(count, ""), c.Rereads.Text(count, ""), r.Result.PrefillTPS.Text(units.Sig, ""), r.Result.TTFT.Text(units.Sig, ""))
}

func count(n int64) string { return fmt.Sprint(n) }

// sideBySide lists the figures of both groups. Only the speed's change is
// claimed: figures by themselves say what was measured.
func (l *Runs) sideBySide(c *ab.Comparison) string {
	if c.Base.First().Engine != "" || c.Group.First().Engine != "" { // what both have
		sig := func(g *ab.Group, f func(*profile.Result) profile.Maybe[float64], text func(float64) string) string {
			return g.Median(f).Text(text, "")
		}
		wall := func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Wall }
		return fmt.Sprintf("tok/s %s from %s, first token after %s s from %s, ms/token %s from %s", sig(c.Group, ab.DecodeTPS, units.Sig), sig(c.Base, ab.DecodeTPS, units.Sig),
			sig(c.Group, TTFT, units.Sig), sig(c.Base, TTFT, units.Sig), sig(c.Group, wall, toMs), sig(c.Base, wall, toMs))
	}
	var b strings.Builder
	figure := func(name string, format func(float64) string, f func(*profile.Result) profile.Maybe[float64]) {
		fmt.Fprintf(&b, ", %s %s from %s", name, c.Group.Median(f).Text(format, ""), c.Base.Median(f).Text(format, ""))
	}
	figure("wall", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Wall })
	figure("compute", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute })
	figure("cache work", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt })
	figure("waits", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall })
	figure("sync", toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other })
	figure("read p50", units.Sig, func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 })
	figure("MiB/token", units.Fixed(1), func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken })
	number := func(f func(*profile.Result) profile.Maybe[int64]) func(*profile.Result) profile.Maybe[float64] {
		return func(r *profile.Result) profile.Maybe[float64] {
			v := f(r)
			return profile.Maybe[float64]{Value: float64(v.Value), OK: v.OK}
		}
	}
	figure("hit %", units.Percent, HitRate)
	figure("evictions", units.Fixed(0), number(func(r *profile.Result) profile.Maybe[int64] { return r.Cache.Evictions }))
	figure("re-reads", units.Fixed(0), number(func(r *profile.Result) profile.Maybe[int64] { return r.Cache.Rereads }))
	return "ms/token: " + strings.TrimPrefix(b.String(), ", ")
}

// TTFT is the time to a run's first token, in seconds.
func TTFT(r *profile.Result) profile.Maybe[float64] { return r.TTFT }

// HitRate is the hit rate of a run, in percent.
func HitRate(r *profile.Result) profile.Maybe[float64] { return r.Cache.HitPct }
