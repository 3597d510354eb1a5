package engine

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"bmoe/engine/expert/policy"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
)

// lookalike guesses a layer's experts from what followed tokens that were routed alike
// so far: POLICY's "trajectory", the vote that cache policies take already.
type lookalike struct {
	*routed
	like [][]int // [layer] of the token in hand: by past token, routings alike up to that layer
}

const lookBack = 256 // tokens

// begin takes in the route of token i: what it has alike with those before, layer by
// layer.
func (g *lookalike) begin(i int) {
	g.like = g.like[:0]
	sum := make([]int, min(i, lookBack))
	for l := range g.layers {
		mine := g.tokens[i].ids[l*g.used:][:g.used]
		for s := range sum {
			for _, e := range g.tokens[i-1-s].ids[l*g.used:][:g.used] {
				if slices.Contains(mine, e) {
					sum[s]++
				}
			}
		}
		g.like = append(g.like, slices.Clone(sum))
	}
}

// guess returns the n likeliest experts of a layer, as they are known after the router
// of the layer lead before it.
func (g *lookalike) guess(i, layer, lead, n int) []int32 {
	at := layer - lead
	if at < 0 || i == 0 {
		return nil
	}
	votes := make([]float64, g.experts)
	for s, alike := range g.like[at] {
		w := math.Exp(8*float64(alike)/float64((at+1)*g.used)) / math.Sqrt(float64(s+1))
		for _, e := range g.tokens[i-1-s].ids[layer*g.used:][:g.used] {
			if e >= 0 {
				votes[e] += w
			}
		}
	}
	var ids []int32
	for e, v := range votes {
		if v > 0 {
			ids = append(ids, int32(e))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return int(math.Copysign(1, votes[b]-votes[a])) })
	return ids[:min(n, len(ids))]
}

// worth is what guesses are good for: the share of the misses that are among them, and
// of those that would have to be read the share that is right; in percent.
type worth struct{ covers, right float64 }

// foresees replays under a policy and tells what token ids with routers, the look-alike,
// and all of them cover at a lead, and how many of the reads are right that only the
// look-alike would make. Without ids and routers in the trace the first is nothing.
func (r *routed) foresees(t *testing.T, name string, cycles float64, lead int) (base, alike, all worth, only float64) {
	shape := r.shape()
	p, err := policy.New(name, shape)
	if err != nil {
		t.Fatal(err)
	}
	d := policy.NewDirectory(shape, int64(cycles*float64(shape.TokenCycle())), p)
	g, table := &lookalike{routed: r}, byToken{}
	var plan policy.Plan
	type tally struct{ covered, reads, right int }
	var sums [3]tally
	misses, onlyReads, onlyRight := 0, 0, 0
	prepared := -1
	r.batches(func(token, l int, ids []int32) {
		x := &r.tokens[token]
		if !x.prompt && token > len(r.tokens)/4 { // tables have to learn
			if prepared != token {
				g.begin(token)
				prepared = token
			}
			var known []int32
			if x.id >= 0 {
				known = append(known, table.guess(x.id, l, r.used)...)
			}
			known = append(known, x.early[[2]int{l, lead}]...)
			guessed := g.guess(token, l, lead, r.used)
			sets := [3][]int32{known, guessed, append(slices.Clone(known), guessed...)}
			for i, set := range sets {
				slices.Sort(set)
				for _, e := range slices.Compact(set) {
					if d.IsResident(shape.Key(l, e)) {
						continue
					}
					sums[i].reads++
					if slices.Contains(ids, e) {
						sums[i].right++
						sums[i].covered++
					}
				}
			}
			for _, e := range guessed {
				if !slices.Contains(known, e) && !d.IsResident(shape.Key(l, e)) {
					onlyReads++
					if slices.Contains(ids, e) {
						onlyRight++
					}
				}
			}
			for _, e := range ids {
				if !d.IsResident(shape.Key(l, e)) {
					misses++
				}
			}
		}
		d.Visit(l, len(ids)/r.used, ids, &plan)
		if x.id >= 0 && !x.prompt {
			table.learn(x.id, l, ids)
		}
	})
	pct := func(a, b int) float64 { return 100 * float64(a) / float64(max(1, b)) }
	of := func(s tally) worth { return worth{pct(s.covered, misses), pct(s.right, s.reads)} }
	return of(sums[0]), of(sums[1]), of(sums[2]), pct(onlyRight, onlyReads)
}

// What routes alike would add to token ids and routers at the same lead is told in
// docs/streaming.md: it is why there is no predictor of it.
func TestWhatTheLookalikeWouldAdd(t *testing.T) {
	spec, err := synth.Preset("tiny")
	if err != nil {
		t.Fatal(err)
	}
	spec.Layers, spec.Embd, spec.Experts, spec.Used, spec.ExpertFF, spec.Vocab, spec.Topics, spec.Ctx = 8, 512, 128, 8, 32, 8000, 16, 2048
	topics, demo := DefaultConfig(), DefaultConfig()
	topics.Model, topics.Raw, topics.Cache = filepath.Join(conform.TempDir(t), "topics.gguf"), true, Budget{Bytes: 1 << 40}
	if err := synth.Write(topics.Model, spec); err != nil {
		t.Fatal(err)
	}
	demo.Model, demo.Cache = filepath.Join("demo", "tiny-stories-moe-q8_0.gguf"), Budget{Bytes: 1 << 40}
	for name, r := range map[string]*routed{
		"topics": recordRoutes(t, topics, 60, "lomu tafe nilo", "ruki sane", "pafo dube gisa", "nilo ruki dube"),
		"demo":   recordRoutes(t, demo, 60, "Tell me a story about a dog.", "Tell me about a cat and a bird.", "A story about the sea.", "What did the girl find?"),
	} {
		for _, lead := range []int{1, 2, 4} {
			base, alike, all, only := r.foresees(t, "lookalike", 2.2, lead)
			t.Logf("%s, %d early: ids and routers cover %.1f %% of the misses (right %.1f), the look-alike %.1f (%.1f), all %.1f (%.1f); its own reads are right in %.1f %%",
				name, lead, base.covers, base.right, alike.covers, alike.right, all.covers, all.right, only)
			// A guess is read from a chance of 0.3 on (leastWorth of engine/expert).
			if base.covers < 40 || alike.covers < 10 || all.covers > base.covers+5 || only > 30 {
				t.Errorf("%s, %d early: it would be worth a predictor by now", name, lead)
			}
		}
	}
	t.Run("recorded", func(t *testing.T) { // without token ids and routers run early
		for _, name := range []string{"qwen", "gptoss"} {
			r := recordedRoute(t, name)
			for _, lead := range []int{1, 4} {
				_, alike, _, _ := r.foresees(t, "lookalike", 2.2, lead)
				t.Logf("%s, %d early: the look-alike covers %.1f %% of the misses (right %.1f)", name, lead, alike.covers, alike.right)
				if alike.covers < 10 || alike.covers > 50 {
					t.Errorf("%s, %d early: %.1f %%", name, lead, alike.covers)
				}
			}
		}
	})
}
