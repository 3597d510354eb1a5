package ab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/stats"
	"bmoe/profile"
)

// Runs are a session's runs in the order in which they ran. Runs with equal
// settings, prompt and start are pooled: they are one row, with their medians.
type Runs struct {
	all    []*backend.Run
	groups []*Group
	// Comparisons that were asked for since the last run: a list is drawn many
	// times a second, and a bootstrap takes milliseconds.
	known map[[2]*Group]Comparison
}

// Group is one or more equal runs. A run that was disturbed, stopped or had a
// start of its own stands alone.
type Group struct{ Runs []*backend.Run }

// Add takes a run.
func (l *Runs) Add(r *backend.Run) {
	l.all = append(l.all, r)
	l.known = nil
	if poolable(r) {
		for _, g := range l.groups {
			if first := g.Runs[0]; poolable(first) && first.Engine == r.Engine && first.SameStart(r) && len(backend.Differences(first.Settings, r.Settings)) == 0 {
				g.Runs = append(g.Runs, r)
				return
			}
		}
	}
	l.groups = append(l.groups, &Group{Runs: []*backend.Run{r}})
}

// poolable reports whether a run may stand for others like it.
func poolable(r *backend.Run) bool {
	return r.Err == nil && r.ColdCache && !r.Disturbed.Any()
}

// All returns every run.
func (l *Runs) All() []*backend.Run { return l.all }

// Last returns the latest run, or nil.
func (l *Runs) Last() *backend.Run {
	if len(l.all) == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}

// Groups returns the groups in the order of their first runs.
func (l *Runs) Groups() []*Group { return l.groups }

// Of returns the group of a run, or nil.
func (l *Runs) Of(r *backend.Run) *Group {
	for _, g := range l.groups {
		if slices.Contains(g.Runs, r) {
			return g
		}
	}
	return nil
}

// First returns the group's first run: settings, prompt and start are those of all.
func (g *Group) First() *backend.Run { return g.Runs[0] }

// Last returns the group's latest run.
func (g *Group) Last() *backend.Run { return g.Runs[len(g.Runs)-1] }

// Name is the group's run numbers as a list shows them: "2", "2 x3".
func (g *Group) Name() string {
	if len(g.Runs) == 1 {
		return fmt.Sprint(g.First().N)
	}
	return fmt.Sprintf("%d x%d", g.First().N, len(g.Runs))
}

// Median returns the median of a figure over the group's runs that have it.
func (g *Group) Median(figure func(*profile.Result) profile.Maybe[float64]) profile.Maybe[float64] {
	values := g.values(figure)
	if len(values) == 0 {
		return profile.Maybe[float64]{}
	}
	return profile.Some(stats.Median(values))
}

// Spread returns by what share of the median the group's runs differ in a
// figure, the highest less the lowest; nothing for a single run.
func (g *Group) Spread(figure func(*profile.Result) profile.Maybe[float64]) profile.Maybe[float64] {
	values := g.values(figure)
	if len(values) < 2 {
		return profile.Maybe[float64]{}
	}
	return profile.Ratio(slices.Max(values)-slices.Min(values), stats.Median(values))
}

func (g *Group) values(figure func(*profile.Result) profile.Maybe[float64]) []float64 {
	var out []float64
	for _, r := range g.Runs {
		if v := figure(&r.Result); v.OK {
			out = append(out, v.Value)
		}
	}
	return out
}

// Base returns the group that a group is held against unless the user chooses
// another: among those before it with the same start the first that can be
// compared, else the first that is the least unlike, of which the comparison says
// why not. Nil: it has none, and may be one itself.
func (l *Runs) Base(g *Group) *Group {
	var best *Group
	for _, b := range l.groups {
		if b == g {
			break
		}
		if b.First().SameStart(g.First()) && (best == nil || fitness(b.First()) > fitness(best.First())) {
			best = b
		}
	}
	return best
}

