package view

import (
	"fmt"
	"slices"
	"strings"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// list is the list of runs: a row for equal runs, and all about the picked one.
type list struct {
	*Runs
	h   int // rows
	top int // first shown
}

func newList(s Source) View { return &list{Runs: s.Runs} }

func (l *list) Figures() Figures { return Past }
func (l *list) Wheel(dir int)    { l.move(dir) }

func (l *list) Hints() []string {
	if l.asking.on {
		return []string{"Enter keeps the note", "Esc leaves it as it was"}
	}
	return []string{"Esc closes", "Up/Down picks a run", "Enter makes it the baseline", "n notes", "w writes files"}
}

// Key picks a run, and makes it the base of all others.
func (l *list) Key(name string) bool {
	if l.asking.on {
		done, known := l.asking.key(name)
		if done {
			l.SetNote(l.picked().Last().N, l.asking.text)
			l.asked = KeepNote
		}
		return known
	}
	switch name {
	case "n":
		if len(l.All()) > 0 {
			l.asking.begin(l.NoteOf(l.picked()))
		}
	case "w":
		l.asked = WriteRuns
	case "up", "k":
		l.move(-1)
	case "down", "j":
		l.move(+1)
	case "pgup":
		l.move(-l.page())
	case "pgdown":
		l.move(+l.page())
	case "enter":
		l.choose()
	default:
		return false
	}
	return true
}

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

// runColumn is a column of the table.
type runColumn struct {
	name string
	w    int
	rank int // the highest goes first when the screen is narrow
	get  func(g *ab.Group) string
}

// words reports that a column holds words, not a figure.
func (c *runColumn) words() bool {
	return c.name == engineColumn || c.name == "flags" || c.name == changeColumn
}

// figureColumn is a column of a figure's median.
func figureColumn(name string, w, rank int, format func(float64) string, f func(r *profile.Result) profile.Maybe[float64]) runColumn {
	return runColumn{name, w, rank, func(g *ab.Group) string { return g.Median(f).Text(format, "") }}
}

const engineColumn = "engine"

const spreadColumn = "spread" // of equal runs, from lowest to highest

const changeColumn = "change" // of the decode speed; against which runs, the list knows

var runColumns = []runColumn{
	figureColumn("tok/s", 6, 0, units.Sig, ab.DecodeTPS),
	{changeColumn, changeWidth, 0, nil},
	{spreadColumn, 6, 4, func(g *ab.Group) string {
		if len(g.Runs) == 1 {
			return "-"
		}
		return g.Spread(ab.DecodeTPS).Text(func(v float64) string { return units.Percent(100 * v) }, " %")
	}},
	figureColumn("compute", 7, 5, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute }),
	figureColumn("cache", 6, 6, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt }),
	figureColumn("waits", 6, 2, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall }),
	figureColumn("sync", 6, 7, toMs, func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other }),
	figureColumn("p50 ms", 6, 4, units.Sig, func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 }),
	figureColumn("MiB/tok", 7, 4, units.Fixed(1), func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken }),
	figureColumn("hit %", 5, 3, units.Percent, HitRate),
	{"evict", 7, 7, func(g *ab.Group) string { return g.First().Result.Cache.Evictions.Text(count, "") }}, // those of all: decided by the route
}

// notComparable is how a change begins that is none.
const notComparable = "not comparable: "

const (
	nameColumn  = 6  // "12 x10"
	changeWidth = 18 // "faster +44..+48 %"
	textColumn  = 10
	diffColumn  = 16 // least
	diffBeside  = 20 // least beside a change that takes more than its room

	flagsColumn = 13 // at most

	wideRuns = 150 // columns from which a change has room for a reason even if there is none
)

func (l *list) Title(int) string {
	return l.th.Title.On("runs") + "  " + l.th.Dim.On("compute, cache work, waits and sync in ms a token")
}

// withEngines adds what tells the runs of several engines apart, where there are
// such, and leaves out what no run of the list has.
func (l *list) withEngines(cols []runColumn) []runColumn {
	there := func(r *backend.Run) bool { return r.Engine != "" }
	all := l.All()
	if !slices.ContainsFunc(all, there) {
		return cols
	}
	if !slices.ContainsFunc(all, func(r *backend.Run) bool { return !there(r) }) {
		cols = cols[:2:2] // speed and change
	}
	first := figureColumn("first s", 7, 1, units.Sig, TTFT)
	engine := runColumn{engineColumn, 12, 1, func(g *ab.Group) string {
		name, _, _ := strings.Cut(ab.EngineName(g.First()), " ") // where it is, the details say
		return term.CleanLine(name)
	}}
	return slices.Insert(cols, 1, engine, first)
}

