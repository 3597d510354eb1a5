package pane

import (
	"fmt"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// diagnosis says why the run is as slow as it is, and which key or command acts
// on it.
type diagnosis struct {
	base
	found []profile.Finding
}

func newDiagnosis(b base) Pane { return &diagnosis{base: b} }

// Apply implements Pane.
func (p *diagnosis) Apply(s *profile.Snapshot, of int) {
	p.base.Apply(s, of)
	p.found = profile.Diagnose(s)
}

func (p *diagnosis) Title(w int) string {
	th := p.th
	part := th.Text(0, th.Dim, "ask something first")
	switch n := len(p.found); {
	case n > 0:
		part = th.Text(0, th.Read, units.Plural(int64(n), "finding"))
	case p.s.Run > 0 && p.s.Phase == profile.Idle:
		part = th.Text(0, "", "nothing found")
	case p.s.Run > 0:
		part = th.Text(0, th.Dim, "too early to tell")
	}
	parts := []term.Part{part}
	if p.of > 0 {
		parts = append(parts, th.Text(1, th.Dim, fmt.Sprintf("of run %d", p.of)))
	}
	return p.titled(w, parts, parts)
}

// Rows wants room for what costs most.
func (p *diagnosis) Rows() (want, most int) {
	n := len(p.lines())
	return min(max(n, 1), 4), max(n, 1)
}

func (p *diagnosis) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	return p.fill(p.lines())
}

// lines are the findings, wrapped: evidence, then what to do.
func (p *diagnosis) lines() []string {
	th := p.th
	var out []string
	add := func(mark string, st term.Style, text string) {
		for i, line := range term.Words(text, p.w-2) {
			head := "  "
			if i == 0 {
				head = mark + " "
			}
			out = append(out, th.Pad(head+st.On(line), p.w))
		}
	}
	for i := range p.found {
		f := &p.found[i]
		add(th.Read.On("!"), "", th.Shown(term.CleanLine(f.String())))
		if f.Action != "" {
			add(" ", th.Bold, th.Shown(term.CleanLine(p.say(f.Action))))
		}
	}
	if len(out) == 0 && p.s.Run > 0 && p.s.Phase == profile.Idle {
		add(" ", th.Dim, "nothing was found that slows it down")
	}
	return out
}
