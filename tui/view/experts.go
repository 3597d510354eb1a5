package view

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// Residents is what the views of experts and layers draw: the latest map, nil before
// there is one, and what else was known then.
type Residents struct {
	Map      *profile.ExpertMap
	Snapshot *profile.Snapshot
}

// nothing says why there is no map; empty if there is one.
func (r *Residents) nothing() string {
	switch s := r.Snapshot; {
	case r.Map == nil || s == nil || s.Phase == profile.Loading:
		return "nothing is known yet"
	case s.Remote.Server != "":
		return units.NotMeasured + ": the experts are not computed here"
	case s.Model.MoELayers == 0:
		return notMoE
	case !s.Cache.Streaming:
		return "not streaming: experts are computed from the file's mapping, none is kept or given up"
	case len(r.Map.Cells) == 0:
		return units.NotMeasured + ": what is open here does not tell of its experts"
	}
	return ""
}

// cooled are the tokens after which a cell is drawn a shade darker; after the last it
// lies still.
var cooled = [term.HeatLevels]int32{0, 4, 16}

// level returns the shade of what happened so many tokens ago; ok is false once it has
// cooled down.
func level(age int32) (level int, ok bool) {
	for i, most := range cooled {
		if age <= most {
			return i, true
		}
	}
	return 0, false
}

// zoom is how many layers share a row.
type zoom uint8

const (
	byRoom   zoom = iota // two where one does not fit
	oneLayer             // always
	twoLayers
)

// experts is the map of experts: a row a layer or two, a column an expert.
type experts struct {
	*Residents
	th            *term.Theme
	zoom          zoom
	packed        bool // as last drawn: two layers share a row
	layer, expert int  // picked
	top, left     int  // first layer and expert shown
}

func newExperts(s Source) View { return &experts{Residents: s.Residents, th: s.Theme} }

func (v *experts) Figures() Figures { return Live }
func (v *experts) Wheel(dir int)    { v.move(dir, 0) }

func (v *experts) Hints() []string {
	hints := []string{"Esc closes", "arrows pick an expert", "l shows the layers", "Space freezes"}
	if v.coloured() {
		hints = append(hints, "z zooms")
	}
	return hints
}

// coloured reports whether two layers can share a row, of which only colours then tell what
// happened.
func (v *experts) coloured() bool { return !v.th.NoColor && v.th.G.UpperHalf != "" }

// Key picks an expert.
func (v *experts) Key(name string) bool {
	switch name {
	case "up", "k":
		v.move(-1, 0)
	case "down", "j":
		v.move(1, 0)
	case "left":
		v.move(0, -1)
	case "right":
		v.move(0, 1)
	case "pgup":
		v.move(-10, 0)
	case "pgdown":
		v.move(10, 0)
	case "home":
		v.expert = 0
	case "end":
		v.move(0, 1<<20)
	case "z":
		if v.zoom = twoLayers; v.packed {
			v.zoom = oneLayer
		}
	default:
		return false
	}
	return true
}

// move picks another expert. A layer without experts is passed over.
func (v *experts) move(layers, experts int) {
	if v.Map == nil || len(v.Map.Cells) == 0 {
		return
	}
	last := len(v.Map.Layers) - 1
	v.expert = min(max(v.expert+experts, 0), v.Map.Experts-1)
	to := min(max(v.layer+layers, 0), last)
	step := 1
	if layers < 0 {
		step = -1
	}
	for l := to; l >= 0 && l <= last; l += step {
		if v.Map.Layers[l].Bytes > 0 {
			v.layer = l
			return
		}
	}
}

// resident says how many experts are in memory, of how many.
func (r *Residents) resident() string {
	resident, all := 0, 0
	for i, l := range r.Map.Layers {
		if l.Bytes > 0 {
			_, _, n := r.Map.Totals(i)
			resident, all = resident+n, all+r.Map.Experts
		}
	}
	if r.Map.Rebuilt { // not all who went are known
		resident = r.Snapshot.Cache.SlotsUsed
	}
	return fmt.Sprintf("%d of %d in memory", resident, all)
}

