package view

import (
	"fmt"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/tui/term"
)

// detailRows is what the list leaves to the lines about the picked model.
func (l *Models) detailRows() int { return min(max(l.h/2, 4), 11) }

// widestName is as wide as the column of names becomes: beyond it a row falls apart.
const widestName = 64

// modelColumns are the widths of the list's columns; 0: not shown.
type modelColumns struct{ name, arch, size, share, moe, active, speed, place int }

func columnsOf(w int) modelColumns {
	c := modelColumns{size: 8, share: 6, moe: 7, active: 8, speed: 13}
	switch {
	case w >= 100:
		c.arch, c.place = 18, 14
	case w < 74: // the name is what one looks for
		c.share, c.moe = 0, 0
	}
	taken := 2
	for _, n := range []int{c.arch, c.size, c.share, c.moe, c.active, c.speed, c.place} {
		if n > 0 {
			taken += n + 2
		}
	}
	c.name = min(max(w-taken, 8), widestName)
	return c
}

// line lays a row out.
func (c modelColumns) line(th *term.Theme, mark, name, arch, size, share, moe, active, speed, place string) string {
	out := mark + " " + th.Pad(name, c.name)
	if c.arch > 0 {
		out += "  " + th.Pad(arch, c.arch)
	}
	out += "  " + th.PadLeft(size, c.size)
	if c.share > 0 {
		out += "  " + th.PadLeft(share, c.share) + "  " + th.PadLeft(moe, c.moe)
	}
	out += "  " + th.PadLeft(active, c.active) + "  " + th.Pad(speed, c.speed)
	if c.place > 0 {
		out += "  " + th.Pad(place, c.place)
	}
	return out
}

// Render implements View.
func (l *Models) Render(w, h int) []string {
	l.h = h
	th, c := l.th, columnsOf(w)
	top := []string{l.filterLine(w), th.Pad(th.Dim.On(c.line(th, " ", "model", "architecture", "size", "of RAM", "experts", "MiB/tok", "tok/s here", "found in")), w)}
	rows, page := l.rows(), l.page()
	l.at = min(l.at, max(l.count()-1, 0))
	l.top = min(max(l.top, l.at-page+1), l.at)
	shown := top
	for i := l.top; i < min(l.top+page, l.count()); i++ {
		mark := " "
		if i == l.at {
			mark = th.G.Focus
		}
		if i == len(rows) {
			shown = append(shown, l.marked(i, th.Pad(mark+" "+l.hub()+"  of the Hugging Face Hub", w)))
			continue
		}
		m := rows[i]
		name := th.Shown(term.CleanLine(m.Name))
		if m.ID == l.open {
			name = "(open) " + name
		}
		size, arch := "-", term.CleanLine(m.Arch+" "+m.Quant)
		if m.Bytes > 0 {
			size = units.Size(m.Bytes)
		}
		moe, active := needs(m)
		line := th.Pad(c.line(th, mark, name, th.Shown(arch), size, l.ofMemory(m), moe, active, speed(m), th.Shown(term.CleanLine(m.Place))), w)
		if i != l.at && m.Why != "" {
			line = th.Dim.On(line)
		}
		shown = append(shown, l.marked(i, line))
	}
	switch {
	case l.none != "":
		shown = append(shown, th.Pad(th.Read.On(th.Cut(th.Shown(l.none), w)), w))
	case l.known && l.count() == 0 && l.filter != "":
		shown = append(shown, th.Pad("no model has this in its name, architecture or place", w))
	case l.known && l.count() == 0:
		shown = append(shown, th.Pad("no models found: type OWNER/REPO[:QUANT] for one of the Hugging Face Hub", w))
	}
	detail := l.detailRows()
	shown = fill(shown, w, max(h-detail, 0))
	if below := l.count() - l.top - page; below > 0 && len(shown) > 2 {
		shown[0] = th.Pad(th.Cut(l.filterText(), w-16), w-14) + th.PadLeft(th.Read.On(fmt.Sprintf("%s %d more", th.G.Down, below)), 14)
	}
	shown = append(shown, th.Dim.On(term.Repeat(th.G.Horizontal, w)))
	for _, d := range l.details() {
		for n, part := range term.Words(th.Shown(term.CleanLine(d.Value)), w-factName) {
			name := ""
			if n == 0 {
				name = d.Name
			}
			shown = append(shown, th.Pad(th.Dim.On(th.Pad(name, factName))+part, w))
		}
	}
	return fill(shown, w, h)
}

func (l *Models) marked(i int, line string) string {
	if i == l.at {
		return l.th.Selected.On(line)
	}
	return line
}

func (l *Models) filterText() string {
	return l.th.Shown("filter: " + term.CleanLine(l.filter) + "_")
}

func (l *Models) filterLine(w int) string {
	text := l.filterText()
	if l.filter == "" {
		text += "  type to filter, or OWNER/REPO[:QUANT] to download"
	}
	return l.th.Pad(l.th.Accent.On(l.th.Cut(text, w)), w)
}

// factName is how wide the names of details are.
const factName = 10

// details are the lines about what is picked and what goes on, what matters most
// first.
func (l *Models) details() (out []backend.Fact) {
	say := func(name, value string) { out = append(out, backend.Fact{Name: name, Value: value}) }
	if l.coming {
		say("download", comingText(l.down))
	}
	if l.refused != "" {
		say("", l.refused)
	}
	switch m := l.picked(); {
	case m != nil && m.Why != "":
		say("problem", m.Why)
	case m != nil:
		out = append(out, l.about(m)...)
	case l.asking != "":
		say("hub", "asking about "+l.asking)
	case l.hub() != "" && l.offer != nil && l.offer.Name == l.hub():
		for i, line := range l.offer.Lines {
			say([]string{"hub", ""}[min(i, 1)], line)
		}
	case l.hub() != "":
		say("hub", "Enter asks what it has; how big it is and how fast it may be is told before the first byte")
	}
	switch {
	case l.busy != "":
		say("here", l.busy)
	case l.shelf.Machine != "":
		say("here", l.shelf.Machine)
	}
	for _, n := range l.shelf.Notes {
		say("", n)
	}
	return out
}

// about is what is known of a model.
func (l *Models) about(m *backend.Model) (out []backend.Fact) {
	if m.Least.OK && m.Most.OK {
		why := ": how often the cache hits shows when it runs"
		if m.Experts == 0 {
			why = ": how near the products of weights come to memory's rate shows when it runs"
		}
		out = append(out, backend.Fact{Name: "estimate", Value: speed(m) + " tok/s" + why})
	}
	switch {
	case l.untold != "":
		return append(out, backend.Fact{Name: "problem", Value: l.untold})
	case m.ID == l.factsOf && l.facts == nil:
		return append(out, backend.Fact{Name: "file", Value: "its header is being read"})
	}
	return append(out, l.facts...)
}

// comingText says how far a download is.
func comingText(d *backend.Download) string {
	if d == nil {
		return "the download begins"
	}
	what := ""
	if d.Checking {
		what = "checking what is here of "
	}
	text := what + d.Name + ": " + units.Size(d.Done) + " of " + units.Size(d.Total)
	if d.Rate > 0 {
		text += ", " + units.MiBPerSecond(d.Rate) + ", " + units.About(int64(d.Left)) + " left"
	}
	return text
}
