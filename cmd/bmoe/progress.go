package main

import (
	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/clock"
	"bmoe/internal/units"
	"bmoe/profile"
)

// The lines of --progress are BigMoeOnEdge's (docs/telemetry.md there): a word
// and a JSON object. What was not measured is null, where BigMoeOnEdge has 0 or
// -1, and compute_ms is measured, where it has a residual.

type readyLine struct {
	Load    float64 `json:"load_s"`
	Arch    string  `json:"arch"`
	Ctx     int     `json:"n_ctx"`
	Think   string  `json:"think_ctl"`
	Experts int     `json:"n_expert_used"`
}

type beginLine struct {
	ID int `json:"id"`
}

// prefillLine is ours: BigMoeOnEdge is silent while it reads a prompt.
type prefillLine struct {
	Done    int                    `json:"done"`
	Prompt  int                    `json:"n_prompt"`
	Elapsed float64                `json:"elapsed_s"`
	Left    profile.Maybe[float64] `json:"left_s"`
}

type loadLine struct {
	MB float64 `json:"mb"`
	MS float64 `json:"ms"`
}

type progressLine struct {
	Step          int                    `json:"step"`
	Steps         int                    `json:"steps"`
	Wall          profile.Maybe[float64] `json:"wall_ms"`
	IO            profile.Maybe[float64] `json:"io_ms"`
	Compute       profile.Maybe[float64] `json:"compute_ms"`
	Mgmt          profile.Maybe[float64] `json:"mgmt_ms"`
	Stall         profile.Maybe[float64] `json:"stall_ms"`
	Read          profile.Maybe[float64] `json:"read_mb"`
	Hit           profile.Maybe[float64] `json:"cache_hit_pct"`
	MajorFaults   profile.Maybe[int64]   `json:"majflt"`
	CPU           profile.Maybe[float64] `json:"cpu_ms"`
	DenseResident profile.Maybe[float64] `json:"dense_resident_frac"`
	Reasoning     string                 `json:"delta_reasoning"`
	Text          string                 `json:"delta_text"`
}

type doneLine struct {
	ID          int                    `json:"id"`
	Cancelled   bool                   `json:"cancelled"`
	StopReason  string                 `json:"stop_reason"`
	Tokens      int                    `json:"tokens"`
	TokS        profile.Maybe[float64] `json:"tok_s"`
	Prefill     profile.Maybe[float64] `json:"prefill_s"`
	PrefillTPS  profile.Maybe[float64] `json:"prefill_tps"`
	Load        profile.Maybe[float64] `json:"load_s"`
	Hit         profile.Maybe[float64] `json:"cache_hit_pct"`
	Prompt      int                    `json:"n_prompt"`
	Past        int                    `json:"n_past"`
	Compute     profile.Maybe[float64] `json:"compute_s_tok"`
	IO          profile.Maybe[float64] `json:"io_s_tok"`
	Stall       profile.Maybe[float64] `json:"stall_s_tok"`
	Mgmt        profile.Maybe[float64] `json:"mgmt_s_tok"`
	Other       profile.Maybe[float64] `json:"other_s_tok"`
	StallUnion  profile.Maybe[float64] `json:"stall_union_s_tok"`
	MgmtSerial  profile.Maybe[float64] `json:"mgmt_serial_s_tok"`
	Resident    profile.Maybe[float64] `json:"cache_resident_mib"`
	Budget      profile.Maybe[float64] `json:"cache_budget_mib"`
	Read        profile.Maybe[float64] `json:"read_mib"`
	MajorFaults profile.Maybe[float64] `json:"majflt_tok"`
	CPU         profile.Maybe[float64] `json:"cpu_s_tok"`
	Demand      profile.Maybe[float64] `json:"token_demand_mib"`
	Reasoning   string                 `json:"reasoning"`
	Text        string                 `json:"text"`
	TextSHA256  string                 `json:"text_sha256"`
}

type errorLine struct {
	ID    int    `json:"id"`
	Fatal bool   `json:"fatal"`
	Msg   string `json:"msg"`
}

// runID is the id of the only run that there is.
const runID = 1

// progressReport writes the lines.
type progressReport struct {
	out     *cli.Output
	session backend.Backend
	snap    profile.Snapshot
	seen    int64 // clock.Now of snap

	step          int
	lookups, hits int64 // of the run so far
}

