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
	if m.Views > 0 {
		word += " " + units.Size(m.Bytes)
	}
	parts := []term.Part{th.Text(0, st, word)}
	if m.State == profile.MappingMapped && m.WeightsInside.OK {
		safe := "safe to release"
		if m.WeightsInside.Value > 0 {
			safe = "in use: cannot be released"
		}
		parts = append(parts, th.Text(1, "", safe))
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
	dense := th.Labelled(0, "other weights", denseWords[m.Dense])
	res := th.Labelled(1, "in RAM", m.DenseResident.Text(units.Share, ""))
	rows = append(rows, th.Row(p.w, 2, dense, res))
	if m.Inside != "" {
		rows = append(rows, th.Row(p.w, 2, th.Labelled(0, "inside:", term.CleanLine(m.Inside))))
	}
	return p.fill(rows)
}

// denseWords say where weights other than experts are, by the dense policy.
var denseWords = map[string]string{"anon": "in memory of our own", "mmap": "in the mapping", "warm": "in the mapping, read once", "": units.NotMeasured}

// verdict says what the state means for the next release, or why not.
func (p *mapping) verdict() []term.Part {
	th, m := p.th, &p.s.Mapping
	counts := th.Text(0, "", "weights not checked")
	if m.WeightsChecked.OK && m.WeightsInside.OK {
		inside := "none is inside"
		if n := m.WeightsInside.Value; n > 0 {
			inside = fmt.Sprintf("%d inside", n)
		}
		counts = th.Text(0, "", units.Plural(m.WeightsChecked.Value, "weight")+" checked, "+inside)
	}
	switch m.State {
	case profile.MappingDeclined:
		return []term.Part{th.Text(0, th.Alert, "declined: "+term.CleanLine(m.Reason))}
	case profile.MappingReleased:
		lanes := th.Text(1, "", "unmapped, closed, lanes reopened")
		if !m.LanesReopened {
			lanes = th.Text(1, th.Read, "unmapped, closed, lanes not reopened")
		}
		return []term.Part{lanes, counts}
	case profile.MappingMapped:
		if m.WeightsInside.OK && m.WeightsInside.Value == 0 {
			return []term.Part{counts, th.Text(1, th.Dim, p.say("{release-mmap=on}")+" releases it")}
		}
		return []term.Part{counts}
	}
	return []term.Part{th.Text(0, th.Dim, "the file is not mapped")}
}