// fitness ranks runs as what others are held against.
func fitness(r *backend.Run) int {
	switch {
	case poolable(r):
		return 2
	case r.Err == nil && r.ColdCache:
		return 1
	}
	return 0
}

// Comparison is a group held against a base.
type Comparison struct {
	stats.Difference
	Base, Group *Group
	Differs     []string // settings that differ, as in "release-mmap on"
	// SameStart: both continued the same prompt under the same sampling, so that
	// their texts can be held against each other, whatever the cache held.
	SameStart bool
	Identical bool // with SameStart: the texts are the same bytes, as far as both go
}

// Compare holds a group against a base.
func (l *Runs) Compare(base, g *Group) Comparison {
	if c, ok := l.known[[2]*Group{base, g}]; ok {
		return c
	}
	a, b := base.First(), g.First()
	c := Comparison{Base: base, Group: g, Differs: backend.Differences(a.Settings, b.Settings), SameStart: a.SameStart(b)}
	if a.Engine != b.Engine { // their settings are of two tables
		c.Differs = []string{"engine " + EngineName(b)}
	}
	c.Identical = c.SameStart && sameText(base, g)
	if why := notAlike(a, b); why != "" {
		c.Difference = stats.Difference{Verdict: stats.NotComparable, Why: why}
	} else {
		c.Difference = stats.Claim(side(base, g), side(g, nil), l.equal())
	}
	if l.known == nil {
		l.known = map[[2]*Group]Comparison{}
	}
	l.known[[2]*Group{base, g}] = c
	return c
}

// notAlike says why two runs cannot be held against each other whatever their
// times, empty if they can. Of two warm caches nobody knows that they held the
// same.
func notAlike(a, b *backend.Run) string {
	for _, r := range []*backend.Run{a, b} {
		if r.Err != nil && !errors.Is(r.Err, context.Canceled) {
			return fmt.Sprintf("failed (run %d)", r.N)
		}
	}
	switch {
	case !a.SameStart(b):
		return "another start"
	case !a.ColdCache && !b.ColdCache:
		return "warm caches"
	case !a.ColdCache:
		return fmt.Sprintf("warm cache (run %d)", a.N)
	case !b.ColdCache:
		return fmt.Sprintf("warm cache (run %d)", b.N)
	}
	return ""
}

// side returns a group's times. What spoiled a run is told with its number
// unless it is the run at hand: of a base, beside another.
func side(g, other *Group) stats.Side {
	var s stats.Side
	for _, r := range g.Runs {
		s.Runs = append(s.Runs, r.Walls)
		if r.Disturbed.Any() && s.Spoiled == "" {
			s.Spoiled = r.Disturbed.String()
			if other != nil {
				s.Spoiled = fmt.Sprintf("%s (run %d)", s.Spoiled, r.N)
			}
		}
	}
	return s
}

// equal returns the speeds of all runs that were pooled, group by group.
func (l *Runs) equal() [][]float64 {
	var out [][]float64
	for _, g := range l.groups {
		if v := g.values(DecodeTPS); len(g.Runs) > 1 && len(v) > 1 {
			out = append(out, v)
		}
	}
	return out
}

// DecodeTPS is the figure that comparisons are about.
func DecodeTPS(r *profile.Result) profile.Maybe[float64] { return r.DecodeTPS }

// sameText reports whether all runs of both groups gave the same tokens, as far
// as each goes: a run that was stopped has only the beginning.
func sameText(base, g *Group) bool {
	first := base.First()
	for _, r := range slices.Concat(base.Runs, g.Runs) {
		if r.Engine != first.Engine || r.Engine != "" { // the ids of another engine's tokens are not known
			if !sameWords(first, r) {
				return false
			}
			continue
		}
		if r.Err == nil && first.Err == nil {
			if r.Result.TextSHA256 != first.Result.TextSHA256 {
				return false
			}
			continue
		}
		n := min(len(r.Result.TokenIDs), len(first.Result.TokenIDs))
		if !slices.Equal(r.Result.TokenIDs[:n], first.Result.TokenIDs[:n]) {
			return false
		}
	}
	return true
}

