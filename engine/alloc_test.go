package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
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

// TestDecodeAllocatesNothing looks at every allocation during 100 tokens of steady
// decode, at the real GOMAXPROCS: workers, lanes and text included. What counts is
// who asked for it: the Go runtime itself takes records of parked goroutines and of
// threads now and then, and keeps them.
func TestDecodeAllocatesNothing(t *testing.T) {
	cfg := demoConfig()
	cfg.Raw = true
	s := open(t, cfg)
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1 // all of them
	const warm, steady = 30, 100
	var before, after map[string]int64
	n, reads := 0, int64(0)
	r, err := s.Generate(context.Background(), backend.Request{Text: "Once upon a time", MaxTokens: warm + steady + 1, OnDelta: func(d backend.Delta) {
		n++
		if n > warm && n <= warm+steady {
			reads += d.Record.Reads
		}
		switch n {
		case warm:
			before = allocations(t)
		case warm + steady:
			after = allocations(t)
		}
	}})
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if n < warm+steady || reads == 0 {
		t.Fatalf("%d tokens and %d reads: the case shows nothing", n, reads)
	}
	for where, count := range after {
		count -= before[where]
		if count <= int64(s.cfg.Threads) && strings.Contains(where, "bmoe/engine/kernel.(*scratch).") {
			continue // a worker's scratch, which it takes once: it may not have met the other one before
		}
		if count > 0 {
			t.Errorf("%d allocations in %d tokens (GOMAXPROCS %d) at\n%s", count, steady, runtime.GOMAXPROCS(0), where)
		}
	}
}

// ofTheRuntime are the functions with which the runtime provides itself.
var ofTheRuntime = []string{"runtime.acquireSudog", "runtime.allocm", "runtime.newm", "runtime.malg", "runtime.startm"}

// allocations counts the objects that were allocated so far, by the stack at which
// that was, without what the runtime and this test take for themselves.
func allocations(t *testing.T) map[string]int64 {
	t.Helper()
	runtime.GC() // what happened until now is in the profile then
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, n+50)
		if n, ok = runtime.MemProfile(records, true); ok {
			records = records[:n]
		}
	}
	counts := map[string]int64{}
next:
	for i := range records {
		var b strings.Builder
		ours := false
		for frames := runtime.CallersFrames(records[i].Stack()); ; {
			f, more := frames.Next()
			for _, name := range append(ofTheRuntime, "bmoe/engine.allocations") {
				if f.Function == name {
					continue next
				}
			}
			ours = ours || strings.HasPrefix(f.Function, "bmoe/")
			fmt.Fprintf(&b, "\t%s (%s:%d)\n", f.Function, filepath.Base(f.File), f.Line)
			if !more {
				break
			}
		}
		if ours {
			counts[b.String()] += records[i].AllocObjects
		}
	}
	return counts
}
