package view

import (
	"fmt"
	"slices"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// layers lists what each layer cost a decoded token.
type layers struct {
	*Residents
	th        *term.Theme
	byWaiting bool // sorted so
	top, h    int
}

func newLayers(s Source) View { return &layers{Residents: s.Residents, th: s.Theme} }

func (v *layers) Figures() Figures { return Live }
func (v *layers) Wheel(dir int)    { v.scroll(3 * dir) }
func (v *layers) scroll(n int)     { v.top = max(v.top+n, 0) }

func (v *layers) Hints() []string {
	return []string{"Esc closes", "s sorts by waiting", "Up/Down scrolls", "Space freezes"}
}

// Key scrolls and sorts.
func (v *layers) Key(name string) bool {
	switch name {
	case "up", "k":
		v.scroll(-1)
	case "down", "j":
		v.scroll(1)
	case "pgup":
		v.scroll(-10)
	case "pgdown":
		v.scroll(10)
	case "s":
		v.byWaiting = !v.byWaiting
	default:
		return false
	}
	return true
}

// nothing says why there are no layers to tell of; empty if there are.
func (v *layers) nothing() string {
	s := v.Snapshot
	switch {
	case v.Map == nil || s == nil || s.Phase == profile.Loading:
		return "nothing is known yet"
	case s.Remote.Server != "":
		return units.NotMeasured + ": the layers are not computed here"
	case !v.Map.Timed && !v.Map.Estimated || len(v.Map.Layers) == 0 || v.Map.Layers[0].Tokens == 0:
		return units.NotMeasured + ": what layers cost is told of an answer's tokens, from its second on"
	}
	return ""
}

// cost is a layer's share of a mean token, ns.
type cost struct {
	layer                       int
	compute, mgmt, stall, other float64
}

func (v *layers) costs() (out []cost, stall float64) {
	for i := range v.Map.Layers {
		l := &v.Map.Layers[i]
		n := float64(max(l.Tokens, 1))
		c := cost{i, float64(l.Compute) / n, float64(l.Mgmt) / n, float64(l.Stall) / n, float64(l.Other) / n}
		out = append(out, c)
		stall += c.stall
	}
	return out, stall
}

// byStall sorts by waiting, the most first.
func byStall(a, b cost) int {
	switch {
	case a.stall > b.stall:
		return -1
	case a.stall < b.stall:
		return 1
	}
	return a.layer - b.layer
}

func (v *layers) Title(w int) string {
	th := v.th
	head := th.Text(0, th.Title, "layers")
	if v.nothing() != "" {
		return th.FirstFit(w, []term.Part{head})
	}
	parts := []term.Part{head, th.Text(0, "", v.summary())}
	if v.Map.Estimated {
		parts = append(parts, th.Text(0, th.Read, "estimated"))
	}
	return th.FirstFit(w, parts)
}

// summary says in how many layers tokens wait.
func (v *layers) summary() string {
	all, stall := v.costs()
	switch {
	case v.Map.NoStall && v.Snapshot.Model.MoELayers == 0:
		return notMoE
	case v.Map.NoStall:
		return "waiting " + units.NotMeasured + ": reads are page faults"
	case stall == 0:
		return "no token waited"
	}
	slices.SortFunc(all, byStall)
	n, sum := 0, 0.
	for ; sum < stall/2; n++ {
		sum += all[n].stall
	}
	return fmt.Sprintf("a token waits %s ms; half of that in %d of %s", units.Ms(int64(stall)), n, units.Plural(int64(len(all)), "layer"))
}

// mostTold is of how many layers LayerLines tells.
const mostTold = 5

// LayerLines tells in lines what layers cost a token, those first that it waits for longest.
func (r *Residents) LayerLines() []string {
	v := &layers{Residents: r}
	if why := v.nothing(); why != "" {
		return []string{why}
	}
	out := []string{v.summary()}
	if r.Map.NoStall {
		return out
	}
	if r.Map.Estimated {
		out[0] += " [estimated]"
	}
	all, stall := v.costs()
	slices.SortFunc(all, byStall)
	for _, c := range all[:min(len(all), mostTold)] {
		uses, reads, _ := r.Map.Totals(c.layer)
		out = append(out, fmt.Sprintf("layer %d: waits %s ms (%s of all), hits %s", c.layer, units.Ms(int64(c.stall)), profile.Ratio(100*c.stall, stall).Text(units.Percent, " %"),
			profile.Ratio(100*float64(uses-reads), float64(uses)).Text(units.Percent, " %")))
	}
	return out
}

// ExpertLine tells in a line how many experts are in memory.
func (r *Residents) ExpertLine() string {
	if why := r.nothing(); why != "" {
		return why
	}
	return r.resident() + ", policy " + term.CleanLine(r.Snapshot.Cache.Policy)
}

// notMoE is what is said of a model without experts.
const notMoE = "not MoE: nothing to stream"

// layerColumns stand beside the bar.
const layerColumns = 6 + 10 + 8 + 10 + 8 + 9

func (v *layers) Render(w, h int) []string {
	v.h = h
	th := v.th
	if why := v.nothing(); why != "" {
		return fill([]string{th.Pad(why, w)}, w, h)
	}
	all, stall := v.costs()
	if v.byWaiting {
		slices.SortFunc(all, byStall)
	}
	most := 0.
	for _, c := range all {
		most = max(most, c.compute+c.mgmt+c.stall+c.other)
	}
	bar := max(w-layerColumns-2, 0)
	cell := func(s string, w int) string { return th.PadLeft(s, w) }
	legend := fmt.Sprintf("  %s computes %s cache work %s waits %s sync", th.G.Compute, th.G.Mgmt, th.G.Stall, th.G.Other)
	rows := []string{th.Pad(th.Dim.On(th.Cut(cell("layer", 6)+cell("wait ms", 10)+cell("of all", 8)+cell("compute", 10)+cell("hit %", 8)+cell("in mem", 9)+legend, w)), w)}
	v.top = min(v.top, max(len(all)-(h-2), 0))
	for _, c := range all[v.top:] {
		wait, share, compute := units.NotMeasured, units.NotMeasured, units.NotMeasured
		if !v.Map.NoStall {
			wait, share = units.Ms(int64(c.stall)), profile.Ratio(100*c.stall, stall).Text(units.Percent, " %")
		}
		if v.Map.Timed {
			compute = units.Ms(int64(c.compute))
		}
		hits, in := "-", "-"
		if v.Map.Layers[c.layer].Bytes > 0 {
			uses, reads, n := v.totals(c.layer)
			hits, in = profile.Ratio(100*float64(uses-reads), float64(uses)).Text(units.Percent, ""), fmt.Sprintf("%s/%d", n, v.Map.Experts)
		}
		line := cell(fmt.Sprint(c.layer), 6) + cell(wait, 10) + cell(share, 8) + cell(compute, 10) + cell(hits, 8) + cell(in, 9) + "  "
		rows = append(rows, line+v.bar(&c, most, bar))
		if len(rows) == h-1 {
			break
		}
	}
	rows = fill(rows, w, h-1)
	text := "ms a token of the latest run; hits since the cache was emptied"
	if v.Map.Estimated {
		text = "a token's waiting, shared out among its layers by their longest misses; the rest was not recorded"
	}
	if below := len(all) - v.top - (h - 2); below > 0 {
		text = fmt.Sprintf("%s %d layers below; ", th.G.Down, below) + text
	}
	return append(rows, th.Pad(th.Dim.On(th.Cut(text, w)), w))
}

// bar stacks a layer's parts in w columns, of which the dearest layer takes all.
func (v *layers) bar(c *cost, most float64, w int) string {
	th := v.th
	if most <= 0 {
		return term.Blanks(w)
	}
	s, used, sum := "", 0, 0.
	for _, p := range []struct {
		ns    float64
		st    term.Style
		glyph string
	}{{c.compute, th.Compute, th.G.Compute}, {c.mgmt, th.Mgmt, th.G.Mgmt}, {c.other, th.Other, th.G.Other}, {c.stall, th.Stall, th.G.Stall}} {
		sum += p.ns
		n := min(int(sum/most*float64(w)+0.5), w) - used
		s += p.st.On(term.Repeat(p.glyph, n))
		used += max(n, 0)
	}
	return s + term.Blanks(w-used)
}
