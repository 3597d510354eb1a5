package pane

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// cache shows what the expert cache holds and what it costs to hold it.
type cache struct{ base }

func newCache(b base) Pane { return &cache{b} }

func (p *cache) Title(w int) string {
	if p.remote() {
		return p.absent(w, "the experts are not computed here")
	}
	th, c := p.th, &p.s.Cache
	if !c.Streaming && !p.blank() {
		return p.titled(w, []term.Part{th.Text(0, th.Dim, notStreaming(p.s, "not streaming"))}, nil)
	}
	hit, policy := c.HitRun.Text(units.Percent, " %"), th.Labelled(2, "policy", term.CleanLine(c.Policy))
	if p.of > 0 {
		parts := []term.Part{th.Labelled(0, fmt.Sprintf("run %d: hits", p.of), hit), policy}
		return p.titled(w, parts, parts)
	}
	parts := []term.Part{th.Coloured(0, th.Hit, "hits", hit), th.Labelled(1, "now", c.HitNow.Text(units.Percent, " %")), policy}
	return p.titled(w, parts, parts)
}

// notStreaming says why nothing is streamed: text, where the model has experts.
func notStreaming(s *profile.Snapshot, text string) string {
	if s.Model.MoELayers == 0 {
		return "not MoE: nothing to stream"
	}
	return text
}

func (p *cache) Rows() (want, most int) {
	if p.remote() {
		return 0, 0
	}
	return 3, 4
}

func (p *cache) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	if p.remote() {
		return p.fill(nil)
	}
	th, s, c := p.th, p.s, &p.s.Cache
	if !c.Streaming {
		text := "experts are computed from the file's mapping"
		if s.Model.MoELayers == 0 { // the title says that nothing is streamed
			text = "threads, ubatch, dense-weights, release-mmap apply"
		}
		return p.fill([]string{th.Row(p.w, 2, th.Text(0, "", text))})
	}
	of := "a token"
	if p.of > 0 {
		of = fmt.Sprintf("a token of run %d", p.of)
	}
	costs := []term.Part{
		th.Coloured(0, th.Read, of+" reads", c.ReadPerTok.Text(units.Mebibytes, " MiB")),
		th.Coloured(0, th.Evicted, "evicts", c.EvictionsPerTok.Text(units.Sig, "")),
		th.Labelled(0, "re-reads", c.RereadsPerTok.Text(units.Sig, "")),
	}
	if c.Thrifty {
		costs = append(costs, th.Labelled(0, "leaves out", c.DroppedPerTok.Text(units.Sig, "")), th.Labelled(0, "replaces", c.ReplacedPerTok.Text(units.Sig, "")))
	}
	rows := []string{
		p.residency(),
		th.Row(p.w, 2, p.cycle()),
		th.Row(p.w, 2, costs...),
		th.Row(p.w, 2,
			th.Labelled(0, "slots", fmt.Sprintf("%d of %d used", c.SlotsUsed, c.Slots)),
			th.Labelled(1, "memory taken", units.Mebibytes(c.Arena)+" MiB"),
			th.Labelled(2, "a layer needs", units.Mebibytes(c.LayerWorkingSet)+" MiB"),
			th.Labelled(1, "lookups", fmt.Sprint(c.Lookups))),
	}
	if p.expanded {
		rows = append(append(rows, term.Blanks(p.w)), p.curve()...)
		hits := func(r *profile.Record) profile.Maybe[float64] {
			return profile.Ratio(100*float64(r.Hits), float64(r.Lookups))
		}
		rows = append(append(rows, term.Blanks(p.w)), p.charts(p.h-len(rows)-1, []figure{{name: "hits %", of: hits, text: units.Sig, st: th.Hit, top: 100}})...)
	}
	return p.fill(rows)
}

