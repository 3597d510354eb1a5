package profile

import (
	"sync"
	"testing"
)

// script feeds a recorder with readings of two workers on a clock of its own.
type script struct {
	rec *Recorder
	now int64
	at  Reading
}

func newScript() *script {
	s := &script{}
	s.rec = NewRecorder(func() int64 { return s.now })
	s.at = Reading{Workers: 2, MajorFaults: Some[int64](5), CPU: Some[int64](0)}
	s.rec.Update(func(l *Snapshot) { l.Phase, l.Cache.Streaming, l.Lanes.N = Idle, true, 2 })
	return s
}

// pass lets time pass in which worker 0 computes, works on the cache and stalls
// as given, and worker 1 computes as long and waits for the rest.
func (s *script) pass(compute, mgmt, stall int64) *Reading {
	r := &s.at
	r.Compute += 2 * compute
	r.Mgmt += mgmt
	r.MgmtSerial += mgmt
	r.Stall += stall
	r.StallUnion += stall
	r.Other += mgmt + stall
	s.now += compute + mgmt + stall
	r.At = s.now
	return r
}

func (s *script) begin(o Start) {
	o.Started = s.now
	s.rec.Begin(o, &Gauges{Counters: s.at, LanesAt: s.now})
}

func (s *script) snapshot() *Snapshot {
	var dst Snapshot
	s.rec.Snapshot(&dst)
	return &dst
}

