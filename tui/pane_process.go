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

func (p *processPane) Rows() (want, most int) { return 2, 3 }

func (p *processPane) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	th, pr := p.th, &p.s.Process
	foreign := th.kv(0, "others on the drive", maybe(pr.ForeignIO, inMiBs, ""))
	if pr.Contended {
		foreign = th.p(0, th.alert, "CONTENDED: others move "+maybe(pr.ForeignIO, inMiBs, ""))
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
		th.row(p.w, 2, foreign,
			th.kv(1, "GC", maybe(pr.GCPercent, percent, " %")),
			th.kv(2, "free RAM", maybe(pr.AvailableMemory, size, ""))),
		th.row(p.w, 2,
			th.kv(0, "workers", fmt.Sprint(pr.Threads)),
			th.kv(1, "GOMAXPROCS", fmt.Sprint(pr.MaxProc)),
			th.kv(1, "temperature", temp)),
	})
}