// curve says what other budgets would hit, the one in force marked, and where one token's
// experts fit.
func (p *cache) curve() []string {
	th, c := p.th, &p.s.Cache
	if c.WhatIfs == 0 {
		return []string{th.Row(p.w, 2, th.Labelled(0, "hits by budget:", units.NotMeasured), th.Text(0, th.Dim, "told of an answer's tokens"))}
	}
	of := "this run"
	if p.of > 0 {
		of = fmt.Sprintf("run %d", p.of)
	}
	rows := []string{th.Row(p.w, 2, th.Text(0, th.Bold, "hits by budget"), th.Text(0, th.Dim, "of "+of+", all else equal"), th.Text(0, th.Dim, "[estimated]"))}
	most := max(p.h-8-len(rows), 4) // the chart below needs some rows too
	step := (c.WhatIfs + most - 1) / most
	for i := range c.WhatIfs {
		w := &c.WhatIf[i]
		if !w.InForce && i%step != 0 && i != c.WhatIfs-1 {
			continue
		}
		mark, st := " ", term.Style("")
		if w.InForce {
			mark, st = th.G.Focus, th.Bold
		}
		budget := th.PadLeft(units.Mebibytes(w.Budget), 8) + " MiB"
		hit := th.PadLeft(w.Hit.Text(units.Percent, " %"), 7)
		parts := []term.Part{
			th.Text(0, st, mark+budget),
			th.Bar(w.Hit.Value/100, min(p.w/3, 40), th.Hit),
			th.Text(0, st, hit),
			th.Labelled(1, "read", w.ReadPerTok.Text(units.Mebibytes, " MiB a token")),
			th.Labelled(1, "tok/s", w.TPS.Text(units.Sig, "")),
		}
		switch {
		case w.InForce:
			parts = append(parts, th.Text(2, th.Bold, "in force"))
		case w.Budget == units.WholeMiB(p.s.Model.TokenCycle):
			parts = append(parts, th.Text(2, th.Dim, "one token's experts"))
		case w.Budget >= p.s.Model.ExpertBytesAll:
			parts = append(parts, th.Text(2, th.Dim, "all experts"))
		}
		rows = append(rows, th.Row(p.w, 2, parts...))
	}
	return rows
}

// residency is the budget as a part of all experts: full as far as it is used, with a
// mark where one token's experts would fit.
func (p *cache) residency() string {
	th, c, all := p.th, &p.s.Cache, p.s.Model.ExpertBytesAll
	of := fmt.Sprintf("%s MiB of %s", units.Mebibytes(c.Budget), units.Mebibytes(all))
	if all > 0 {
		of += fmt.Sprintf(" (%s)", units.Share(float64(c.Budget)/float64(all)))
	}
	if c.BudgetAuto {
		of += " auto"
	}
	w := min(p.w-th.Width(of)-2, 40)
	if w < 8 || c.Budget <= 0 || all <= 0 {
		return th.Row(p.w, 2, th.Text(0, "", of))
	}
	at := func(bytes int64) int {
		return min(int(float64(min(bytes, all))/float64(all)*float64(w)+0.5), w)
	}
	full, budget, mark := at(c.Resident), max(at(c.Budget), 1), -1
	if t := p.s.Model.TokenCycle; t > 0 && t <= all {
		mark = min(at(t), w-1)
	}
	var bar strings.Builder
	piece := func(from, to int, st term.Style, g string) {
		for i := from; i < to; i++ {
			if i == mark {
				bar.WriteString(th.Bold.On(th.G.Mark))
			} else {
				bar.WriteString(st.On(g))
			}
		}
	}
	piece(0, full, th.Hit, th.G.Full)
	piece(full, max(budget, full), th.Hit, th.G.Empty)
	piece(max(budget, full), w, th.Dim, th.G.Rest)
	return th.Row(p.w, 2, term.Part{S: bar.String(), W: w}, th.Text(0, "", of))
}

// cycle says whether the budget holds one token's experts. Below that an LRU
// cache never hits: the entry that goes is the one needed soonest.
func (p *cache) cycle() term.Part {
	th, c := p.th, &p.s.Cache
	needs := "one token needs " + units.Mebibytes(p.s.Model.TokenCycle) + " MiB (" + th.G.Mark + ")"
	switch {
	case c.BelowTokenCycle:
		return th.Text(0, th.Alert, needs+": does not fit, hardly any hits")
	case p.s.Model.TokenCycle > c.Budget:
		return th.Text(0, "", needs+": does not fit")
	}
	return th.Text(0, "", needs+": fits")
}
