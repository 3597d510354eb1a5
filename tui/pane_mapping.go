package tui

import (
	"fmt"
	"strings"

	"bmoe/profile"
)

// mappingPane shows whether the model file is still mapped, which on some
// hosts decides what the lanes get.
type mappingPane struct{ paneBase }

func (p *mappingPane) Title(w int) string {
	th, m := p.th, &p.s.Mapping
	st := style("")
	switch m.State {
	case profile.MappingReleased:
		st = th.hit
	case profile.MappingDeclined:
		st = th.alert
	}
	word := strings.ToUpper(string(m.State))
	if word == "" {
		word = notMeasured
	}
	parts := []part{th.p(0, st, word)}
	if m.Views > 0 {
		parts = append(parts, th.p(1, "", size(m.Bytes)+" in "+plural(int64(m.Views), "view")))
	}
	return p.titled(w, "4 mapping", parts, parts)
}

func (p *mappingPane) Rows() (want, most int) { return 2, 3 }

func (p *mappingPane) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	th, m := p.th, &p.s.Mapping
	rows := []string{th.row(p.w, 2, p.verdict()...)}
	dense := th.kv(0, "dense weights", m.Dense)
	res := th.kv(1, "resident", maybe(m.DenseResident, func(v float64) string { return percent(v*100) + " %" }, ""))
	rows = append(rows, th.row(p.w, 2, dense, res))
	if m.Inside != "" {
		rows = append(rows, th.row(p.w, 2, th.kv(0, "inside:", cleanLine(m.Inside))))
	}
	return p.fill(rows)
}

// verdict says what the state means for the next release, or why not.
func (p *mappingPane) verdict() []part {
	th, m := p.th, &p.s.Mapping
	checked := notMeasured
	if m.WeightsChecked.OK {
		checked = fmt.Sprint(m.WeightsChecked.Value)
	}
	inside := notMeasured
	if m.WeightsInside.OK {
		inside = fmt.Sprint(m.WeightsInside.Value)
	}
	counts := th.p(0, "", checked+" weights checked, "+inside+" inside")
	switch m.State {
	case profile.MappingDeclined:
		return []part{th.p(0, th.alert, "declined: "+cleanLine(m.Reason))}
	case profile.MappingReleased:
		lanes := th.p(1, "", "lanes reopened")
		if !m.LanesReopened {
			lanes = th.p(1, th.read, "lanes not reopened")
		}
		return []part{counts, lanes}
	case profile.MappingMapped:
		if m.WeightsInside.OK && m.WeightsInside.Value == 0 {
			return []part{counts, th.p(1, th.dim, "F2 would release it")}
		}
		if m.WeightsInside.OK {
			return []part{counts, th.p(1, th.dim, "F2 would decline")}
		}
		return []part{counts}
	}
	return []part{th.p(0, th.dim, "the file is not mapped")}
}
