package engine

import (
	"context"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/expert/policy"
	"bmoe/profile"
)

// TestExperts: the map agrees with the cache and with the run's own account, while
// somebody looks at it all the time.
func TestExperts(t *testing.T) {
	cfg := demoConfig()
	cfg.Cache = Budget{Bytes: 3 << 20}
	s := open(t, cfg)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		var m profile.ExpertMap
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				s.Experts(&m)
				for i := range m.Cells {
					if c := &m.Cells[i]; c.Used > m.Token || c.Reads > c.Uses {
						t.Errorf("token %d: %+v", m.Token, *c)
						return
					}
				}
			}
		}
	}()
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 48})
	close(stop)
	<-stopped
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	var m profile.ExpertMap
	s.Experts(&m)
	var uses, reads, resident, compute, mgmt, stall int64
	for i := range m.Layers {
		u, r, n := m.Totals(i)
		uses, reads, resident = uses+u, reads+r, resident+int64(n)
		l := &m.Layers[i]
		compute, mgmt, stall = compute+l.Compute, mgmt+l.Mgmt, stall+l.Stall
		if l.Tokens != run.Sum.Tokens || l.Compute <= 0 {
			t.Errorf("layer %d: %+v of %d tokens", i, *l, run.Sum.Tokens)
		}
	}
	st := s.streamer.Stats()
	if uses != st.Lookups || reads != st.Lookups-st.Hits || resident != int64(st.SlotsUsed) {
		t.Errorf("%d uses, %d reads, %d resident; the cache counts %d, %d, %d", uses, reads, resident, st.Lookups, st.Lookups-st.Hits, st.SlotsUsed)
	}
	for k := range m.Cells {
		if in := s.streamer.Directory().IsResident(policy.Key(k)); in != (m.Cells[k].State == profile.Resident) {
			t.Errorf("expert %d: %+v, resident: %v", k, m.Cells[k], in)
		}
	}
	// All waiting and all of the cache's work is the layers'; computing is but for the head.
	sum := &run.Sum
	if !m.Timed || m.NoStall || stall < sum.Stall.Value*98/100 || stall > sum.Stall.Value || mgmt > sum.Mgmt || compute > sum.Compute || compute < sum.Compute/3 {
		t.Errorf("layers: stall %d, mgmt %d, compute %d; the run's %d, %d, %d", stall, mgmt, compute, sum.Stall.Value, sum.Mgmt, sum.Compute)
	}
	var live profile.Snapshot
	s.Snapshot(&live)
	read := int64(0)
	for _, n := range live.Lanes.Latency {
		read += n
	}
	if read < live.Lanes.Reads || live.Lanes.Reads == 0 { // those of guesses are not counted there until they are demanded
		t.Errorf("%d reads by latency, %d in all", read, live.Lanes.Reads)
	}
	if n := testing.AllocsPerRun(20, func() { s.Experts(&m) }); n != 0 {
		t.Errorf("%v allocations for a look", n)
	}
}

// BenchmarkLayerTimes measures the readings of the accounts at the layers' ends, as a part
// of a decoded token.
func BenchmarkLayerTimes(b *testing.B) {
	s := open(b, demoConfig())
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 64})
	if err != nil || run.Err != nil {
		b.Fatal(err, run.Err)
	}
	m := &s.meter
	m.costs.on, m.glanced = true, 1<<62
	for b.Loop() {
		m.pass(1)
		for l := range m.costs.layers {
			m.layer(l, 1)
		}
	}
	b.ReportMetric(100*float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(run.Sum.Wall)/float64(run.Sum.Tokens)), "%/token")
}

// BenchmarkExperts measures a look at the map of a model of 48 layers of 128 experts, as a
// part of the time between two looks of a screen.
func BenchmarkExperts(b *testing.B) {
	s := open(b, demoConfig())
	var m profile.ExpertMap
	s.Experts(&m)
	for b.Loop() {
		s.Experts(&m)
	}
	perCell := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(len(m.Cells))
	b.ReportMetric(100*perCell*48*128/(1e9/12), "%")
}
