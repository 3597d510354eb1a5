package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"bmoe/engine/backend"
	"bmoe/flashio"
	"bmoe/flashio/flashtest"
	"bmoe/internal/clock"
	"bmoe/internal/conform"
	"bmoe/internal/units"
	"bmoe/profile"
)

// failing is a reader that fails every n-th read, if n is not 0.
type failing struct {
	flashio.Reader
	every, count atomic.Int64
}

func (f *failing) Submit(rs ...*flashio.Request) {
	var bad []*flashio.Request
	for _, r := range rs {
		if n := f.every.Load(); n > 0 && f.count.Add(1)%n == 0 {
			bad = append(bad, r)
		} else {
			f.Reader.Submit(r)
		}
	}
	if len(bad) > 0 {
		go func() {
			for _, r := range bad {
				r.Started, r.Ended, r.Err = clock.Now(), clock.Now(), syscall.EIO
				r.Done.ReadDone(r)
			}
		}()
	}
}

// TestFailedReadsLeaveTheSessionUsable: after reads have failed in prefill and
// decode, with less room than a batch wants and more, the text is as ever.
func TestFailedReadsLeaveTheSessionUsable(t *testing.T) {
	for _, overlap := range []bool{true, false} {
		for _, layers := range []int64{1, 3} {
			cfg := DefaultConfig()
			cfg.Model, cfg.Raw, cfg.Overlap, cfg.Threads = conform.File(t, "models/qwen3moe.gguf"), true, overlap, 2
			cfg.Cache = Budget{Bytes: layers * layerBytes(t, cfg)}
			want, _ := outcome(t, cfg)
			s := open(t, cfg)
			f := &failing{Reader: s.reader}
			s.streamer.SetReader(f)
			for i, n := range []int64{1, 7, 50, 200, 3, 90} {
				f.every.Store(n)
				r, err := s.Generate(context.Background(), backend.Request{Text: fmt.Sprint(i, prompt), MaxTokens: 100})
				if err != nil {
					t.Fatal(err)
				}
				if !errors.Is(r.Err, syscall.EIO) || r.Result.StopReason != stopError {
					t.Fatalf("every %d-th read fails: stopped by %s, %v", n, r.Result.StopReason, r.Err)
				}
				if st := s.streamer.Stats(); st.Resident > st.Budget || st.SlotsUsed > st.Slots {
					t.Fatalf("every %d-th read fails: %+v", n, st)
				}
			}
			f.every.Store(0)
			r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 24})
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if got := fmt.Sprint(r.Result.TextSHA256, r.Result.TokenIDs); got != want.hash {
				t.Error("after failed reads the text is another")
			}
		}
	}
}

