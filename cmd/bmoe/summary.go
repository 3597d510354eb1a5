package main

import (
	"fmt"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// summary tells in a few lines what a run cost, and why it took as long as it did.
// say puts mentions of settings in the words of the command line.
func summary(r *profile.Result, say func(string) string) string {
	var b strings.Builder
	if r.Remote != nil {
		remoteSummary(&b, r)
		reasons(&b, r, say)
		return b.String()
	}
	fmt.Fprintf(&b, "\n%s (%s), %s tok/s; prompt %s, %s tok/s; first token after %s s; loaded in %s s\n",
		units.Plural(int64(r.NGen), "token"), stopWords(r.StopReason), show(r.DecodeTPS), units.Plural(int64(r.NPrompt), "token"), show(r.PrefillTPS), show(r.TTFT), show(r.Load))
	t := &r.PerToken
	fmt.Fprintf(&b, "per token %s ms: compute %s, mgmt %s, stall %s, other %s; ceiling %s tok/s\n",
		millis(t.Wall), millis(t.Compute), millis(t.Mgmt), millis(t.Stall), millis(t.Other), show(r.CeilingTPS))
	if c := &r.Cache; c.Policy.OK {
		perToken := func(n profile.Maybe[int64]) string {
			if !n.OK || r.NGen < 2 {
				return units.NotMeasured
			}
			return units.Fine(float64(n.Value) / float64(r.NGen-1)) // the first token comes of the prefill
		}
		fmt.Fprintf(&b, "cache %s %% hits (%s), %s of %s MiB, token cycle %s MiB; a token: %s evicted, %s re-read, %s MiB read\n",
			show(c.HitPct), c.Policy.Value, show(c.ResidentMiB), show(c.BudgetMiB), show(c.TokenCycleMiB),
			perToken(c.Evictions), perToken(c.Rereads), show(r.ReadMiBPerToken))
		if c.Dropped.OK {
			fmt.Fprintf(&b, "LOSSY: of the missing experts %s a token were left out, %s replaced by others\n", perToken(c.Dropped), perToken(c.Substituted))
		}
		mode := units.NotMeasured
		if r.IO.Direct.OK {
			mode = map[bool]string{true: "direct", false: "BUFFERED"}[r.IO.Direct.Value]
		}
		fmt.Fprintf(&b, "lanes %d %s (%s), %s MiB/s, a read p50 %s p99 %s ms; ", r.IO.Lanes.Value, mode, r.IO.Engine.Value,
			show(r.IO.MiBs), show(r.IO.P50), show(r.IO.P99))
	}
	if p := &r.Prefetch; p.UsefulMiB.OK && p.UsefulMiB.Value+p.LateMiB.Value+p.WastedMiB.Value > 0 {
		off := ""
		if p.Off.Value {
			off = "; switched off: tokens take less time without"
		}
		fmt.Fprintf(&b, "read ahead: %s MiB in time, %s late, %s for nothing%s\n", show(p.UsefulMiB), show(p.LateMiB), show(p.WastedMiB), off)
	}
	b.WriteString("mapping " + string(r.Mapping.State))
	if r.Mapping.Reason.OK {
		b.WriteString(": " + term.CleanLine(r.Mapping.Reason.Value))
	}
	b.WriteString("\n")
	reasons(&b, r, say)
	return b.String()
}

// remoteSummary tells what a server's run cost: as seen from here, then as it tells.
func remoteSummary(b *strings.Builder, r *profile.Result) {
	far := r.Remote
	count := func(v profile.Maybe[int64]) string { return v.Text(func(n int64) string { return fmt.Sprint(n) }, "") }
	fmt.Fprintf(b, "\n%s (%s), %s tok/s; first token after %s s; per token %s ms; by %s, %s\n",
		units.Plural(int64(r.NGen), "token"), stopWords(r.StopReason), show(r.DecodeTPS), show(r.TTFT), millis(r.PerToken.Wall), term.CleanLine(far.Server), term.CleanLine(far.Model))
	if !far.Told {
		fmt.Fprintf(b, "the server counts no tokens: each of the %s is taken for one\n", units.Plural(far.Deltas, "delta"))
	}
	fmt.Fprintf(b, "as it tells: prompt %s tokens, %s of them cached; queue %s s, prefill %s s (%s tok/s), decode %s s (%s tok/s); the network there and back %s ms\n",
		count(far.Prompt), count(far.Cached), show(far.Queue), show(far.Prefill), show(far.PrefillTPS), show(far.Decode), show(far.DecodeTPS), millis(far.RoundTrip))
}

// reasons tells what qualifies the figures, and why they are as they are.
func reasons(b *strings.Builder, r *profile.Result, say func(string) string) {
	if q := r.Qualifiers(); q != "" {
		b.WriteString(q + "\n")
	}
	for i := range r.Diagnosis {
		f := &r.Diagnosis[i]
		b.WriteString("- " + term.CleanLine(f.String()) + "\n")
		if f.Action != "" {
			b.WriteString("  > " + term.CleanLine(say(f.Action)) + "\n")
		}
	}
}

// stopWords says why an answer ended.
func stopWords(reason string) string {
	switch reason {
	case "eos":
		return "the model ended"
	case "length":
		return "as many as asked for"
	case "context":
		return "the context is full"
	}
	return reason
}

// show returns a figure with three significant digits.
func show(m profile.Maybe[float64]) string { return m.Text(units.Fine, "") }

// millis returns seconds as milliseconds.
func millis(m profile.Maybe[float64]) string {
	m.Value *= 1e3
	return show(m)
}