func TestARunIsRecorded(t *testing.T) {
	s := newScript()
	s.begin(Start{Run: 1, Turn: 1, Base: 10, Prompt: 20, MaxTokens: 3})
	s.pass(500e6, 0, 0)
	s.rec.Prefilled(7)
	if l := s.snapshot(); l.Phase != Prefill || l.PromptDone != 7 || l.CtxUsed != 10 || l.Elapsed != 500e6 || l.Mean.Wall.OK {
		t.Errorf("in prefill: %+v", l)
	}
	s.rec.First(s.pass(500e6, 0, 0))
	var r Record
	for range 2 {
		s.at.ExpertBytes += 100
		s.at.Lookups += 10
		s.at.Hits += 4
		s.rec.Token(s.pass(6e6, 2e6, 4e6), 77, &r)
	}
	want := Record{Run: 1, Turn: 1, Step: 3, Steps: 3, Token: 77, Wall: 12e6, Compute: 6e6, Mgmt: 1e6, MgmtSerial: 2e6, Stall: Some[int64](2e6), StallUnion: Some[int64](4e6), Other: 3e6,
		ExpertBytes: 100, Lookups: 10, Hits: 4, MajorFaults: Some[int64](0), CPU: Some[int64](0)}
	if r != want {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	s.rec.Look(&Gauges{Counters: s.at, LanesAt: s.now, Disturbed: Disturbed{CPU: Some(true)}})
	s.rec.End(32)
	l := s.snapshot()
	if l.Phase != Idle || l.TTFT != Some[int64](1e9) || l.PrefillTPS != Some(20.0) || l.CtxUsed != 32 || l.Elapsed != 1024e6 {
		t.Errorf("after the run: %+v", l)
	}
	if l.Mean.Wall != Some[int64](12e6) || l.Mean.MgmtSerial != Some[int64](2e6) || l.Ceiling != Some(100.0) || l.DecodeTPS.Value < 83.3 || l.DecodeTPS.Value > 83.4 {
		t.Errorf("means %+v, ceiling %v, %v tokens/s", l.Mean, l.Ceiling, l.DecodeTPS)
	}
	if p := l.Wall.P50.Value; !l.Wall.P50.OK || p < 11.9e6 || p > 12.1e6 || l.Cache.HitRun != Some(40.0) || l.Cache.HitNow != Some(40.0) || !l.Process.Disturbed.Any() {
		t.Errorf("p50 %v, hits %v %v, disturbed %+v", l.Wall.P50, l.Cache.HitRun, l.Cache.HitNow, l.Process.Disturbed)
	}
	// What others do once a run is over says nothing of the run.
	s.rec.Look(&Gauges{Counters: s.at, LanesAt: s.now, ForeignCPU: Some(80.0)})
	if l := s.snapshot(); l.Process.Disturbed.String() != "disturbed: CPU" || l.Process.ForeignCPU != Some(80.0) {
		t.Errorf("later: %q, %v", l.Process.Disturbed, l.Process.ForeignCPU)
	}
}

// Reads that are page faults cannot be told from computing, and a token that
// waits for other mapped weights too has no known ceiling.
func TestStallAndCeilingThatNobodyMeasured(t *testing.T) {
	for _, c := range []struct {
		start                Start
		stall, union, ceilng bool
	}{{Start{}, true, true, true}, {Start{NoStall: true, NoCeiling: true}, false, false, false}, {Start{NoCeiling: true}, true, true, false}} {
		s := newScript()
		c.start.MaxTokens = 2
		s.begin(c.start)
		s.rec.First(s.pass(1e6, 0, 0))
		var r Record
		s.rec.Token(s.pass(1e6, 0, 1e6), 1, &r)
		l := s.snapshot()
		if r.Stall.OK != c.stall || r.StallUnion.OK != c.union || l.Mean.Stall.OK != c.stall || l.Mean.StallUnion.OK != c.union || l.Ceiling.OK != c.ceilng {
			t.Errorf("%+v: %+v, means %+v, ceiling %v", c.start, r, l.Mean, l.Ceiling)
		}
	}
}

func TestRatesAreOfTheLastSecond(t *testing.T) {
	s := newScript()
	s.begin(Start{Run: 1, MaxTokens: 1})
	g := Gauges{Counters: s.at}
	for i := range int64(40) { // 100 bytes a tenth of a second, and 300 from the third second on
		s.now += 100e6
		n := int64(100)
		if i >= 30 {
			n = 300
		}
		g.LaneBytes[0] += n / 2
		g.LaneBytes[1] += n / 2
		g.LanesServed += n
		g.LanesAt = s.now
		s.rec.Look(&g)
		if i == 25 {
			if l := s.snapshot().Lanes; l.Rate != Some(1000.0) || l.Lane[1].Rate != Some(500.0) {
				t.Errorf("%v, of a lane %v", l.Rate, l.Lane[1].Rate)
			}
		}
	}
	if l := s.snapshot().Lanes; l.Rate != Some(3000.0) || l.Lane[0].Rate != Some(1500.0) || l.Lane[2].Rate.OK {
		t.Errorf("%v, of a lane %v and %v", l.Rate, l.Lane[0].Rate, l.Lane[2].Rate)
	}
}

func TestHistoryKeepsTheLast(t *testing.T) {
	s := newScript()
	var r Record
	if n := s.rec.History(0, make([]Record, 4)); n != 0 {
		t.Errorf("%d records before the first token", n)
	}
	decode := func(run, tokens int) {
		s.begin(Start{Run: run, MaxTokens: tokens + 1})
		s.rec.First(s.pass(1, 0, 0))
		for i := range tokens {
			s.rec.Token(s.pass(1, 0, 0), int32(i), &r)
		}
		s.rec.End(0)
	}
	decode(1, 10)
	decode(2, 5)
	dst := make([]Record, 100)
	if n := s.rec.History(8, dst); n != 7 || dst[0].Run != 1 || dst[0].Token != 8 || dst[2].Run != 2 || dst[6].Token != 4 {
		t.Errorf("%d records, %+v", n, dst[:n])
	}
	if n := s.rec.History(8, dst[:3]); n != 3 || dst[2].Run != 2 {
		t.Errorf("%d records, %+v", n, dst[:n])
	}
	if n := s.rec.History(15, dst); n != 0 {
		t.Errorf("%d records of the future", n)
	}
	decode(3, HistoryTokens+500)
	dst = make([]Record, HistoryTokens+100)
	n := s.rec.History(0, dst)
	if n != HistoryTokens || dst[0].Token != 500 || dst[n-1].Token != HistoryTokens+499 {
		t.Errorf("%d records, the first %+v", n, dst[0])
	}
	for i := range n {
		if dst[i].Token != int32(500+i) {
			t.Fatalf("record %d is of token %d", i, dst[i].Token)
		}
	}
}

// A copy of the history beside a run holds whole records without a gap.
func TestHistoryBesideARun(t *testing.T) {
	s := newScript()
	const tokens = 20000
	s.begin(Start{Run: 1, MaxTokens: tokens + 1})
	s.rec.First(s.pass(1, 0, 0))
	var all sync.WaitGroup
	all.Go(func() {
		dst := make([]Record, tokens)
		for n := 0; n < tokens; {
			n = s.rec.History(0, dst)
			for i := range n {
				if dst[i].Token != int32(i) || dst[i].Step != i+2 {
					t.Errorf("record %d is %+v", i, dst[i])
					return
				}
			}
		}
	})
	var r Record
	for i := range tokens {
		s.rec.Token(s.pass(1, 0, 0), int32(i), &r)
	}
	all.Wait()
}

func TestRecordingAllocatesNothing(t *testing.T) {
	s := newScript()
	s.begin(Start{Run: 1, MaxTokens: 3000})
	s.rec.First(s.pass(1, 0, 0))
	var r Record
	g := Gauges{Counters: s.at}
	if n := testing.AllocsPerRun(2000, func() {
		s.rec.Token(s.pass(1, 0, 0), 1, &r)
		s.rec.Look(&g)
	}); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

// BenchmarkToken is what recording adds to a token, less the readings.
func BenchmarkToken(b *testing.B) {
	s := newScript()
	s.begin(Start{Run: 1, MaxTokens: HistoryTokens})
	s.rec.First(s.pass(1, 0, 0))
	var r Record
	for b.Loop() {
		s.rec.Token(s.pass(1000, 100, 100), 1, &r)
	}
}
