package engine

import (
	"context"
	"os"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/sample"
)

// benchConfig opens the model that BMOE_BENCH_MODEL names, else the demo model.
func benchConfig() Config {
	cfg := demoConfig()
	if path := os.Getenv("BMOE_BENCH_MODEL"); path != "" {
		cfg.Model = path
	}
	cfg.Raw, cfg.Sampling = true, sample.Defaults()
	return cfg
}

// sources are the ways in which a model can be run, for the benchmarks.
var sources = map[string]func(*Config){
	"resident":     func(c *Config) { c.Stream, c.Dense = false, DenseWarm },
	"all-in-cache": func(c *Config) { c.Cache.Share = 1 },
	"streamed":     func(c *Config) { c.Cache.Share = 0.4 },
}

// BenchmarkDecode reports tokens a second and where a token's time goes.
func BenchmarkDecode(b *testing.B) {
	for name, with := range sources {
		b.Run(name, func(b *testing.B) {
			cfg := benchConfig()
			with(&cfg)
			s := open(b, cfg)
			generate := func(n int) *backend.Run {
				s.NewChat()
				r, err := s.Generate(context.Background(), backend.Request{Text: "Once upon a time", MaxTokens: n})
				if err != nil || r.Err != nil {
					b.Fatal(err, r.Err)
				}
				return r
			}
			generate(64) // warms the cache
			var tokens, wall, compute, stall, other int64
			b.ResetTimer()
			for b.Loop() {
				r := generate(64)
				tokens += r.Sum.Tokens
				wall += r.Sum.Wall
				compute += r.Sum.Compute
				stall += r.Sum.Stall.Value
				other += r.Sum.Other
			}
			b.ReportMetric(float64(tokens)*1e9/float64(wall), "tok/s")
			for unit, ns := range map[string]int64{"compute-us/tok": compute, "stall-us/tok": stall, "other-us/tok": other} {
				b.ReportMetric(float64(ns)/1e3/float64(tokens), unit)
			}
		})
	}
}

// BenchmarkPrefill reports prompt tokens a second.
func BenchmarkPrefill(b *testing.B) {
	for name, with := range sources {
		b.Run(name, func(b *testing.B) {
			cfg := benchConfig()
			with(&cfg)
			s := open(b, cfg)
			ids := s.text.RawPrompt(strings.Repeat("Once upon a time there was a little dog. ", 100))
			ids = ids[:min(len(ids), 448)]
			prefill := func() {
				if _, err := s.rewind(0); err != nil {
					b.Fatal(err)
				}
				for i := 0; i < len(ids); i += s.cfg.UBatch {
					if err := s.forward(context.Background(), ids[i:min(i+s.cfg.UBatch, len(ids))], nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			prefill()
			b.ResetTimer()
			for b.Loop() {
				prefill()
			}
			b.ReportMetric(float64(b.N*len(ids))/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
