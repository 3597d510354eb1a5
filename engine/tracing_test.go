package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/internal/conform"
	"bmoe/profile"
	"bmoe/profile/replay"
	"bmoe/profile/trace"
)

// traced opens a session whose routes are written down.
func traced(t *testing.T, cfg Config) (*Session, *trace.RouteSink, string) {
	t.Helper()
	s := open(t, cfg)
	path := filepath.Join(conform.TempDir(t), "route.csv")
	sink, err := trace.CreateRoute(context.Background(), path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	s.Trace(Traces{Route: sink})
	return s, sink, path
}

// generateTwice asks two questions and repeats the second, and returns what the cache
// counted of all of it.
func generateTwice(t *testing.T, s *Session) (sum replay.Counters, last *backend.Run) {
	t.Helper()
	ran := func(r *backend.Run, err error) {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		last = r
	}
	counted := func() {
		c := s.streamer.Stats().Counters
		sum = replay.Counters{Lookups: sum.Lookups + c.Lookups, Hits: sum.Hits + c.Hits, Evictions: sum.Evictions + c.Evictions,
			Rereads: sum.Rereads + c.Rereads, ReadBytes: sum.ReadBytes + c.ReadBytes}
	}
	ran(s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 12}))
	ran(s.Generate(context.Background(), backend.Request{Text: "The sea", MaxTokens: 12}))
	counted() // a repetition empties the cache
	ran(s.Again(context.Background(), nil))
	counted()
	return sum, last
}

// TestTraceReplays: a route trace that was written replays to the engine's own
// counters, to the byte, under every policy, whatever is read ahead.
func TestTraceReplays(t *testing.T) {
	for model, c := range map[string]struct {
		path   string
		layers float64 // that the cache holds
	}{
		"demo":           {demoConfig().Model, 9},
		"mixed types":    {mixedModel(t), 2},
		"a single layer": {conform.File(t, "quants/qwen3moe-q-Q4_K_M.gguf"), 1},
		"left out":       {demoConfig().Model, 9},
	} {
		cfg := DefaultConfig()
		cfg.Model, cfg.Raw, cfg.UBatch = c.path, true, 7
		budget := Budget{Bytes: int64(c.layers * float64(layerBytes(t, cfg)))}
		if model == "left out" {
			cfg.DropCold, cfg.Substitute = 0.3, 0.2
		}
		for i, name := range policy.Names() {
			if testing.Short() && i%2 == 1 {
				continue
			}
			for _, ahead := range []bool{false, true} {
				cfg := cfg
				cfg.CachePolicy, cfg.Cache = name, budget
				cfg.Foresight = expert.Foresight{}
				if ahead {
					cfg.Foresight = expert.Foresight{1, 2}
				}
				t.Run(fmt.Sprintf("%s/%s/ahead=%v", model, name, ahead), func(t *testing.T) {
					t.Parallel() // they wait for reads, too
					s, sink, path := traced(t, cfg)
					want, last := generateTwice(t, s)
					if err := sink.Close(); err != nil {
						t.Fatal(err)
					}
					openTrace := func() (io.ReadCloser, error) { return os.Open(path) }
					head, out, err := replay.Run(openTrace, []replay.Case{{Policy: name, Budget: s.streamer.Stats().Budget}})
					if err != nil {
						t.Fatal(err)
					}
					if got := out[0].All; got != want || got.Evictions == 0 || got.Hits == 0 {
						t.Errorf("the engine counted %+v, the replay %+v", want, got)
					}
					if !slices.Equal(head.SlotBytes, s.routeHead().SlotBytes) || slices.Contains(head.SlotBytes, 0) {
						t.Errorf("slots of %v bytes are written, %v read", s.routeHead().SlotBytes, head.SlotBytes)
					}
					hits, recorded, ok, err := replay.Recorded(openTrace)
					if err != nil || !ok || recorded != name || hits != 100*float64(want.Hits)/float64(want.Lookups) {
						t.Errorf("the trace tells of %v %% hits under %q (%v, %v), the engine counted %+v", hits, recorded, ok, err, want)
					}
					if !slices.Contains(last.Result.Flags, "traced") {
						t.Errorf("flags %v: a traced run has to say so", last.Result.Flags)
					}
				})
			}
		}
	}
}

