package engine

import (
	"context"
	"testing"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// BenchmarkRecording measures what is recorded of every token by default: the reading
// of all counters, the record, and what it missed. It reports that as a part of a
// decoded token.
func BenchmarkRecording(b *testing.B) {
	cfg := demoConfig()
	cfg.Cache = Budget{Bytes: 3 << 20}
	s := open(b, cfg)
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 64})
	if err != nil || run.Err != nil {
		b.Fatal(err, run.Err)
	}
	token := float64(run.Sum.Wall) / float64(run.Sum.Tokens)
	m := &s.meter
	m.rec.Begin(profile.Start{Run: 2, MaxTokens: profile.HistoryTokens, Touches: 24}, &m.gauges)
	m.read()
	m.rec.First(&m.reading)
	m.glanced = 1 << 62 // what is looked at ten times a second is apart
	var r profile.Record
	for b.Loop() {
		m.token(0, &r)
	}
	b.ReportMetric(100*float64(b.Elapsed().Nanoseconds())/float64(b.N)/token, "%/token")
	b.ReportMetric(token, "ns/token")
	b.StopTimer()
	m.glanced = 0
}

// BenchmarkLooking measures what is looked at ten times a second while a model
// decodes, as a part of that time.
func BenchmarkLooking(b *testing.B) {
	s := open(b, demoConfig())
	for b.Loop() {
		s.meter.look()
	}
	b.ReportMetric(100*float64(b.Elapsed().Nanoseconds())/float64(b.N)/glance, "%")
}
