package engine

import (
	"runtime"
	"slices"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/internal/units"
	"bmoe/profile"
)

// inSeconds returns a time in ns as seconds.
func inSeconds(ns profile.Maybe[int64]) profile.Maybe[float64] {
	return profile.In(ns, units.Second)
}

// fillResult fills in what a run cost, from the meter's sums.
func (s *Session) fillResult(r *profile.Result, run *backend.Run) {
	m := &s.meter
	var live profile.Snapshot
	m.rec.Snapshot(&live)
	sum := &run.Sum
	r.PrefillTPS, r.DecodeTPS = live.PrefillTPS, live.DecodeTPS
	r.TTFT = inSeconds(live.TTFT)
	r.Load = profile.Some(units.InSeconds(m.loaded))
	p, mean := &r.PerToken, &live.Mean
	p.Wall, p.Compute, p.Mgmt, p.Stall = inSeconds(mean.Wall), inSeconds(mean.Compute), inSeconds(mean.Mgmt), inSeconds(mean.Stall)
	p.Other, p.StallUnion, p.MgmtSerial = inSeconds(mean.Other), inSeconds(mean.StallUnion), inSeconds(mean.MgmtSerial)
	r.CeilingTPS = live.Ceiling

	r.Mapping.State = live.Mapping.State
	if live.Mapping.Reason != "" {
		r.Mapping.Reason = profile.Some(live.Mapping.Reason)
	}
	r.Mapping.WeightsInside, r.Mapping.WeightsChecked = live.Mapping.WeightsInside, live.Mapping.WeightsChecked
	r.Process.CPUPerToken = inSeconds(live.Process.CPUPerToken)
	r.Process.MajFltPerToken = live.Process.MajFltPerToken
	r.Process.RSSMiB = profile.In(live.Process.RSS, units.MiB)
	r.Process.GCPct = live.Process.GCPercent
	r.Memory = s.memory()
	r.Config = s.cfg
	r.Diagnosis = append([]profile.Finding{}, profile.Diagnose(&live)...)
	run.Disturbed = live.Process.Disturbed
	r.Flags = []string{}
	if live.Simulated {
		r.Flags = append(r.Flags, "simulated")
	}
	if live.Traced {
		r.Flags = append(r.Flags, "traced")
	}
	r.Flags = append(r.Flags, s.routeFlags()...)
	r.Flags = append(r.Flags, run.Disturbed.Flags()...)
	if s.streamer == nil {
		return
	}
	mibPer := func(bytes int64) profile.Maybe[float64] {
		return profile.Ratio(units.InMiB(bytes), float64(sum.Tokens))
	}
	r.ReadMiBPerToken, r.WindowMiBPerToken = mibPer(sum.ExpertBytes), mibPer(sum.WindowBytes)
	c := &r.Cache
	c.HitPct = live.Cache.HitRun
	c.Lookups, c.Hits = profile.Some(sum.Lookups), profile.Some(sum.Hits)
	c.Evictions, c.Rereads = profile.Some(sum.Evictions), profile.Some(sum.Rereads)
	if s.thrift.on() {
		c.Dropped, c.Substituted = profile.Some(sum.Dropped), profile.Some(sum.Substituted)
	}
	c.ResidentMiB = profile.Some(units.InMiB(live.Cache.Resident))
	c.BudgetMiB = profile.Some(units.InMiB(live.Cache.Budget))
	c.TokenCycleMiB = profile.Some(units.InMiB(live.Model.TokenCycle))
	c.Policy = profile.Some(live.Cache.Policy)
	s.fillPrefetch(r)
	i := &r.IO
	i.Engine, i.Lanes = profile.Some(live.Lanes.Engine), profile.Some(int64(live.Lanes.N))
	i.MiBs = profile.In(live.Lanes.RateRun, units.MiB)
	i.P50, i.P99 = profile.In(live.Lanes.P50, units.Millisecond), profile.In(live.Lanes.P99, units.Millisecond)
	if mode := s.reader.Mode(); !mode.Simulated { // the simulated host reads through the page cache
		i.Direct = profile.Some(mode.Direct)
	}
	i.Reads = profile.Some(live.Lanes.Reads)
}

// fillPrefetch fills in what came of reading ahead in the run.
func (s *Session) fillPrefetch(r *profile.Result) {
	p := &r.Prefetch
	p.By = []profile.Guesses{}
	if !s.streamer.Guesses() {
		return
	}
	now, was := s.streamer.Ahead(), s.aheadBefore
	var sum profile.Guesses
	for i, kind := range expert.Kinds {
		g := profile.Guesses{Kind: kind.Name, UsefulMiB: units.InMiB(now.Useful[i] - was.Useful[i]),
			LateMiB: units.InMiB(now.Late[i] - was.Late[i]), WastedMiB: units.InMiB(now.Wasted[i] - was.Wasted[i])}
		if g.UsefulMiB+g.LateMiB+g.WastedMiB > 0 {
			p.By = append(p.By, g)
		}
		sum.UsefulMiB += g.UsefulMiB
		sum.LateMiB += g.LateMiB
		sum.WastedMiB += g.WastedMiB
	}
	p.UsefulMiB, p.LateMiB, p.WastedMiB = profile.Some(sum.UsefulMiB), profile.Some(sum.LateMiB), profile.Some(sum.WastedMiB)
	p.Off = profile.Some(s.streamer.SwitchedOff())
}

// routeFlags tells of settings that change what the model says.
func (s *Session) routeFlags() []string {
	var flags []string
	if s.lossy() {
		flags = append(flags, "lossy")
	}
	if s.forced != nil {
		flags = append(flags, "forced-route")
	}
	return flags
}

// lossy reports whether settings change what the model says.
func (s *Session) lossy() bool {
	return slices.ContainsFunc(s.Settings(), func(r backend.Setting) bool { return r.Lossy && r.Idle == "" && r.Value != r.Default })
}

// memory returns what the engine has allocated. What the Go runtime holds
// beyond that is told apart, so that the parts account for the process's
// anonymous memory.
func (s *Session) memory() profile.Memory {
	m := profile.Memory{KVMiB: units.InMiB(s.state.Bytes()), ScratchMiB: units.InMiB(s.arch.Scratch())}
	if s.dense != nil {
		m.DenseMiB = units.InMiB(int64(s.dense.Len()))
	}
	if s.streamer != nil {
		m.CacheMiB = units.InMiB(s.streamer.Stats().ArenaBytes)
	}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	m.VocabMiB = units.InMiB(s.text.Bytes())
	held := units.InMiB(int64(ms.Sys - ms.HeapReleased))
	m.RecordsMiB = units.InMiB(s.meter.rec.Bytes())
	m.RuntimeMiB = max(0, held-m.ScratchMiB-m.VocabMiB-m.RecordsMiB)
	return m
}