func (v *experts) Title(w int) string {
	th := v.th
	head := th.Text(0, th.Title, "experts")
	if v.nothing() != "" {
		return th.FirstFit(w, []term.Part{head})
	}
	parts := []term.Part{head, th.Text(0, "", v.resident()), th.Labelled(1, "policy", term.CleanLine(v.Snapshot.Cache.Policy))}
	if v.Map.Rebuilt {
		parts = append(parts, th.Text(0, th.Read, "rebuilt of what was recorded"))
	}
	return th.FirstFit(w, parts)
}

const (
	totalsWidth = 24 // "  hit  61.2 % read 12345"
	labelWidth  = 4
	pickedRows  = 5 // of the picked expert, with a line above
)

// Render draws a legend, the map, and all about the picked expert.
func (v *experts) Render(w, h int) []string {
	th := v.th
	if why := v.nothing(); why != "" {
		return fill([]string{th.Pad(why, w)}, w, h)
	}
	m := v.Map
	v.layer, v.expert = min(v.layer, len(m.Layers)-1), min(v.expert, m.Experts-1)
	if m.Layers[v.layer].Bytes == 0 {
		v.move(0, 0)
	}
	layers := v.layers()
	room := max(h-2-pickedRows, 1) // rows of the map
	v.packed = v.coloured() && (v.zoom == twoLayers || v.zoom == byRoom && len(layers) > room && (len(layers)+1)/2 <= room)
	per := 1
	if v.packed {
		per = 2
	}
	totals := 0
	if m.Experts+labelWidth+totalsWidth <= w || w >= 100 {
		totals = totalsWidth
	}
	cols := min(m.Experts, w-labelWidth-totals)
	v.left = min(max(v.left, v.expert-cols+1, 0), v.expert, m.Experts-cols)
	at := 0 // of the picked layer, among those with experts
	for i, l := range layers {
		if l == v.layer {
			at = i
		}
	}
	v.top = min(max(v.top, at-(room-1)*per), at, max(len(layers)-room*per, 0))
	if v.packed {
		v.top -= v.top % 2
		if at >= v.top+2*room {
			v.top += 2
		}
	}
	rows := []string{v.legend(w), th.Pad(th.Dim.On(v.ruler(cols)), w)}
	for i := v.top; i < len(layers) && len(rows) < 2+room; i += per {
		rows = append(rows, v.row(layers[i:min(i+per, len(layers))], w, cols, totals))
	}
	rows = fill(rows, w, h-pickedRows)
	return fill(append(rows, v.picked(w)...), w, h)
}

// layers lists those that have experts.
func (v *experts) layers() (out []int) {
	for i, l := range v.Map.Layers {
		if l.Bytes > 0 {
			out = append(out, i)
		}
	}
	return out
}

// ruler numbers the experts and says what is beyond the edges.
func (v *experts) ruler(cols int) string {
	var b strings.Builder
	b.WriteString(term.Blanks(labelWidth))
	for e := v.left; e < v.left+cols; {
		mark := fmt.Sprint(e)
		if e%10 != 0 && e != v.left || e+len(mark) > v.left+cols {
			b.WriteByte(' ')
			e++
			continue
		}
		b.WriteString(mark)
		e += len(mark)
	}
	if n := v.Map.Experts - cols; n > 0 {
		fmt.Fprintf(&b, " of %d", v.Map.Experts)
	}
	return b.String()
}

