package pane

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// mapping shows whether the model file is still mapped, which on some
// hosts decides what the lanes get.
type mapping struct{ base }

func newMapping(b base) Pane { return &mapping{b} }

func (p *mapping) Title(w int) string {
	if p.remote() {
		return p.absent(w, "no file is open here")
	}
	th, m := p.th, &p.s.Mapping
	st := term.Style("")
	switch m.State {
	case profile.MappingReleased:
		st = th.Hit
	case profile.MappingDeclined:
		st = th.Alert
	}
	word := strings.ToUpper(string(m.State))
	if word == "" {
		word = units.NotMeasured
	}
	parts := []term.Part{th.Text(0, st, word)}
	if m.Views > 0 {
		parts = append(parts, th.Text(1, "", units.Size(m.Bytes)+" in "+units.Plural(int64(m.Views), "view")))
	}
	return p.titled(w, parts, parts)
}

func (p *mapping) Rows() (want, most int) {
	if p.remote() {
		return 0, 0
	}
	return 2, 3
}

func (p *mapping) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	if p.remote() {
		return p.fill(nil)
	}
	th, m := p.th, &p.s.Mapping
	rows := []string{th.Row(p.w, 2, p.verdict()...)}
	dense := th.Labelled(0, "dense weights", m.Dense)
	res := th.Labelled(1, "resident", m.DenseResident.Text(func(v float64) string { return units.Percent(v*100) + " %" }, ""))
	rows = append(rows, th.Row(p.w, 2, dense, res))
	if m.Inside != "" {
		rows = append(rows, th.Row(p.w, 2, th.Labelled(0, "inside:", term.CleanLine(m.Inside))))
	}
	return p.fill(rows)
}

// verdict says what the state means for the next release, or why not.
func (p *mapping) verdict() []term.Part {
	th, m := p.th, &p.s.Mapping
	checked := units.NotMeasured
	if m.WeightsChecked.OK {
		checked = fmt.Sprint(m.WeightsChecked.Value)
	}
	inside := units.NotMeasured
	if m.WeightsInside.OK {
		inside = fmt.Sprint(m.WeightsInside.Value)
	}
	counts := th.Text(0, "", checked+" weights checked, "+inside+" inside")
	switch m.State {
	case profile.MappingDeclined:
		return []term.Part{th.Text(0, th.Alert, "declined: "+term.CleanLine(m.Reason))}
	case profile.MappingReleased:
		lanes := th.Text(1, "", "lanes reopened")
		if !m.LanesReopened {
			lanes = th.Text(1, th.Read, "lanes not reopened")
		}
		return []term.Part{counts, lanes}
	case profile.MappingMapped:
		if m.WeightsInside.OK && m.WeightsInside.Value == 0 {
			return []term.Part{counts, th.Text(1, th.Dim, "F2 would release it")}
		}
		if m.WeightsInside.OK {
			return []term.Part{counts, th.Text(1, th.Dim, "F2 would decline")}
		}
		return []term.Part{counts}
	}
	return []term.Part{th.Text(0, th.Dim, "the file is not mapped")}
}
