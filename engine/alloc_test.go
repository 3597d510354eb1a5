package engine

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"bmoe/engine/backend"
)

// demoConfig opens the demo model from the tree, greedily.
func demoConfig() Config {
	cfg := DefaultConfig()
	cfg.Model = filepath.Join("demo", "tiny-stories-moe-q8_0.gguf")
	cfg.Cache.Share = 0.4
	cfg.Origins = map[string]string{"temp": backend.FromFlag, "repeat-penalty": backend.FromFlag}
	return cfg
}

// TestDecodeAllocatesNothing counts the allocations of 100 tokens of steady
// decode at the real GOMAXPROCS: workers, lanes and text included. What the Go
// runtime itself allocates once and then reuses is brought up before: records
// of parked goroutines, of which each processor keeps up to 128, and, by a few
// runs, the threads that blocked lanes ask for.
func TestDecodeAllocatesNothing(t *testing.T) {
	cfg := demoConfig()
	cfg.Raw = true
	s := open(t, cfg)
	const warm, steady = 30, 100
	var got uint64
	for range 20 {
		parkMany()
		var before, after runtime.MemStats
		n, reads := 0, int64(0)
		r, err := s.Generate(context.Background(), backend.Request{Text: "Once upon a time", MaxTokens: warm + steady + 1, OnDelta: func(d backend.Delta) {
			n++
			if n > warm && n <= warm+steady {
				reads += d.Record.Reads
			}
			switch n {
			case warm:
				runtime.ReadMemStats(&before)
			case warm + steady:
				runtime.ReadMemStats(&after)
			}
		}})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if n < warm+steady || reads == 0 {
			t.Fatalf("%d tokens and %d reads: the case shows nothing", n, reads)
		}
		if got = after.Mallocs - before.Mallocs; got == 0 {
			return
		}
	}
	t.Errorf("%d allocations in %d tokens (GOMAXPROCS %d), and no fewer in the runs before", got, steady, runtime.GOMAXPROCS(0))
}

// parkMany parks so many goroutines at once that every processor's store of
// their records is full afterwards.
func parkMany() {
	gate := make(chan struct{})
	var all sync.WaitGroup
	for range 1000 * runtime.GOMAXPROCS(0) {
		all.Go(func() { <-gate })
	}
	close(gate)
	all.Wait()
}
