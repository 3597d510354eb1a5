package engine

import (
	"runtime"

	"bmoe/engine/backend"
	"bmoe/profile"
)

const mibFloat = 1 << 20

// inSeconds returns a time in ns as seconds.
func inSeconds(ns profile.Maybe[int64]) profile.Maybe[float64] {
	return profile.Maybe[float64]{Value: float64(ns.Value) / 1e9, OK: ns.OK}
}

// fillResult fills in what a run cost, from the meter's sums.
func (s *Session) fillResult(r *profile.Result, run *backend.Run) {
	m := &s.meter
	var live profile.Snapshot
	m.rec.Snapshot(&live)
	sum := &run.Sum
	r.PrefillTPS, r.DecodeTPS = live.PrefillTPS, live.DecodeTPS
	r.TTFT = inSeconds(live.TTFT)
	r.Load = profile.Some(float64(m.loaded) / 1e9)
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
	r.Process.RSSMiB = profile.Maybe[float64]{Value: float64(live.Process.RSS.Value) / mibFloat, OK: live.Process.RSS.OK}
	r.Process.GCPct = live.Process.GCPercent
	r.Memory = s.memory()
	r.Config = s.cfg
	run.Disturbed = live.Process.Disturbed
	r.Flags = []string{}
	if live.Simulated {
		r.Flags = append(r.Flags, "simulated")
	}
	r.Flags = append(r.Flags, run.Disturbed.Flags()...)
	if s.streamer == nil {
		return
	}
	mibPer := func(bytes int64) profile.Maybe[float64] {
		return profile.Ratio(float64(bytes)/mibFloat, float64(sum.Tokens))
	}
	r.ReadMiBPerToken, r.WindowMiBPerToken = mibPer(sum.ExpertBytes), mibPer(sum.WindowBytes)
	c := &r.Cache
	c.HitPct = live.Cache.HitRun
	c.Lookups, c.Hits = profile.Some(sum.Lookups), profile.Some(sum.Hits)
	c.Evictions, c.Rereads = profile.Some(sum.Evictions), profile.Some(sum.Rereads)
	c.ResidentMiB = profile.Some(float64(live.Cache.Resident) / mibFloat)
	c.BudgetMiB = profile.Some(float64(live.Cache.Budget) / mibFloat)
	c.TokenCycleMiB = profile.Some(float64(live.Model.TokenCycle) / mibFloat)
	c.Policy = profile.Some(live.Cache.Policy)
	i := &r.IO
	i.Engine, i.Lanes = profile.Some(live.Lanes.Engine), profile.Some(int64(live.Lanes.N))
	if live.Lanes.RateRun.OK {
		i.MiBs = profile.Some(live.Lanes.RateRun.Value / mibFloat)
	}
	ms := func(v profile.Maybe[int64]) profile.Maybe[float64] {
		return profile.Maybe[float64]{Value: float64(v.Value) / 1e6, OK: v.OK}
	}
	i.P50, i.P99 = ms(live.Lanes.P50), ms(live.Lanes.P99)
	if mode := s.reader.Mode(); !mode.Simulated { // the simulated host reads through the page cache
		i.Direct = profile.Some(mode.Direct)
	}
	i.Reads = profile.Some(live.Lanes.Reads)
}

// memory returns what the engine has allocated. What the Go runtime holds
// beyond that is told apart, so that the parts account for the process's
// anonymous memory.
func (s *Session) memory() profile.Memory {
	inMiB := func(n int64) float64 { return float64(n) / mibFloat }
	m := profile.Memory{KVMiB: inMiB(s.state.Bytes()), ScratchMiB: inMiB(s.arch.Scratch())}
	if s.dense != nil {
		m.DenseMiB = inMiB(int64(s.dense.Len()))
	}
	if s.streamer != nil {
		m.CacheMiB = inMiB(s.streamer.Stats().ArenaBytes)
	}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	m.VocabMiB = inMiB(s.text.Bytes())
	held := float64(ms.Sys-ms.HeapReleased) / mibFloat
	m.RuntimeMiB = max(0, held-m.ScratchMiB-m.VocabMiB)
	return m
}
