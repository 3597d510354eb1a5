package engine

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert/policy"
	"bmoe/engine/gguf/synth"
	"bmoe/engine/model"
	"bmoe/internal/conform"
	"bmoe/profile/trace"
)

// routed is a run's routes, token by token.
type routed struct {
	layers, experts, used int
	bytes                 []int64 // of an expert, by layer; nil: 1
	tokens                []routedToken
}

type routedToken struct {
	id     int32
	prompt bool
	ids    []int32            // [layers x used]
	early  map[[2]int][]int32 // by layer and lead: what the layer's router said early
}

// recorder gathers a session's routes. It is its Compute.Ahead.
type recorder struct {
	*routed
	now []routedToken // of the pass
}

func (r *recorder) Lead() int { return 4 }

func (r *recorder) Expect(layer, lead int, ids []int32) {
	r.now[0].early[[2]int{layer, lead}] = slices.Clone(ids)
}

// recordRoutes runs a model on prompts, each a chat of its own.
func recordRoutes(t testing.TB, cfg Config, n int, prompts ...string) *routed {
	s := open(t, cfg)
	info := s.arch.Info()
	r := &recorder{routed: &routed{layers: info.MoELayers(), experts: info.Experts.Experts, used: info.Experts.Used}}
	s.compute.Ahead = r
	s.compute.Watch(&model.Observer{Route: func(layer, tokens int, ids []int32, _ []float32) {
		if layer == 0 {
			r.tokens = append(r.tokens, r.now...)
			r.now = make([]routedToken, tokens)
			for i := range r.now {
				at := len(s.ids) + i
				r.now[i] = routedToken{prompt: tokens > 1, id: s.pass.ids[at-len(s.ids)], early: map[[2]int][]int32{}}
			}
		}
		for i := range r.now {
			r.now[i].ids = append(r.now[i].ids, ids[i*r.used:][:r.used]...)
		}
	}})
	for _, p := range prompts {
		s.NewChat()
		run, err := s.Generate(context.Background(), backend.Request{Text: p, MaxTokens: n})
		if err != nil || run.Err != nil {
			t.Fatal(err, run.Err)
		}
	}
	r.tokens = append(r.tokens, r.now...)
	return r.routed
}

// recordedRoute returns a trace's routes.
func recordedRoute(t testing.TB, name string) *routed {
	r, err := trace.OpenRoute(conform.Shared(t, "traces/"+name+".route.csv"))
	if err != nil {
		t.Fatal(err)
	}
	out := &routed{layers: len(r.Layers), experts: r.Experts, used: r.Used, bytes: r.ExpertBytes}
	for _, x := range r.Turns[0].Prompt {
		out.tokens = append(out.tokens, routedToken{id: -1, prompt: true, ids: x.Experts})
	}
	for _, x := range r.Turns[0].Decoded {
		out.tokens = append(out.tokens, routedToken{id: -1, ids: x.Experts})
	}
	return out
}

// shape is that of experts of one byte.
func (r *routed) shape() policy.Shape {
	s := policy.Shape{Experts: r.experts, Used: r.used, Bytes: make([]int64, r.layers), Slots: make([]int64, r.layers)}
	for l := range s.Bytes {
		s.Bytes[l], s.Slots[l] = 1, 1
		if r.bytes != nil {
			s.Bytes[l], s.Slots[l] = r.bytes[l], r.bytes[l]
		}
	}
	return s
}

// replay looks the routes up, prompts in one batch, and tells of every miss while
// decoding. It returns the hits of decoding in percent.
func (r *routed) replay(t testing.TB, name string, cycles float64, miss func(token, layer int, expert int32)) float64 {
	shape := r.shape()
	var p policy.Policy = newBelady(r)
	if name != "belady" {
		var err error
		if p, err = policy.New(name, shape); err != nil {
			t.Fatal(err)
		}
	}
	return r.lookUp(policy.NewDirectory(shape, int64(cycles*float64(shape.TokenCycle())), p), miss)
}

// batches calls f for every lookup, a prompt in one batch; token is the first of it.
func (r *routed) batches(f func(token, layer int, ids []int32)) {
	for from := 0; from < len(r.tokens); {
		to := from + 1
		for to < len(r.tokens) && r.tokens[from].prompt && r.tokens[to].prompt {
			to++
		}
		for l := range r.layers {
			var ids []int32
			for _, x := range r.tokens[from:to] {
				if ranks := x.ids[l*r.used:][:r.used]; ranks[0] >= 0 {
					ids = append(ids, ranks...)
				}
			}
			f(from, l, ids)
		}
		from = to
	}
}

func (r *routed) lookUp(d *policy.Directory, miss func(token, layer int, expert int32)) float64 {
	var plan policy.Plan
	lookups, hits := 0, 0
	r.batches(func(token, l int, ids []int32) {
		d.Visit(l, len(ids)/r.used, ids, &plan)
		if r.tokens[token].prompt {
			return
		}
		for _, s := range plan.Steps {
			lookups++
			if s.Hit {
				hits++
			} else if miss != nil {
				miss(token, l, int32(int(s.Key)-l*r.experts))
			}
		}
	})
	return 100 * float64(hits) / float64(lookups)
}

// again returns how many of a token's experts the token before had, in percent.
func (r *routed) again() float64 {
	n, same := 0, 0
	for i := 1; i < len(r.tokens); i++ {
		if r.tokens[i].prompt {
			continue
		}
		for l := range r.layers {
			for _, e := range r.tokens[i].ids[l*r.used:][:r.used] {
				n++
				if slices.Contains(r.tokens[i-1].ids[l*r.used:][:r.used], e) {
					same++
				}
			}
		}
	}
	return 100 * float64(same) / float64(n)
}