// Every token's row holds its own id, what was given to it, and what foretold it.
func TestTraceTellsOfTokens(t *testing.T) {
	cfg := demoConfig()
	cfg.Foresight = expert.Foresight{expert.ByRouters: 1}
	s, sink, path := traced(t, cfg)
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 24})
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := trace.NewRouteRows(f)
	if err != nil {
		t.Fatal(err)
	}
	var row trace.RouteRow
	prompt, named, missed := run.Result.NPrompt, 0, 0
	for n := 0; ; n++ {
		if err := rows.Next(&row); err == io.EOF {
			if want := (prompt + 23) * len(rows.Layers) * rows.Used; n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
		phase := 0
		if row.Step >= prompt {
			phase = 1
			if want := run.Result.TokenIDs[row.Step-prompt]; row.TokenID != want {
				t.Fatalf("position %d is token %d, written as %d", row.Step, want, row.TokenID)
			}
		}
		if row.Phase != phase || row.Residency < 0 || phase == 0 && row.Predicted >= 0 || phase == 1 && row.Place == 0 && row.Predicted >= 0 {
			t.Fatalf("%+v", row)
		}
		if row.Predicted == 1 {
			named++
		} else if row.Predicted == trace.PredictedNot {
			missed++
		}
	}
	if named <= missed || missed == 0 {
		t.Errorf("the next layer's router named %d experts and missed %d", named, missed)
	}
	if rows.Run["n_expert_used"] != "" || rows.Run["ctx_size"] != strconv.Itoa(s.cfg.Ctx) {
		t.Errorf("the run's line says %v", rows.Run)
	}
	var live profile.Snapshot
	if s.Snapshot(&live); !live.Traced {
		t.Error("the screen does not learn that runs are traced")
	}
}

// What traces of reads and steps tell adds up to what the run cost.
func TestTracesOfReadsAndSteps(t *testing.T) {
	cfg := demoConfig()
	cfg.Foresight, cfg.Overlap = expert.Foresight{}, false
	s := open(t, cfg)
	dir := conform.TempDir(t)
	paths := [2]string{filepath.Join(dir, "io.csv"), filepath.Join(dir, "compute.csv")}
	fail := func(err error) { t.Error(err) }
	reads, err := trace.CreateIO(context.Background(), paths[0], fail)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := trace.CreateCompute(context.Background(), paths[1], fail)
	if err != nil {
		t.Fatal(err)
	}
	s.Trace(Traces{IO: reads, Compute: steps})
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: 16})
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	for _, f := range []io.Closer{reads, steps} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	st := s.streamer.Stats()
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sums, err := trace.SumIO(f)
	if err != nil || sums[0].Reads != st.Reads || sums[0].Bytes != st.WindowBytes || sums[0].Guessed != 0 || st.Reads == 0 {
		t.Errorf("the trace tells of %+v (%v), the streamer of %d reads and %d bytes", sums[0], err, st.Reads, st.WindowBytes)
	}
	g, err := os.Open(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ops, tokens, err := trace.SumCompute(g)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, op := range ops {
		total += op.Ms
		if want := map[string]int64{"embed": 1, "head": 1}[op.Op]; op.Count != 15*max(want, 6-5*want) {
			t.Errorf("%d times %s in 15 tokens", op.Count, op.Op)
		}
	}
	if wall := float64(run.Sum.Wall) / 1e6; tokens != 15 || len(ops) != 6 || total > wall || total <= 0 {
		t.Errorf("%d tokens, %d kinds of steps, %.1f ms of the answer's %.1f", tokens, len(ops), total, wall)
	}
}
