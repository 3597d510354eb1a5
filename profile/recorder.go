package profile

import (
	"sync"

	"bmoe/internal/stats"
)

const (
	// HistoryTokens is how many of the latest records History can give.
	HistoryTokens = 1 << 16
	// chunkTokens is by how many records the history grows: memory is taken as
	// runs ask for it, before their first token, so that decoding allocates nothing.
	chunkTokens = 1 << 10
	// copyTokens is how many records are copied under one lock: a few
	// microseconds, so that a long copy does not hold up a token.
	copyTokens = 64

	// rateWindow is the longest time over which a rate is taken; the shortest is
	// half of it, but for a run's beginning.
	rateWindow = 1_000_000_000 // ns
	// recentTokens is what "now" means for the hit rate.
	recentTokens = 16
)

// Recorder turns readings of counters into a record a token, and keeps the live
// snapshot and the history of records. It asks nobody for anything: whoever
// generates feeds it, from one goroutine. Snapshot and History may be called
// from any goroutine at any time.
type Recorder struct {
	now func() int64

	mu      sync.Mutex
	live    Snapshot
	history [HistoryTokens / chunkTokens]*[chunkTokens]Record // a ring; live.Count records were ever written
	chains  chains

	// The rest is the feeding goroutine's own.
	start Start
	began Reading // at the run's start
	last  Reading // at the latest token
	sum   Record
	walls stats.Histogram // of the run's tokens
	lanes [3]laneReading  // where the windows of rates begin, the older first, and the latest
}

// Start is what a run begins with.
type Start struct {
	Run, Turn int
	Started   int64 // clock.Now when the request came
	Held      int   // positions that the state held before
	Base      int   // of them, those that it kept
	Prompt    int   // prompt tokens to prefill after them
	MaxTokens int   // 0: not known
	Touches   int   // experts that a token is given, all layers together; 0 where misses are not told
	Dropped   int   // turns of the conversation that no longer fit
	// NoStall: experts are read by page faults, so that waiting cannot be told from
	// computing. NoCeiling: other weights are, so that the speed without any waiting
	// is not known.
	NoStall, NoCeiling bool
	// Undivided: see Record. No counters are read but the clock.
	Undivided bool
}

// laneReading is the lanes' counters at one time.
type laneReading struct {
	at     int64
	bytes  [MaxLanes]int64
	served int64
}

// NewRecorder returns a recorder of a session that is loading; now is its clock.
func NewRecorder(now func() int64) *Recorder {
	r := &Recorder{now: now}
	r.live.Phase, r.live.Started = Loading, now()
	return r
}

// Update changes the snapshot's parts that no reading tells: the model, the
// mapping, settings. f must be quick and ask the OS nothing.
func (r *Recorder) Update(f func(live *Snapshot)) {
	r.mu.Lock()
	f(&r.live)
	r.mu.Unlock()
}

// Snapshot copies out all that a screen may know.
func (r *Recorder) Snapshot(dst *Snapshot) {
	r.mu.Lock()
	*dst = r.live
	r.mu.Unlock()
	dst.At = r.now()
	if dst.Phase != Idle {
		dst.Elapsed = dst.At - dst.Started
	}
}

// History copies records into dst, oldest first, beginning with number from (the
// session's first is 0, the latest is Snapshot.Count-1), and returns how many.
// The last HistoryTokens are kept; where from is older than those, the copy
// begins with the oldest kept.
func (r *Recorder) History(from int64, dst []Record) int {
	n := 0
	for n < len(dst) {
		r.mu.Lock()
		at := max(from, r.live.Count-HistoryTokens, 0)
		if n > 0 && at != from { // overwritten while it was being copied: a gap would pass for none
			r.mu.Unlock()
			return n
		}
		to := min(at+copyTokens, at+int64(len(dst)-n), r.live.Count)
		for ; at < to; at++ {
			dst[n] = *r.slot(at)
			n++
		}
		done := at >= r.live.Count
		r.mu.Unlock()
		if done {
			break
		}
		from = at
	}
	return n
}

// slot returns the place of record number i.
func (r *Recorder) slot(i int64) *Record {
	i %= HistoryTokens
	return &r.history[i/chunkTokens][i%chunkTokens]
}

