package tui

import (
	"fmt"

	"bmoe/profile"
)

// processPane shows what the process costs the host.
type processPane struct{ paneBase }

func (p *processPane) Title(w int) string {
	th, s := p.th, p.s
	return p.titled(w, "5 process",
		th.p(0, "", maybe(s.DecodeTPS, sig)+" tok/s"),
		th.kv(1, "TTFT", maybeSeconds(s.TTFT)),
		th.kv(2, "prefill", maybe(s.PrefillTPS, sig)+" tok/s"))
}

func (p *processPane) Rows() (want, most int) { return 2, 3 }

func (p *processPane) Render() []string {
	th, pr := p.th, &p.s.Process
	foreign := th.kv(0, "others on the drive", maybe(pr.ForeignIO, inMiBs))
	if pr.Contended {
		foreign = th.p(0, th.alert, "CONTENDED: others move "+maybe(pr.ForeignIO, inMiBs))
	}
	temp := notMeasured
	if pr.Temperature.OK {
		temp = fmt.Sprintf("%.0f C", pr.Temperature.Value)
	}
	return p.fill([]string{
		th.row(p.w, 2,
			th.kv(0, "CPU", maybeSeconds(pr.CPUPerToken)+"/token"),
			th.kv(0, "majflt", maybe(pr.MajFltPerToken, sig)+"/token"),
			th.kv(1, "RSS", maybeSize(pr.RSS)),
			th.kv(2, "anon", maybeSize(pr.RSSAnon))),
		th.row(p.w, 2, foreign,
			th.kv(1, "GC", maybe(pr.GCPercent, percent)+" %"),
			th.kv(2, "free RAM", maybeSize(pr.AvailableMemory))),
		th.row(p.w, 2,
			th.kv(0, "workers", fmt.Sprint(pr.Threads)),
			th.kv(1, "GOMAXPROCS", fmt.Sprint(pr.MaxProc)),
			th.kv(1, "temperature", temp)),
	})
}

func maybeSeconds(ns profile.Maybe[int64]) string {
	if !ns.OK {
		return notMeasured
	}
	return seconds(ns.Value)
}

func maybeSize(b profile.Maybe[int64]) string {
	if !b.OK {
		return notMeasured
	}
	return size(b.Value)
}
