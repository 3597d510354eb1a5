package engine

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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

// BenchmarkTurnThree reports how long the third turn of a chat takes to its first
// token, and what it may take: 1.2 times its share of a whole prefill and 50 ms. With
// a template that keeps thoughts, and with one that drops them.
func BenchmarkTurnThree(b *testing.B) {
	for name, template := range map[string]string{"kept": thoughtsKept, "dropped": thoughtsDropped} {
		b.Run(name, func(b *testing.B) {
			cfg := benchConfig()
			cfg.Raw, cfg.Template, cfg.Cache.Share, cfg.Ctx = false, template, 1, 2048
			s := open(b, cfg)
			m := &prompter{Arch: s.arch}
			s.arch = m
			text := strings.Repeat("A cat sat on a mat and saw a bird. ", 3)
			answer := s.text.Tokenizer.EncodePrompt("<think>\n"+text+"\n</think>\n\n"+text+"<|im_end|>", nil)
			var ttft, limit, share float64
			for b.Loop() {
				s.NewChat()
				var third *backend.Run
				for range 3 {
					m.answers, m.logits, m.rest = append(m.answers[:0], answer), nil, nil
					r, err := s.Generate(context.Background(), backend.Request{Text: text})
					if err != nil || r.Err != nil {
						b.Fatal(err, r)
					}
					third = r
				}
				n := third.Result.NPrompt
				ids := slices.Clone(s.ids[:n])
				if _, err := s.rewind(0); err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				for i := 0; i < n; i += s.cfg.UBatch {
					if err := s.forward(context.Background(), ids[i:min(i+s.cfg.UBatch, n)], nil); err != nil {
						b.Fatal(err)
					}
				}
				whole := time.Since(begun).Seconds()
				part := float64(n-third.Result.NCached) / float64(n)
				ttft, limit, share = ttft+third.Result.TTFT.Value, limit+1.2*part*whole+0.050, share+part
			}
			b.ReportMetric(1e3*ttft/float64(b.N), "ttft-ms")
			b.ReportMetric(1e3*limit/float64(b.N), "limit-ms")
			b.ReportMetric(100*share/float64(b.N), "%-prefilled")
		})
	}
}