// sameWords reports whether runs of two engines gave the same words: one may count
// its tokens otherwise than the other, or not at all, and blanks at the ends are
// their servers' affair.
func sameWords(a, b *backend.Run) bool {
	words := func(r *backend.Run) string {
		return strings.TrimSpace(strings.TrimSpace(r.Result.Reasoning) + "\n" + strings.TrimSpace(r.Result.Text))
	}
	x, y := words(a), words(b)
	if a.Err == nil && b.Err == nil {
		return x == y
	}
	n := min(len(x), len(y))
	return x[:n] == y[:n]
}

// EngineName is what a list of runs calls the engine of one.
func EngineName(r *backend.Run) string {
	if r.Engine == "" {
		return backend.Local
	}
	return r.Engine
}

// Verdict returns the comparison that the latest run has brought about, if any:
// its group against its base, or, if it is of a base, the latest other group
// against that.
func (l *Runs) Verdict() (c Comparison, ok bool) {
	r := l.Last()
	if r == nil {
		return Comparison{}, false
	}
	g := l.Of(r)
	if base := l.Base(g); base != nil {
		return l.Compare(base, g), true
	}
	for _, other := range slices.Backward(l.groups) {
		if other != g && other.First().SameStart(r) && poolable(other.First()) {
			return l.Compare(g, other), true
		}
	}
	return Comparison{}, false
}

// What lists the settings that differ.
func (c *Comparison) What() string {
	if len(c.Differs) == 0 {
		return "same settings"
	}
	return strings.Join(c.Differs, ", ")
}

// Partial reports whether a run was longer than what was compared of it.
func (c *Comparison) Partial() bool {
	longest, shortest := 0, math.MaxInt
	for _, r := range slices.Concat(c.Base.Runs, c.Group.Runs) {
		longest, shortest = max(longest, len(r.Walls)), min(shortest, len(r.Walls))
	}
	return longest != shortest
}

// Differs is Text's word for texts that are not the same.
const Differs = "DIFFERS"

// Text says whether the texts are the same; a dash where that cannot be asked.
func (c *Comparison) Text() string {
	switch {
	case !c.SameStart:
		return "-"
	case c.Identical:
		return "identical"
	}
	return Differs
}

// Missing returns the settings of the run that repeating the last prompt needs
// beside it to be compared, as wishes, and those in force for the same names. ok
// is false if nothing is missing: no setting has changed since the last run, or
// a run that started alike is there. A disturbed one is: that it cannot be
// compared with is an answer.
func (l *Runs) Missing(now []backend.Value) (old, force map[string]string, ok bool) {
	last := l.Last()
	if last == nil {
		return nil, nil, false
	}
	old, force = changed(last.Settings, now)
	if len(old) == 0 {
		return nil, nil, false
	}
	for _, r := range l.all {
		if !r.SameStart(last) || fitness(r) == 0 {
			continue
		}
		if other, _ := changed(r.Settings, now); len(other) > 0 {
			return nil, nil, false
		}
	}
	return old, force, true
}

// changed returns the settings that can be changed between runs and have been:
// what they were and what they are.
func changed(was, now []backend.Value) (old, force map[string]string) {
	old, force = map[string]string{}, map[string]string{}
	if a, b := value(was, backend.EngineSetting), value(now, backend.EngineSetting); a != b && a != "" && b != "" {
		// Other settings are of two tables.
		return map[string]string{backend.EngineSetting: a}, map[string]string{backend.EngineSetting: b}
	}
	for _, v := range was {
		i := slices.IndexFunc(now, func(o backend.Value) bool { return o.Name == v.Name })
		if i >= 0 && now[i].Live && now[i].Value != v.Value {
			old[v.Name], force[v.Name] = v.Value, now[i].Value
		}
	}
	return old, force
}

func value(of []backend.Value, name string) string {
	if i := slices.IndexFunc(of, func(v backend.Value) bool { return v.Name == name }); i >= 0 {
		return of[i].Value
	}
	return ""
}