// reserve takes the memory for n more records.
func (r *Recorder) reserve(n int) {
	first := r.live.Count / chunkTokens
	for i := first; i <= (r.live.Count+int64(min(n, HistoryTokens)))/chunkTokens; i++ {
		chunk := &r.history[i%int64(len(r.history))]
		if *chunk == nil {
			fresh := new([chunkTokens]Record)
			r.mu.Lock()
			*chunk = fresh
			r.mu.Unlock()
		}
	}
}

// ForgetLanes begins the lanes' rates anew: they were reopened.
func (r *Recorder) ForgetLanes() { r.lanes = [3]laneReading{} }

// Begin starts a run's account.
func (r *Recorder) Begin(s Start, g *Gauges) {
	r.start, r.began, r.last = s, g.Counters, g.Counters
	r.sum = newSum(&s)
	r.walls.Reset()
	r.lanes[0] = g.lanes()
	r.lanes[1], r.lanes[2] = r.lanes[0], r.lanes[0]
	r.reserve(s.MaxTokens)
	r.mu.Lock()
	r.chains.reserve(int64(min(s.MaxTokens, ChainTokens)) * int64(s.Touches))
	r.mu.Unlock()
	r.Update(func(l *Snapshot) {
		l.Phase, l.Run, l.Step, l.Steps = Prefill, s.Run, 0, s.MaxTokens
		l.Prompt, l.PromptDone, l.Started = s.Prompt, 0, s.Started
		l.CtxUsed = s.Base
		l.Turn, l.Held, l.Kept = s.Turn, s.Held, s.Base
		l.TTFT, l.PrefillTPS, l.DecodeTPS, l.Ceiling = Maybe[int64]{}, Maybe[float64]{}, Maybe[float64]{}, Maybe[float64]{}
		l.DroppedTurns = s.Dropped
		l.Sum, l.Mean = r.sum, Means{}
		l.Wall.P50, l.Wall.P95 = Maybe[int64]{}, Maybe[int64]{}
		l.Cache.HitRun, l.Cache.HitNow = Maybe[float64]{}, Maybe[float64]{}
		l.Cache.WhatIfs = 0
		l.Process.CPUPerToken, l.Process.MajFltPerToken = Maybe[int64]{}, Maybe[float64]{}
		l.Process.Disturbed = Disturbed{}
	})
}

// Prefilled says how many of the run's prompt tokens are done.
func (r *Recorder) Prefilled(done int) {
	r.Update(func(l *Snapshot) {
		if l.Phase == Prefill {
			l.PromptDone = min(done, r.start.Prompt)
		}
	})
}

// First ends the prefill: the first token is there.
func (r *Recorder) First(at *Reading) {
	r.last = *at
	took := at.At - r.start.Started
	r.Update(func(l *Snapshot) {
		l.Phase, l.Step, l.PromptDone = Decode, 1, r.start.Prompt
		l.CtxUsed = r.start.Base + r.start.Prompt
		l.TTFT = Some(took)
		if !r.start.Undivided { // else what it took is not the prefill's alone
			l.PrefillTPS = maybe(stats.PerSecond(int64(r.start.Prompt), took))
		}
	})
}

// Nothing ends a prefill after which the model had nothing to say.
func (r *Recorder) Nothing() {
	took := r.now() - r.start.Started
	r.Update(func(l *Snapshot) {
		l.PromptDone, l.PrefillTPS = r.start.Prompt, maybe(stats.PerSecond(int64(r.start.Prompt), took))
	})
}

// Token records what the token cost that was emitted at a reading, and copies
// its record to dst.
func (r *Recorder) Token(at *Reading, id int32, dst *Record) {
	*dst = cost(&r.last, at)
	r.last = *at
	dst.Run, dst.Turn, dst.Step, dst.Steps, dst.Token = r.start.Run, r.start.Turn, int(r.sum.Tokens)+2, r.start.MaxTokens, id
	if r.start.NoStall || r.start.Undivided {
		dst.Stall, dst.StallUnion = Maybe[int64]{}, Maybe[int64]{}
	}
	dst.Undivided = r.start.Undivided
	if r.start.MaxTokens == 0 {
		r.reserve(1) // nobody knows how many there will be
	}
	r.sum.Add(dst)
	r.walls.Record(dst.Wall)

	r.mu.Lock()
	l := &r.live
	l.Tokens[l.Count%RingTokens] = *dst
	*r.slot(l.Count) = *dst
	l.Count++
	l.Step, l.CtxUsed = dst.Step, r.start.Base+r.start.Prompt+dst.Step-1
	l.Sum, l.Mean = r.sum, r.sum.Means()
	l.DecodeTPS = maybe(stats.PerSecond(r.sum.Tokens, r.sum.Wall))
	l.Ceiling = r.ceiling()
	r.mu.Unlock()
}

