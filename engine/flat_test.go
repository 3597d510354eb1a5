package engine

import (
	"context"
	"runtime"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
)

// heap returns the bytes of live objects.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalisers held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRunsStayFlat: in a context of a million positions a run keeps at most
// 4 KiB beside its text, and so a thousand of them at most 4 MiB.
func TestRunsStayFlat(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Ctx, cfg.UBatch, cfg.ForceCache = conform.File(t, "models/qwen3moe.gguf"), true, 1<<20, 8, true
	s := open(t, cfg)
	run := func(n int) {
		for range n {
			if r, err := s.Generate(context.Background(), backend.Request{Text: "one", MaxTokens: 2}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
		}
	}
	run(24)
	before := heap()
	run(1000)
	if kept := (heap() - before) / 1000; kept > 4<<10 {
		t.Errorf("a run keeps %d bytes", kept)
	}
	// Without a limit the room for an answer is not that of the whole context. The
	// first such run may make room for its records, which are of a fixed number.
	open := func() {
		ctx, stop := context.WithCancel(context.Background())
		n := 0
		r, err := s.Generate(ctx, backend.Request{Text: "one", OnDelta: func(backend.Delta) {
			if n++; n == 4 {
				stop()
			}
		}})
		if err != nil || r.Result.NGen != n {
			t.Fatalf("%v, %d tokens of %d", err, r.Result.NGen, n)
		}
	}
	open()
	before = heap()
	for range 20 {
		open()
	}
	if kept := (heap() - before) / 20; kept > 4<<10 {
		t.Errorf("a run without a limit keeps %d bytes", kept)
	}
}