// look is how a cell is drawn: what happened in it, the shade of that, and whether it is
// in memory.
func (v *experts) look(c *profile.ExpertCell) (heat *term.Heat, glyph string, shade int) {
	th := v.th
	event, age := v.Map.Latest(c)
	shade, warm := level(age)
	if !warm {
		event = profile.NoEvent
	}
	pick := func(h *term.Heat, glyphs [2]string) (*term.Heat, string, int) {
		return h, glyphs[min(shade, 1)], shade
	}
	switch event {
	case profile.WasHit:
		return pick(&th.HeatHit, th.G.CellHit)
	case profile.WasRead:
		return pick(&th.HeatRead, th.G.CellRead)
	case profile.WasEvicted:
		return pick(&th.HeatEvicted, th.G.CellEvicted)
	case profile.WasGuessed:
		return pick(&th.HeatGuessed, th.G.CellGuessed)
	}
	if c.State != profile.Absent {
		return &th.HeatStill, th.G.CellStill, term.HeatLevels - 1
	}
	return nil, " ", 0
}

// row draws a layer, or two on each other.
func (v *experts) row(layers []int, w, cols, totals int) string {
	th := v.th
	var b strings.Builder
	label := th.Dim
	if layers[0] == v.layer || layers[len(layers)-1] == v.layer {
		label = th.Accent
	}
	b.WriteString(label.On(fmt.Sprintf("%3d ", layers[0])))
	var run term.Style
	var text strings.Builder
	put := func(st term.Style, s string) {
		if st != run {
			b.WriteString(run.On(text.String()))
			text.Reset()
			run = st
		}
		text.WriteString(s)
	}
	for e := v.left; e < v.left+cols; e++ {
		st, s := v.cell(layers, e)
		if e == v.expert && (layers[0] == v.layer || layers[len(layers)-1] == v.layer) {
			switch {
			case v.packed && layers[0] == v.layer:
				st, s = th.Accent, th.G.UpperHalf
			case v.packed:
				st, s = th.Accent, th.G.LowerHalf
			case s == " ":
				st, s = th.Selected, "_"
			default:
				st = th.Selected
			}
		}
		put(st, s)
	}
	b.WriteString(run.On(text.String()))
	used := labelWidth + cols
	if totals > 0 {
		uses, reads := int64(0), int64(0)
		for _, l := range layers {
			u, r, _ := v.Map.Totals(l)
			uses, reads = uses+u, reads+r
		}
		s := fmt.Sprintf("  hit %5s %% read %d", profile.Ratio(100*float64(uses-reads), float64(uses)).Text(units.Percent, ""), reads)
		b.WriteString(th.Dim.On(th.Pad(s, totals)))
		used += totals
	}
	return b.String() + term.Blanks(w-used)
}

// cell draws an expert, or those of two layers on each other.
func (v *experts) cell(layers []int, e int) (term.Style, string) {
	th := v.th
	heat, glyph, shade := v.look(v.Map.Cell(layers[0], e))
	if !v.packed {
		if heat == nil {
			return "", glyph
		}
		return heat.On[shade], glyph
	}
	var below *term.Heat
	shadeBelow := 0
	if len(layers) > 1 {
		below, _, shadeBelow = v.look(v.Map.Cell(layers[1], e))
	}
	switch {
	case heat == nil && below == nil:
		return "", " "
	case below == nil:
		return heat.On[shade], th.G.UpperHalf
	case heat == nil:
		return below.On[shadeBelow], th.G.LowerHalf
	}
	return heat.On[shade] + below.Under[shadeBelow], th.G.UpperHalf
}

// legend says what cells mean.
func (v *experts) legend(w int) string {
	th := v.th
	item := func(h *term.Heat, glyphs [2]string, word string) term.Part {
		s := glyphs[0] + glyphs[1]
		styled := h.On[0].On(glyphs[0]) + h.On[1].On(glyphs[1])
		if v.packed {
			s, styled = th.G.Full, h.On[0].On(th.G.Full)
		}
		return term.Part{S: styled + " " + word, W: th.Width(s) + 1 + len(word)}
	}
	still := th.G.CellStill
	if v.packed {
		still = th.G.Full
	}
	cooling := "this token, the last 16"
	if v.packed {
		cooling = "two layers a row, fading over 16 tokens"
	}
	parts := []term.Part{
		item(&th.HeatHit, th.G.CellHit, "used"),
		item(&th.HeatRead, th.G.CellRead, "read"),
		item(&th.HeatEvicted, th.G.CellEvicted, "given up"),
		item(&th.HeatGuessed, th.G.CellGuessed, "read ahead"),
		{S: th.HeatStill.On[term.HeatLevels-1].On(still) + " in memory", W: 11},
		th.Text(1, th.Dim, cooling),
	}
	return th.Row(w, 2, parts...)
}

