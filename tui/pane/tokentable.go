package pane

import (
	"fmt"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// tokenColumns are the figures of the table, the least important dropped first
// where the screen is narrow.
var tokenColumns = []struct {
	name    string
	w, rank int
	get     func(r *profile.Record) string
}{
	{"run.token", 9, 0, func(r *profile.Record) string { return fmt.Sprintf("%d.%d", r.Run, r.Step) }},
	{"wall ms", 7, 0, func(r *profile.Record) string { return units.Ms(r.Wall) }},
	{"compute", 7, 0, func(r *profile.Record) string { return r.Part(r.Compute).Text(units.Ms, "") }},
	{"cache", 6, 2, func(r *profile.Record) string { return r.Part(r.Mgmt).Text(units.Ms, "") }},
	{"waits", 6, 0, func(r *profile.Record) string { return r.Stall.Text(units.Ms, "") }},
	{"sync", 6, 3, func(r *profile.Record) string { return r.Part(r.Other).Text(units.Ms, "") }},
	{"read MiB", 8, 1, func(r *profile.Record) string { return r.Part(r.ExpertBytes).Text(units.Mebibytes[int64], "") }},
	{"hit %", 5, 0, func(r *profile.Record) string {
		return profile.Ratio(100*float64(r.Hits), float64(r.Lookups)).Text(units.Percent, "")
	}},
	{"evict", 5, 0, func(r *profile.Record) string { return r.Part(r.Evictions).Text(whole, "") }},
	{"re-read", 7, 1, func(r *profile.Record) string { return r.Part(r.Rereads).Text(whole, "") }},
}

func whole(n int64) string { return fmt.Sprint(n) }

// tokens lists tokens in figures, the newest first: the latest, or those around the
// picked one.
func (p *timeline) tokens(h int) []string {
	th := p.th
	line := func(st term.Style, cell func(i int) string) string {
		parts := make([]term.Part, len(tokenColumns))
		for i, c := range tokenColumns {
			parts[i] = th.Text(c.rank, st, th.PadLeft(cell(i), c.w))
		}
		return th.Row(p.w, 1, parts...)
	}
	rows := []string{term.Blanks(p.w), line(th.Dim, func(i int) string { return tokenColumns[i].name })}
	get, first, picked := p.s.Latest, 0, -1
	if r := p.picked(); r != nil {
		near := p.lens.Near
		for i := range near {
			if near[i].Run == r.Run && near[i].Step == r.Step {
				picked = i
			}
		}
		first = max(min(picked-(h-2)/2, len(near)-(h-2)), 0)
		get = func(i int) (*profile.Record, bool) {
			if i >= len(near) {
				return nil, false
			}
			return &near[i], true
		}
	}
	for i := first; i < first+h-2; i++ {
		r, ok := get(i)
		if !ok {
			break
		}
		st := term.Style("")
		if i == picked {
			st = th.Selected
		}
		rows = append(rows, line(st, func(i int) string { return tokenColumns[i].get(r) }))
	}
	return rows
}
