package pane

import (
	"fmt"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// Where a server computes, the pane of our process shows the server instead: what it
// tells of the run and of its load. Panes of what only the local engine has say that
// they have nothing, and leave their rows to the others.

// remote reports whether a server computes.
func (p *base) remote() bool { return p.s.Remote.Server != "" }

// absent is the title of a pane that a server has nothing for.
func (p *base) absent(w int, why string) string {
	parts := []term.Part{p.th.Text(0, p.th.Dim, units.NotMeasured+": "+why)}
	return p.titled(w, parts, parts)
}

func (p *process) serverTitle(w int) string {
	th, r := p.th, &p.s.Remote
	p.name = p.number + " server"
	who := th.Text(0, "", term.CleanLine(r.Server))
	figures := func(unit string) []term.Part {
		return []term.Part{who, th.Labelled(0, "decode", p.s.DecodeTPS.Text(units.Sig, unit)), th.Labelled(1, "TTFT", p.s.TTFT.Text(units.Seconds, ""))}
	}
	return p.titled(w, figures(" tok/s"), figures("/s"))
}

func (p *process) serverRows() []string {
	th, r := p.th, &p.s.Remote
	run, load := &r.Run, &r.Load
	seconds := func(v profile.Maybe[float64]) string {
		return v.Text(func(s float64) string { return units.Seconds(int64(s * units.Second)) }, "")
	}
	count := func(v profile.Maybe[int64]) string { return v.Text(func(n int64) string { return fmt.Sprint(n) }, "") }
	rows := []string{
		th.Row(p.w, 2,
			th.Labelled(0, "queue", seconds(run.Queue)),
			th.Labelled(0, "prefill", seconds(run.Prefill)),
			th.Labelled(0, "decode", seconds(run.Decode)),
			th.Labelled(1, "loading", seconds(run.Load)),
			th.Text(2, th.Dim, "as it tells")),
		th.Row(p.w, 2,
			th.Labelled(0, "there: prefill", run.PrefillTPS.Text(units.Sig, "")),
			th.Labelled(0, "decode", run.DecodeTPS.Text(units.Sig, " tok/s")),
			th.Labelled(0, "net", r.RoundTrip.Text(units.Ms, " ms"))),
		th.Row(p.w, 2, p.counted()...),
	}
	if load.Known {
		rows = append(rows, th.Row(p.w, 2,
			th.Labelled(0, "running", count(load.Running)),
			th.Labelled(0, "waiting", count(load.Waiting)),
			th.Labelled(0, "KV", load.KV.Text(units.Percent, " %")),
			th.Labelled(1, "cache hits", load.CacheHit.Text(units.Percent, " %"))))
	} else {
		why := load.Why
		if why == "" {
			why = "its metrics have not been asked for yet"
		}
		rows = append(rows, th.Row(p.w, 2, th.Labelled(0, "load", units.NotMeasured+": "+term.CleanLine(why))))
	}
	return append(rows, th.Row(p.w, 2, th.Labelled(0, "at", term.CleanLine(r.Address)), th.Labelled(1, "model", term.CleanLine(p.s.Model.Name))))
}

// counted says of the prompt's and the answer's tokens, and who counted them.
func (p *process) counted() []term.Part {
	th, run := p.th, &p.s.Remote.Run
	if p.s.Phase != profile.Idle || p.s.Run == 0 {
		return []term.Part{th.Labelled(0, "tokens", units.NotMeasured), th.Text(1, th.Dim, "counted at the end of an answer")}
	}
	if !run.Told {
		return []term.Part{th.Labelled(0, "deltas", fmt.Sprint(run.Deltas)), th.Text(0, th.Dim, "each taken for a token: it counts none")}
	}
	cached := run.Cached.Text(func(n int64) string { return fmt.Sprint(n) }, "")
	return []term.Part{
		th.Labelled(0, "prompt", fmt.Sprint(run.Prompt.Value)), th.Labelled(0, "cached", cached),
		th.Labelled(0, "answer", fmt.Sprintf("%d in %s", p.s.Step, units.Plural(run.Deltas, "delta"))),
	}
}
