package tui

import (
	"fmt"
)

// cachePane shows what the expert cache holds and what it costs to hold it.
type cachePane struct{ paneBase }

func (p *cachePane) Title(w int) string {
	th, c := p.th, &p.s.Cache
	if !c.Streaming && !p.blank() {
		return p.titled(w, "2 cache", []part{th.p(0, th.dim, "not streaming")}, nil)
	}
	hit, policy := maybe(c.HitRun, percent, " %"), th.kv(2, "policy", cleanLine(c.Policy))
	if p.of > 0 {
		parts := []part{th.kv(0, fmt.Sprintf("run %d: hit", p.of), hit), policy}
		return p.titled(w, "2 cache", parts, parts)
	}
	bar, now := th.bar(c.HitRun.Value/100, 12, th.hit), th.kv(1, "now", maybe(c.HitNow, percent, " %"))
	return p.titled(w, "2 cache", []part{th.kv(0, "hit", hit), bar, now, policy}, []part{th.kv(0, "hit", hit), now, policy})
}

func (p *cachePane) Rows() (want, most int) { return 3, 4 }

func (p *cachePane) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	th, s, c := p.th, p.s, &p.s.Cache
	if !c.Streaming {
		return p.fill([]string{th.row(p.w, 2, th.p(0, "", "experts are computed from the file's mapping"))})
	}
	per := "a token:"
	if p.of > 0 {
		per = fmt.Sprintf("run %d:", p.of)
	}
	return p.fill([]string{
		p.residency(),
		th.row(p.w, 2, p.cycle(), th.kv(1, "one layer", inMiB(float64(c.LayerWorkingSet))+" MiB")),
		th.row(p.w, 2,
			th.p(1, th.dim, per),
			th.colour(0, th.evicted, "evicted", maybe(c.EvictionsPerTok, sig, "")),
			th.kv(0, "re-read", maybe(c.RereadsPerTok, sig, "")),
			th.colour(0, th.read, "read", maybe(c.ReadPerTok, inMiB, " MiB"))),
		th.row(p.w, 2,
			th.kv(0, "slots", fmt.Sprintf("%d/%d", c.SlotsUsed, c.Slots)),
			th.kv(1, "arena", inMiB(float64(c.Arena))+" MiB"),
			th.kv(2, "all experts", inMiB(float64(s.Model.ExpertBytesAll))+" MiB"),
			th.kv(1, "lookups", fmt.Sprint(c.Lookups))),
	})
}

// residency is the budget as a bar: filled as far as it is used, with a mark
// where one token's experts would fit.
func (p *cachePane) residency() string {
	th, c := p.th, &p.s.Cache
	budget := inMiB(float64(c.Budget)) + " MiB"
	if c.BudgetAuto {
		budget += " auto"
	}
	text := inMiB(float64(c.Resident)) + " / " + budget
	w := min(p.w-len(text)-2, 40)
	if w < 8 || c.Budget <= 0 {
		return th.row(p.w, 2, th.p(0, "", text))
	}
	full := min(int(float64(c.Resident)/float64(c.Budget)*float64(w)+0.5), w)
	mark := -1
	if t := p.s.Model.TokenCycle; t > 0 && t <= c.Budget {
		mark = min(int(float64(t)/float64(c.Budget)*float64(w)), w-1)
	}
	piece := func(from, to int) string {
		in := max(min(full, to)-from, 0)
		return th.hit.on(repeat(th.g.full, in)) + th.dim.on(repeat(th.g.empty, to-from-in))
	}
	bar := piece(0, w)
	if mark >= 0 {
		bar = piece(0, mark) + th.bold.on(th.g.mark) + piece(mark+1, w)
	}
	return th.row(p.w, 2, part{bar, w, 0}, th.p(0, "", text))
}

// cycle says whether the budget holds one token's experts. Below that an LRU
// cache never hits: the entry that goes is the one needed soonest.
func (p *cachePane) cycle() part {
	th, c := p.th, &p.s.Cache
	cycle := inMiB(float64(p.s.Model.TokenCycle)) + " MiB"
	if c.BelowTokenCycle {
		s := "below the token cycle of " + cycle + ": hardly any hits"
		return th.p(0, th.alert, s)
	}
	return th.kv(0, "token cycle", cycle+", holds ("+th.g.mark+")")
}