// byToken guesses a layer's experts from what the same token id was given before, in
// counts decayed by 0.8.
type byToken map[[2]int]map[int32]float64

func (g byToken) guess(id int32, layer, n int) []int32 {
	counts := g[[2]int{int(id), layer}]
	var ids []int32
	for e := range counts {
		ids = append(ids, e)
	}
	slices.SortFunc(ids, func(a, b int32) int {
		if counts[a] != counts[b] {
			return int(math.Copysign(1, counts[b]-counts[a]))
		}
		return int(a - b)
	})
	return ids[:min(n, len(ids))]
}

func (g byToken) learn(id int32, layer int, experts []int32) {
	key := [2]int{int(id), layer}
	if g[key] == nil {
		g[key] = map[int32]float64{}
	}
	for e := range g[key] {
		g[key][e] *= 0.8
	}
	for _, e := range experts {
		g[key][e]++
	}
}

// coverage returns which share of a cache's misses was guessed: by token id with k
// and 2k guesses, and by routers 1 to 4 layers early; in percent.
func (r *routed) coverage(t testing.TB, cycles float64) (hits float64, byID, byID2 float64, early [4]float64) {
	missed := map[[2]int][]int32{}
	hits = r.replay(t, "lru", cycles, func(token, layer int, e int32) {
		missed[[2]int{token, layer}] = append(missed[[2]int{token, layer}], e)
	})
	table := byToken{}
	all, some := 0, [4]int{}
	var id1, id2 int
	var guessed [4]int
	for i, x := range r.tokens {
		for l := range r.layers {
			ids := x.ids[l*r.used:][:r.used]
			one, two := table.guess(x.id, l, r.used), table.guess(x.id, l, 2*r.used)
			for _, e := range missed[[2]int{i, l}] {
				if i < len(r.tokens)/2 {
					break // the table has to learn
				}
				all++
				if slices.Contains(one, e) {
					id1++
				}
				if slices.Contains(two, e) {
					id2++
				}
				for d := range 4 {
					if g := x.early[[2]int{l, d + 1}]; g != nil {
						some[d]++
						if slices.Contains(g, e) {
							guessed[d]++
						}
					}
				}
			}
			table.learn(x.id, l, ids)
		}
	}
	pct := func(a, b int) float64 { return 100 * float64(a) / float64(max(1, b)) }
	for d := range 4 {
		early[d] = pct(guessed[d], some[d])
	}
	return hits, pct(id1, all), pct(id2, all), early
}

// TestRoutersBehave: the routers of models with topics behave as those of trained
// models do (docs/streaming.md): a token id tells of the misses before layer 0,
// routers run early tell more, and least-recently-used hits as often.
func TestRoutersBehave(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model = os.Getenv("BMOE_ROUTE_MODEL")
	tokens := 300
	if cfg.Model == "" {
		spec, err := synth.Preset("tiny")
		if err != nil {
			t.Fatal(err)
		}
		spec.Layers, spec.Embd, spec.Experts, spec.Used, spec.ExpertFF, spec.Vocab, spec.Topics, spec.Ctx = 8, 512, 128, 8, 32, 8000, 16, 2048
		cfg.Model = conform.TempDir(t) + "/topics.gguf"
		if err := synth.Write(cfg.Model, spec); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Raw, cfg.Cache = true, Budget{Bytes: 1 << 40}
	if cfg.Cache.Auto = os.Getenv("BMOE_ROUTE_MODEL") != ""; cfg.Cache.Auto {
		cfg.Cache.Bytes = 0
	}
	r := recordRoutes(t, cfg, tokens, "lomu tafe nilo", "ruki sane", "pafo dube gisa", "nilo ruki dube")
	qwen := recordedRoute(t, "qwen")
	t.Logf("the token before: %.1f %% here, %.1f %% in the recorded route", r.again(), qwen.again())
	var line strings.Builder
	for _, cycles := range []float64{1.27, 1.91, 2.55, 3.82, 5.1, 7.64} {
		here, there := r.replay(t, "lru", cycles, nil), qwen.replay(t, "lru", cycles, nil)
		fmt.Fprintf(&line, "  %.2f: %.1f (%.1f)", cycles, here, there)
		if math.Abs(here-there) > 5 {
			t.Errorf("a cache of %.2f token cycles hits %.1f %%, the recorded route %.1f", cycles, here, there)
		}
	}
	t.Logf("hits by token cycles (recorded)%s", line.String())
	for _, cycles := range []float64{2.5, 4, 5} {
		lru, best, auto, bound := r.replay(t, "lru", cycles, nil), r.replay(t, "lookalike", cycles, nil), r.replay(t, "auto", cycles, nil), r.replay(t, "belady", cycles, nil)
		t.Logf("%.1f cycles: lru %.1f, lookalike %.1f (%.0f %% of the gap), auto %.1f, belady %.1f", cycles, lru, best, 100*(best-lru)/(bound-lru), auto, bound)
		if best < lru || auto < max(lru, best)-0.5 {
			t.Errorf("%.1f cycles: lru hits %.1f %%, lookalike %.1f, auto %.1f", cycles, lru, best, auto)
		}
	}
	hits, one, two, early := r.coverage(t, 2.2)
	t.Logf("at %.1f %% hits: by token id %.1f and %.1f %% of the misses, by routers 1 to 4 layers early %.1f", hits, one, two, early)
	for i, want := range []float64{63, 73, 80, 72, 67, 62} {
		if got := []float64{one, two, early[0], early[1], early[2], early[3]}[i]; math.Abs(got-want) > 10 {
			t.Errorf("figure %d is %.1f %%, %.0f were measured on a trained model", i, got, want)
		}
	}
}
