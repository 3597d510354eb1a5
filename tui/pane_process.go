package tui

import "fmt"

// processPane shows what the process costs the host.
type processPane struct{ paneBase }

func (p *processPane) Title(w int) string {
	th, s := p.th, p.s
	parts := func(unit string) []part {
		return []part{th.kv(0, "decode", maybe(s.DecodeTPS, sig, unit)), th.kv(1, "TTFT", maybe(s.TTFT, seconds, "")), th.kv(2, "prefill", maybe(s.PrefillTPS, sig, unit))}
	}
	return p.titled(w, "5 process", parts(" tok/s"), parts("/s"))
}

func (p *processPane) Rows() (want, most int) { return 2, 4 }

func (p *processPane) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	th, pr := p.th, &p.s.Process
	// What others do now is one figure, whether they spoiled the run another: the
	// run may be over, and what disturbed it too.
	run := th.p(0, "", "undisturbed")
	if pr.Disturbed.Any() {
		run = th.p(0, th.alert, pr.Disturbed.String())
	} else if !pr.Disturbed.Known() {
		run = th.kv(0, "disturbed", notMeasured)
	}
	temp := notMeasured
	if pr.Temperature.OK {
		temp = fmt.Sprintf("%.0f C", pr.Temperature.Value)
	}
	return p.fill([]string{
		th.row(p.w, 2,
			th.kv(0, "CPU", maybe(pr.CPUPerToken, seconds, "/token")),
			th.kv(0, "majflt", maybe(pr.MajFltPerToken, sig, "/token")),
			th.kv(1, "RSS", maybe(pr.RSS, size, "")),
			th.kv(2, "anon", maybe(pr.RSSAnon, size, ""))),
		th.row(p.w, 2,
			run,
			th.kv(0, "others now", maybe(pr.ForeignIO, inMiBs, "")+", CPU "+maybe(pr.ForeignCPU, percent, " %"))),
		th.row(p.w, 2,
			th.kv(0, "workers", fmt.Sprint(pr.Threads)),
			th.kv(1, "GOMAXPROCS", fmt.Sprint(pr.MaxProc)),
			th.kv(1, "temperature", temp),
			th.kv(2, "GC", maybe(pr.GCPercent, percent, " %")),
			th.kv(2, "free RAM", maybe(pr.AvailableMemory, size, ""))),
		th.row(p.w, 2, th.kv(0, "KV of a full context", size(p.s.KV.Bytes)), p.marks()),
	})
}

// marks says how many places a chat can go back to, where that is not all.
func (p *processPane) marks() part {
	kv := &p.s.KV
	if kv.MostMarks == 0 {
		return p.th.kv(1, "goes back", "anywhere")
	}
	return p.th.kv(1, "marks", fmt.Sprintf("%d of %d, %s", kv.Marks, kv.MostMarks, size(kv.MarkBytes)))
}
