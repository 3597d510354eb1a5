package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert/policy"
	"bmoe/engine/model"
	"bmoe/internal/conform"
)

// belady gives up the expert whose next use is the furthest: it has seen the route.
type belady struct {
	shape    policy.Shape
	uses     [][]int // by key: numbers of the visits that touch it
	next     []int   // by key: place in uses
	visit    int
	resident []bool
}

func newBelady(r *routed) *belady {
	b := &belady{shape: r.shape()}
	b.uses = make([][]int, b.shape.Keys())
	visit := 0
	r.batches(func(_, layer int, ids []int32) {
		for _, id := range ids {
			k := b.shape.Key(layer, id)
			if n := len(b.uses[k]); n == 0 || b.uses[k][n-1] != visit {
				b.uses[k] = append(b.uses[k], visit)
			}
		}
		visit++
	})
	b.Reset()
	return b
}

func (b *belady) Name() string { return "belady" }
func (b *belady) Reset() {
	b.next, b.resident, b.visit = make([]int, len(b.uses)), make([]bool, len(b.uses)), 0
}
func (b *belady) Visit(_, _ int, touches []policy.Key) {
	for _, k := range touches {
		for b.next[k] < len(b.uses[k]) && b.uses[k][b.next[k]] <= b.visit {
			b.next[k]++
		}
	}
	b.visit++
}
func (b *belady) Add(k policy.Key)    { b.resident[k] = true }
func (b *belady) Remove(k policy.Key) { b.resident[k] = false }
func (b *belady) Victim(of func(int) bool, pinned func(policy.Key) bool) (policy.Key, bool) {
	best, furthest := policy.None, -1
	for i, in := range b.resident {
		k := policy.Key(i)
		if !in || !of(b.shape.Layer(k)) || pinned(k) {
			continue
		}
		use := math.MaxInt
		if n := b.next[k]; n < len(b.uses[k]) {
			use = b.uses[k][n]
		}
		if use > furthest {
			best, furthest = k, use
		}
	}
	return best, best != policy.None
}

// TestPoliciesOnRecordedRoutes: what each policy hits of the recorded routes by
// budget, and which share of what the best possible gains over least-recently-used.
func TestPoliciesOnRecordedRoutes(t *testing.T) {
	for _, route := range []struct {
		name  string
		least [3]float64 // hits of lookalike at 2000, 3000 and 4000 MiB, in %
	}{{"qwen", [3]float64{65.3, 75.8, 83.4}}, {"gptoss", [3]float64{39.2, 48.3, 55}}} {
		r := recordedRoute(t, route.name)
		shape := r.shape()
		cycle := float64(shape.TokenCycle())
		var table strings.Builder
		for _, mib := range []float64{500, 1000, 1500, 2000, 3000, 4000} {
			cycles := mib * (1 << 20) / cycle
			hits := map[string]float64{}
			for _, name := range append(policy.Names(), "belady") {
				hits[name] = r.replay(t, name, cycles, nil)
			}
			share := func(name string) float64 { return 100 * (hits[name] - hits["lru"]) / (hits["belady"] - hits["lru"]) }
			fmt.Fprintf(&table, "\n%5.0f MiB: lru %.1f", mib, hits["lru"])
			best := 0.0
			for _, name := range policy.Names() {
				if name != "lru" {
					fmt.Fprintf(&table, ", %s %.1f (%.0f %%)", name, hits[name], share(name))
				}
				best = max(best, hits[name])
			}
			fmt.Fprintf(&table, ", belady %.1f", hits["belady"])
			if hits["auto"] < best-0.5 {
				t.Errorf("%s, %.0f MiB: auto hits %.1f %%, the best of the others %.1f", route.name, mib, hits["auto"], best)
			}
			for i, at := range []float64{2000, 3000, 4000} {
				if got := hits["lookalike"]; mib == at && got < route.least[i] {
					t.Errorf("%s, %.0f MiB: lookalike hits %.1f %%, want %.1f", route.name, mib, got, route.least[i])
				}
			}
		}
		t.Logf("%s: hits of decoding in %% (share of the gap between lru and belady)%s", route.name, table.String())
	}
}

// TestReplayAgrees: a directory that is shown a run's routes afterwards counts what
// the engine counted, to the byte, for every policy and budget.
func TestReplayAgrees(t *testing.T) {
	for _, name := range policy.Names() {
		for _, layers := range []float64{1, 1.7, 3, 4.5} {
			cfg := DefaultConfig()
			cfg.Model, cfg.Raw, cfg.CachePolicy, cfg.UBatch = conform.File(t, "models/qwen3moe.gguf"), true, name, 7
			cfg.Cache = Budget{Bytes: int64(layers * float64(layerBytes(t, cfg)))}
			s := open(t, cfg)
			p, err := policy.New(name, s.shape)
			if err != nil {
				t.Fatal(err)
			}
			d := policy.NewDirectory(s.shape, cfg.Cache.Bytes-s.shape.Reserve(cfg.Cache.Bytes), p)
			var plan policy.Plan
			s.compute.Watch(&model.Observer{Route: func(layer, tokens int, ids []int32, _ []float32) { d.Visit(layer, tokens, slices.Clone(ids), &plan) }})
			for _, text := range []string{prompt, "The sea"} {
				s.NewChat()
				if r, err := s.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 24}); err != nil || r.Err != nil {
					t.Fatal(err, r.Err)
				}
			}
			got, want := s.streamer.Stats().Counters, d.Counters()
			if got != want || got.Evictions == 0 {
				t.Errorf("%s, %.1f layers: the engine counted %+v, the replay %+v", name, layers, got, want)
			}
		}
	}
}