// snapEvery is the least time between two snapshots for the lines of tokens, in
// nanoseconds: what they take from it changes as rarely.
const snapEvery = units.Second / 10

// look takes a snapshot.
func (r *progressReport) look() {
	r.session.Snapshot(&r.snap)
	r.seen = clock.Now()
}

func (r *progressReport) opened(s backend.Backend, loadNanos int64) error {
	r.look()
	m := &r.snap.Model
	ready := readyLine{Load: units.InSeconds(loadNanos), Arch: m.Arch, Ctx: r.snap.Ctx, Think: thinkControl(s), Experts: m.ExpertsUsed}
	if err := r.out.Line("BMOE_READY", ready); err != nil {
		return err
	}
	return r.out.Line("BMOE_BEGIN", beginLine{runID})
}

// thinkControl says how --no-think can be honoured: "template" if passing it on
// is all there is to do, which includes models that do not reason; "none" if
// the template opens a span for reasoning and does not look at the switch.
func thinkControl(b backend.Backend) string {
	if b.Info().Thinking {
		return "template"
	}
	return "none"
}

// prefilled reports a batch of the prompt, and before the first one how many
// tokens there are.
func (r *progressReport) prefilled(done, of int) error {
	r.look()
	return r.out.Line("BMOE_PREFILL", prefillLine{Done: done, Prompt: of, Elapsed: units.InSeconds(r.snap.Elapsed),
		Left: profile.In(r.snap.PrefillLeft(), units.Second)})
}

func (r *progressReport) delta(d backend.Delta) error {
	if d.Token >= 0 {
		r.step++ // otherwise it is what had been held back, at the end
	}
	if clock.Since(r.seen) >= snapEvery {
		r.look()
	}
	line := progressLine{Step: r.step, Steps: r.snap.Steps, Reasoning: d.Reasoning, Text: d.Text, DenseResident: r.snap.Mapping.DenseResident}
	if c := d.Record; c != nil {
		ms := func(ns int64) profile.Maybe[float64] { return profile.Some(units.InMs(ns)) }
		part := func(ns int64) profile.Maybe[float64] { return profile.In(c.Part(ns), units.Millisecond) }
		line.Wall, line.Compute, line.Mgmt = ms(c.Wall), part(c.Compute), part(c.Mgmt)
		line.Stall = profile.In(c.Stall, units.Millisecond)
		line.MajorFaults = c.MajorFaults
		line.CPU = profile.In(c.CPU, units.Millisecond)
		if r.snap.Cache.Streaming {
			r.lookups += c.Lookups
			r.hits += c.Hits
			line.IO, line.Read = ms(c.IO), profile.Some(units.InMiB(c.ExpertBytes))
			line.Hit = profile.Ratio(100*float64(r.hits), float64(r.lookups))
			if c.ExpertBytes > 0 {
				if err := r.out.Line("BMOE_LOAD", loadLine{line.Read.Value, line.IO.Value}); err != nil {
					return err
				}
			}
		}
	}
	return r.out.Line("BMOE_PROGRESS", line)
}

func (r *progressReport) finished(run *backend.Run) error {
	s, sum := &run.Result, &run.Sum
	r.look()
	t := &s.PerToken
	done := doneLine{
		ID: runID, Cancelled: s.StopReason == "cancelled", StopReason: s.StopReason,
		Tokens: s.NGen, TokS: s.DecodeTPS, Prefill: s.TTFT, PrefillTPS: s.PrefillTPS, Load: s.Load,
		Hit: s.Cache.HitPct, Prompt: s.NPrompt - s.NCached, Past: r.snap.CtxUsed,
		Compute: t.Compute, Stall: t.Stall, Mgmt: t.Mgmt, Other: t.Other, StallUnion: t.StallUnion, MgmtSerial: t.MgmtSerial,
		Resident: s.Cache.ResidentMiB, Budget: s.Cache.BudgetMiB,
		MajorFaults: s.Process.MajFltPerToken, CPU: s.Process.CPUPerToken, Demand: s.Cache.TokenCycleMiB,
		Reasoning: s.Reasoning, Text: s.Text, TextSHA256: s.TextSHA256,
	}
	if r.snap.Cache.Streaming {
		done.IO = profile.Ratio(units.InSeconds(sum.IO), float64(sum.Tokens))
		done.Read = profile.Some(units.InMiB(sum.ExpertBytes))
	}
	return r.out.Line("BMOE_DONE", done)
}
