package pane

import (
	"fmt"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// process shows what the process costs the host, or the server in its place.
type process struct{ base }

func newProcess(b base) Pane { return &process{b} }

func (p *process) Title(w int) string {
	if p.remote() {
		return p.serverTitle(w)
	}
	p.name = p.number + " process"
	th, s := p.th, p.s
	parts := func(unit string) []term.Part {
		return []term.Part{th.Text(0, th.Bold, s.DecodeTPS.Text(units.Sig, unit)), th.Labelled(1, "TTFT", s.TTFT.Text(units.Seconds, "")), th.Labelled(2, "prefill", s.PrefillTPS.Text(units.Sig, unit))}
	}
	return p.titled(w, parts(" tok/s"), parts("/s"))
}

func (p *process) Rows() (want, most int) {
	if p.remote() {
		return 4, 5
	}
	return 3, 5
}

func (p *process) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	if p.remote() {
		return p.fill(p.serverRows())
	}
	th, pr := p.th, &p.s.Process
	// What others do now is one figure, whether they spoiled the run another: the
	// run may be over, and what disturbed it too.
	run := th.Text(0, "", "undisturbed")
	if pr.Disturbed.Any() {
		run = th.Text(0, th.Alert, pr.Disturbed.String())
	} else if !pr.Disturbed.Known() {
		run = th.Labelled(0, "disturbed", units.NotMeasured)
	}
	temp := units.NotMeasured
	if pr.Temperature.OK {
		temp = pr.Temperature.Text(units.Fixed(0), " C")
	}
	rows := []string{
		p.reading(),
		th.Row(p.w, 2,
			th.Labelled(0, "CPU", pr.CPUPerToken.Text(units.Seconds, " a token")),
			th.Labelled(0, "page faults", pr.MajFltPerToken.Text(units.Sig, " a token")),
			th.Labelled(1, "memory", pr.RSS.Text(units.Size, "")),
			th.Labelled(2, "of it our own", pr.RSSAnon.Text(units.Size, ""))),
		th.Row(p.w, 2,
			run,
			th.Labelled(0, "others now", pr.ForeignIO.Text(units.MiBPerSecond, "")+", CPU "+pr.ForeignCPU.Text(units.Percent, " %"))),
		th.Row(p.w, 2,
			th.Labelled(0, "workers", fmt.Sprint(pr.Threads)),
			th.Labelled(1, "temperature", temp),
			th.Labelled(1, "Go's collector", pr.GCPercent.Text(units.Percent, " %")),
			th.Labelled(2, "free memory", pr.AvailableMemory.Text(units.Size, ""))),
		th.Row(p.w, 2, th.Labelled(0, "a full context takes", units.Size(p.s.KV.Bytes)), p.marks()),
	}
	if p.expanded {
		rows = append(append(rows, term.Blanks(p.w)), p.charts(p.h-len(rows)-1, p.figures())...)
	}
	return p.fill(rows)
}

// reading says how fast weights are computed with, beside what memory gives: where the
// two are near, nothing but a smaller model helps.
func (p *process) reading() string {
	th, s := p.th, p.s
	rate, most := profile.Maybe[float64]{}, s.Process.MemoryRate
	if s.Mean.Compute.OK && s.Mean.Compute.Value > 0 && s.Model.TokenBytes > 0 {
		rate = profile.Some(float64(s.Model.TokenBytes) / units.InSeconds(s.Mean.Compute.Value))
	}
	gb := func(v float64) string { return units.Sig(v / units.GB) }
	text := "computes weights at " + rate.Text(gb, "")
	if most.OK {
		text += " of " + gb(most.Value) + " GB/s that memory gives"
		return th.Row(p.w, 2, th.Text(0, "", text))
	}
	return th.Row(p.w, 2, th.Text(0, "", text+" GB/s"), th.Text(1, th.Dim, "memory gives "+units.NotMeasured))
}

// figures are those of tokens that the expanded pane charts.
func (p *process) figures() []figure {
	rate := func(r *profile.Record) profile.Maybe[float64] { return profile.Ratio(1e9, float64(r.Wall)) }
	cpu := func(r *profile.Record) profile.Maybe[float64] {
		return profile.Maybe[float64]{Value: units.InMs(r.CPU.Value), OK: r.CPU.OK}
	}
	faults := func(r *profile.Record) profile.Maybe[float64] {
		return profile.Maybe[float64]{Value: float64(r.MajorFaults.Value), OK: r.MajorFaults.OK}
	}
	return []figure{{name: "tok/s", of: rate, text: units.Sig, st: p.th.Compute}, {name: "CPU ms a token", of: cpu, text: units.Sig, st: p.th.Mgmt},
		{name: "page faults a token", of: faults, text: units.Sig, st: p.th.Read}}
}

// marks says how many places a chat can go back to, where that is not all.
func (p *process) marks() term.Part {
	kv := &p.s.KV
	if kv.MostMarks == 0 {
		return p.th.Labelled(1, "goes back", "anywhere")
	}
	return p.th.Labelled(1, "marks", fmt.Sprintf("%d of %d, %s", kv.Marks, kv.MostMarks, units.Size(kv.MarkBytes)))
}