// columns drops what a narrow screen has no room for.
func (l *list) columns(w int) []runColumn {
	cols := l.withEngines(slices.Clone(runColumns))
	if !slices.ContainsFunc(l.Groups(), func(g *ab.Group) bool { return len(g.Runs) > 1 }) {
		cols = slices.DeleteFunc(cols, func(c runColumn) bool { return c.name == spreadColumn })
	}
	change := &cols[slices.IndexFunc(cols, func(c runColumn) bool { return c.name == changeColumn })]
	if w >= wideRuns {
		change.w = len(notComparable + "disturbed: drive")
	}
	diff := diffColumn
	// A change gives its reason where the most important figures leave room for it.
	room := w - nameColumn - 2 - diffBeside - 2 - textColumn
	for _, c := range cols {
		switch {
		case c.name == changeColumn:
			room--
		case c.rank <= 3:
			room -= c.w + 1
		}
	}
	for _, g := range l.Groups() {
		_, _, text := l.Relation(g)
		if n := min(l.th.Width(text), room); n > change.w {
			change.w, diff = n, diffBeside
		}
	}
	wide := 0
	for _, g := range l.Groups() {
		wide = max(wide, len(shortFlags(g)))
	}
	if wide > 0 {
		cols = append(cols, runColumn{"flags", min(max(wide, len("flags")), flagsColumn), 1, shortFlags})
	}
	for {
		total := nameColumn + 2 + diff + 2 + textColumn
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
func detailRows(h int) int { return min(13, h*3/5) }

// page is how many runs are shown at once.
func (l *list) page() int { return max(l.h-1-detailRows(l.h), 1) }

func (l *list) Render(w, h int) []string {
	l.h = h
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
	var lines []string
	at := 0 // the picked run's line
	questions := l.questions()
	for _, q := range questions {
		if len(questions) > 1 {
			prompt := th.Shown(term.CleanLine(l.Groups()[q[0]].First().Prompt))
			lines = append(lines, th.Pad(th.Bold.On(th.Cut(prompt, w)), w))
		}
		for _, i := range q {
			if i == l.at {
				at = len(lines)
			}
			lines = append(lines, l.row(i, cols, diffW))
		}
	}
	l.top = max(min(max(l.top, at-page+1), at), 0)
	if at == 1 && len(questions) > 1 && page > 1 {
		l.top = 0 // its question too
	}
	rows = append(rows, lines[l.top:min(l.top+page, len(lines))]...)
	for len(rows) < h-details {
		rows = append(rows, term.Blanks(w))
	}
	return append(rows, l.detail(w, details)...)
}

// row is one group in the table.
func (l *list) row(i int, cols []runColumn, diffW int) string {
	th, g := l.th, l.Groups()[i]
	what, text, change := l.Relation(g)
	var b strings.Builder
	mark := " "
	if i == l.at {
		mark = th.G.Focus
	}
	name := g.Name()
	if l.NoteOf(g) != "" {
		name += "*"
	}
	b.WriteString(mark + th.Pad(name, nameColumn) + " " + th.Pad(th.Shown(what), diffW))
	for _, c := range cols {
		v := change
		switch {
		case c.get == nil:
			if th.Width(v) > c.w { // the reason rather than the verdict
				v = strings.TrimPrefix(v, notComparable)
			}
		case StoppedEarly(g.First()) && !c.words():
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

// detail tells all about the picked group.
func (l *list) detail(w, h int) []string {
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
	switch note := l.NoteOf(g); {
	case l.asking.on:
		rows = append(rows, th.Pad(th.Accent.On("note: ")+l.asking.show(th, w-6), w))
	case note != "":
		add(th.Accent, "note: "+th.Shown(note))
	}
	add("", SettingsText(r.Settings))
	add("", l.Summary(r))
	if StoppedEarly(r) {
		return fill(rows, w, h)
	}
	if len(g.Runs) > 1 {
		add("", l.Pooled(g))
	}
	if base := l.against(g); base != nil {
		c := l.Compare(base, g)
		add("", l.Sentence(&c))
		if a, b := base.First(), g.First(); len(c.Differs) > 0 && a.Engine == b.Engine {
			add("", "what differed: "+changes(a.Settings, b.Settings))
		}
		add("", l.sideBySide(&c))
	} else {
		add(th.Dim, "other runs of the same prompt are compared with this one; "+l.again+" makes one")
	}
	add("", l.figures(r))
	return fill(rows, w, h)
}

// Typing implements Typist.
func (l *list) Typing() bool { return l.asking.on }