func (r *Recorder) ceiling() Maybe[float64] {
	if r.start.NoCeiling || !r.sum.Stall.OK {
		return Maybe[float64]{}
	}
	return maybe(stats.Ceiling(r.sum.Tokens, r.sum.Wall, r.sum.Stall.Value))
}

// Sum returns the costs of the run's decoded tokens so far, added up.
func (r *Recorder) Sum() Record { return r.sum }

// Look renews the parts of the snapshot that need more than a token's reading.
func (r *Recorder) Look(g *Gauges) {
	r.lanes[2] = g.lanes()
	from, to := &r.lanes[0], &r.lanes[2]
	p50, p95 := maybe(r.walls.Quantile(0.5)), maybe(r.walls.Quantile(0.95))

	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.live
	n := r.sum.Tokens
	p := &l.Process
	p.RSS, p.RSSAnon, p.Swap, p.MaxProc = g.RSS, g.RSSAnon, g.Swap, g.MaxProc
	p.ForeignIO, p.ForeignCPU = g.ForeignIO, g.ForeignCPU
	if l.Phase != Idle {
		p.Disturbed = g.Disturbed
	}
	cpu, some := stats.MeanOf(r.sum.CPU.Value, n)
	p.CPUPerToken = maybe(cpu, some && r.sum.CPU.OK)
	p.MajFltPerToken = Maybe[float64]{Value: float64(r.sum.MajorFaults.Value) / float64(max(n, 1)), OK: some && r.sum.MajorFaults.OK}
	l.Wall.P50, l.Wall.P95 = p50, p95
	if !l.Cache.Streaming {
		return
	}
	c := &l.Cache
	c.Resident, c.SlotsUsed, c.Lookups = g.Resident, g.SlotsUsed, g.Counters.Lookups
	c.HitRun = maybe(stats.Percent(r.sum.Hits, r.sum.Lookups))
	c.HitNow = r.recentHits()
	c.EvictionsPerTok = Ratio(float64(r.sum.Evictions), float64(n))
	c.RereadsPerTok = Ratio(float64(r.sum.Rereads), float64(n))
	c.DroppedPerTok, c.ReplacedPerTok = Ratio(float64(r.sum.Dropped), float64(n)), Ratio(float64(r.sum.Substituted), float64(n))
	c.ReadPerTok = Ratio(float64(r.sum.ExpertBytes), float64(n))
	r.whatIf(g)

	a := &l.Lanes
	a.Mode, a.Reason = g.LanesMode, g.LanesReason
	a.Queue = g.Queue
	a.Reads, a.Bytes, a.BusyNanos = g.Counters.Reads-r.began.Reads, g.Counters.WindowBytes-r.began.WindowBytes, g.Counters.Busy-r.began.Busy
	a.RateRun = maybe(stats.PerSecond(a.Bytes, g.Counters.Reading-r.began.Reading))
	a.P50, a.P99, a.Wake50, a.Latency = g.P50, g.P99, g.Wake50, g.Latency
	span := to.at - from.at
	if l.Phase == Idle || span <= 0 {
		return
	}
	a.Rate = maybe(stats.PerSecond(to.served-from.served, span))
	for i := range a.N {
		a.Lane[i].Rate = maybe(stats.PerSecond(to.bytes[i]-from.bytes[i], span))
	}
	if to.at-r.lanes[1].at > rateWindow/2 {
		r.lanes[0], r.lanes[1] = r.lanes[1], *to
	}
}

func (g *Gauges) lanes() laneReading { return laneReading{g.LanesAt, g.LaneBytes, g.LanesServed} }

// recentHits returns the hit rate of the run's last tokens. The lock is held.
func (r *Recorder) recentHits() Maybe[float64] {
	var hits, lookups int64
	for i := range recentTokens {
		rec, ok := r.live.Latest(i)
		if !ok || rec.Run != r.start.Run {
			break
		}
		hits += rec.Hits
		lookups += rec.Lookups
	}
	return maybe(stats.Percent(hits, lookups))
}

// End closes a run's account; ctx is how many positions the state holds.
func (r *Recorder) End(ctx int) {
	now := r.now()
	r.Update(func(l *Snapshot) {
		l.Phase = Idle
		l.Elapsed = now - r.start.Started
		l.CtxUsed = ctx
	})
}
