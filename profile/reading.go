package profile

// Reading is what the engine's counters said at one instant. Times are
// nanoseconds, sizes bytes. Counters only grow, so a cost is the difference of
// two readings.
type Reading struct {
	At      int64 // clock.Now
	Workers int   // that the next four are summed over

	Compute, Mgmt, Stall, Other int64 // time in each state, summed over the workers
	StallUnion                  int64 // time during which at least one worker stalled
	MgmtSerial                  int64 // worker 0's own time in mgmt

	Busy    int64 // lanes' time inside reads, summed over lanes
	Reading int64 // time with at least one read in flight

	ExpertBytes, WindowBytes, Reads   int64
	Lookups, Hits, Evictions, Rereads int64
	Dropped, Substituted              int64

	MajorFaults, CPU Maybe[int64]
}

// Gauges is what is read now and then, not for every token: it costs more than
// a few loads.
type Gauges struct {
	Counters Reading

	RSS, RSSAnon Maybe[int64]
	Swap         Maybe[int64]
	ForeignIO    Maybe[float64] // see Process
	ForeignCPU   Maybe[float64]
	Disturbed    Disturbed
	MaxProc      int

	Resident    int64 // slot bytes of the experts in the cache
	SlotsUsed   int
	P50, P99    Maybe[int64]       // of the reads' latency
	Latency     [LatencyBins]int64 // reads of the run by their latency
	Wake50      Maybe[int64]
	Queue       int
	LanesAt     int64 // clock.Now of the next two
	LaneBytes   [MaxLanes]int64
	LanesServed int64 // bytes, over all lanes
	LanesMode   string
	LanesReason string

	WhatIf  [MostWhatIfs]Lookups
	WhatIfs int // of them
}

// cost returns what a token cost between two readings.
func cost(from, to *Reading) Record {
	workers := int64(max(to.Workers, 1))
	part := func(a, b int64) int64 { return (b - a) / workers }
	diff := func(a, b Maybe[int64]) Maybe[int64] { return Maybe[int64]{b.Value - a.Value, a.OK && b.OK} }
	return Record{
		Wall:    to.At - from.At,
		Compute: part(from.Compute, to.Compute), Mgmt: part(from.Mgmt, to.Mgmt), Other: part(from.Other, to.Other),
		MgmtSerial: to.MgmtSerial - from.MgmtSerial,
		Stall:      Some(part(from.Stall, to.Stall)), StallUnion: Some(to.StallUnion - from.StallUnion),
		IO: to.Busy - from.Busy, ExpertBytes: to.ExpertBytes - from.ExpertBytes, WindowBytes: to.WindowBytes - from.WindowBytes, Reads: to.Reads - from.Reads,
		Lookups: to.Lookups - from.Lookups, Hits: to.Hits - from.Hits, Evictions: to.Evictions - from.Evictions, Rereads: to.Rereads - from.Rereads,
		Dropped: to.Dropped - from.Dropped, Substituted: to.Substituted - from.Substituted,
		MajorFaults: diff(from.MajorFaults, to.MajorFaults), CPU: diff(from.CPU, to.CPU),
	}
}