// A file system that answers every read with an interruption holds up nobody who
// cancels: reads are tried again only while somebody waits for them.
func TestInterruptedReadsGiveWayToACancellation(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	cfg.Cache = Budget{Bytes: layerBytes(t, cfg)}
	s := open(t, cfg)
	disk := flashtest.NewDisk(nil)
	files, err := flashio.OpenFiles([]string{cfg.Model}, flashio.FileOptions{Opener: disk})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := flashio.OpenLanes(files, flashio.LaneOptions{Lanes: 2, GiveUp: s.unwanted})
	if err != nil {
		t.Fatal(err)
	}
	own := s.reader
	s.streamer.SetReader(reader)
	defer func() {
		s.streamer.SetReader(own)
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const soon = 30 // reads; a call may be interrupted so often that it does not matter
	var reads, late atomic.Int64
	for off := range files.Size() / 512 {
		disk.Fail(off*512, syscall.EINTR)
	}
	disk.Before(func(string, int64, int) {
		switch {
		case ctx.Err() != nil:
			late.Add(1)
		case reads.Add(1) == soon:
			cancel()
		}
	})
	r, err := s.Generate(ctx, backend.Request{Text: prompt, MaxTokens: 4})
	if err != nil || !errors.Is(r.Err, context.Canceled) || r.Result.StopReason != stopCancelled {
		t.Fatalf("%v, %+v", err, r)
	}
	// Each lane may have had a read in hand, and each queued one is tried once.
	if reads.Load() < soon || late.Load() > 200 {
		t.Errorf("%d reads before the cancellation, %d after it", reads.Load(), late.Load())
	}
}

// TestChatThatOutgrowsItsContext: turns are dropped and counted once, repeated
// runs included, and turns keep their numbers.
func TestChatThatOutgrowsItsContext(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Ctx, cfg.Cache.Share = filepath.Join("demo", "tiny-stories-moe-q8_0.gguf"), 120, 0.4
	s := open(t, cfg)
	var snap profile.Snapshot
	for i := range 6 {
		r, err := s.Generate(context.Background(), backend.Request{Text: fmt.Sprint("Tell me about dog number ", i), MaxTokens: 12})
		if err != nil || r.Err != nil {
			t.Fatal(i, err)
		}
		s.Snapshot(&snap)
		dropped, messages := snap.DroppedTurns, len(s.conversation.Messages)
		if got, want := dropped+messages/2, i+1; got != want || s.turn() != want {
			t.Errorf("turn %d: %d turns dropped and %d messages left; counted as turn %d", want, dropped, messages, s.turn())
		}
		a, err := s.Again(context.Background(), nil)
		if err != nil || a.Err != nil {
			t.Fatal(i, err)
		}
		s.Snapshot(&snap)
		if a.Result.TextSHA256 != r.Result.TextSHA256 || a.StartKey != r.StartKey || len(s.conversation.Messages) != messages || snap.DroppedTurns != dropped {
			t.Errorf("turn %d repeated: %d turns dropped, %d before; %q, %q before", i+1, snap.DroppedTurns, dropped, a.Result.Text, r.Result.Text)
		}
		if r.ColdCache != (i == 0) || !a.ColdCache { // only equal starts are compared
			t.Errorf("turn %d and its repetition began with a cold cache: %v, %v", i+1, r.ColdCache, a.ColdCache)
		}
	}
	if snap.DroppedTurns == 0 {
		t.Fatal("the case shows nothing: no turn was dropped")
	}
	s.NewChat()
	if s.Snapshot(&snap); snap.DroppedTurns != 0 {
		t.Errorf("%d turns dropped in a new chat", snap.DroppedTurns)
	}
}

func TestAWarmCacheIsNoColdStart(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	s := open(t, cfg)
	var runs []*backend.Run
	for range 3 {
		r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 4})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	if runs[1].StartKey != runs[2].StartKey || !runs[0].ColdCache || runs[1].ColdCache || runs[2].ColdCache {
		t.Errorf("cold: %v, %v, %v", runs[0].ColdCache, runs[1].ColdCache, runs[2].ColdCache)
	}
}

func TestSettingsBeyondReason(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	// As of a hostile file's general.sampling.penalty_last_n: a ring of 2^40 tokens.
	cfg.Sampling.RepeatLastN, cfg.Sampling.RepeatPenalty = 1<<40, 1.1
	cfg.Origins = map[string]string{"repeat-last-n": backend.FromFlag, "repeat-penalty": backend.FromFlag}
	if s := open(t, cfg); s.cfg.Sampling.RepeatLastN != s.cfg.Ctx {
		t.Errorf("the repeat penalty looks back %d tokens in a context of %d", s.cfg.Sampling.RepeatLastN, s.cfg.Ctx)
	}
	for _, n := range []int{1 << 30, 1 << 43, 1 << 44, 1 << 62} {
		cfg.Cache = Budget{Bytes: units.FromMiB(int64(n))}
		if s := open(t, cfg); s.streamer.Stats().Budget < s.shape.Total() {
			t.Errorf("a budget of %d MiB does not hold all experts", n)
		}
	}
}

func TestContextWarning(t *testing.T) {
	if w := contextWarning(4096, 1<<30, 1<<30); w != "" {
		t.Errorf("a context that just fits: %s", w)
	}
	if w := contextWarning(1<<20, 90<<30, 8<<30); !strings.Contains(w, "1048576 positions") || !strings.Contains(w, "92160 MiB") || !strings.Contains(w, "8192 MiB") {
		t.Errorf("a context of 90 GiB on 8: %q", w)
	}
}