// picked tells all about the picked expert.
func (v *experts) picked(w int) []string {
	th, m := v.th, v.Map
	c, l := m.Cell(v.layer, v.expert), &m.Layers[v.layer]
	where := map[profile.ExpertState]string{profile.Absent: "not in memory", profile.Resident: "in memory", profile.Ahead: "read ahead, not asked for yet"}[c.State]
	uses, reads, n := v.totals(v.layer)
	text := []string{
		fmt.Sprintf("layer %d, expert %d: %s, %s", v.layer, v.expert, where, expertSize(l.Bytes)),
		v.used(c),
		v.history(c),
		fmt.Sprintf("its layer: %s of %d in memory, hits %s, %d reads", n, m.Experts, profile.Ratio(100*float64(uses-reads), float64(uses)).Text(units.Percent, " %"), reads),
	}
	rows := []string{th.Dim.On(term.Repeat(th.G.Horizontal, w))}
	for i, s := range text {
		st := term.Style("")
		if i == 0 {
			st = th.Bold
		}
		rows = append(rows, th.Pad(st.On(th.Cut(s, w)), w))
	}
	return rows
}

// totals sums up a layer. Of a map that was rebuilt it is not known how many of its experts
// are in memory.
func (r *Residents) totals(layer int) (uses, reads int64, resident string) {
	uses, reads, n := r.Map.Totals(layer)
	if r.Map.Rebuilt {
		return uses, reads, units.NotMeasured
	}
	return uses, reads, fmt.Sprint(n)
}

// expertSize words the size of an expert.
func expertSize(bytes int64) string {
	if bytes < units.MiB {
		return units.Sig(float64(bytes)/1024) + " KiB"
	}
	return units.Sig(units.InMiB(bytes)) + " MiB"
}

// ago says when something was.
func (v *experts) ago(token int32) string {
	if n := v.Map.Token - token; n > 0 {
		return units.Plural(int64(n), "token") + " ago"
	}
	return "for the latest token"
}

// used says how often an expert was used, and how it was found.
func (v *experts) used(c *profile.ExpertCell) string {
	if c.Uses == 0 {
		return "not used since the cache was emptied"
	}
	s := fmt.Sprintf("used %s, last %s; %s of them from memory", units.Plural(int64(c.Uses), "time"), v.ago(c.Used), c.HitShare().Text(units.Percent, " %"))
	if c.Reads > 0 {
		s += fmt.Sprintf("; read %s, last %s", units.Plural(int64(c.Reads), "time"), v.ago(c.Read))
	}
	return s
}

// history says why an expert went, and what was guessed of it.
func (v *experts) history(c *profile.ExpertCell) string {
	m := v.Map
	s := "never given up"
	if m.Rebuilt {
		s = "not known to have been given up"
	}
	if c.Gone > 0 {
		s = "given up " + v.ago(c.Gone)
		switch why := c.Why; {
		case why == profile.GoneShrunk:
			s += ": the budget became smaller"
		case why == profile.GoneFailed:
			s += ": its read failed"
		case why == profile.GoneLayer:
			s += ": whole layers are read, and this one was over"
		case int(why) < int(profile.GonePolicy)+len(m.Policies):
			s += " by " + term.CleanLine(m.Policies[why-profile.GonePolicy])
		}
		if c.By >= 0 {
			s += fmt.Sprintf(" for layer %d, expert %d", int(c.By)/m.Experts, int(c.By)%m.Experts)
		}
		if c.State == profile.Resident {
			s += "; read again since"
		}
	}
	if c.Guessed > 0 {
		s += "; read ahead " + v.ago(c.Guessed)
	}
	return s
}
