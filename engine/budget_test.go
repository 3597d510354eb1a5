package engine

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/expert/policy"
	"bmoe/engine/gguf/gguftest"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
	"bmoe/internal/host"
	"bmoe/internal/units"
)

// mixedModel writes a model whose layers are of several types: layer 0 of F16,
// layer 1 of Q4_0 with a gate of Q8_0, the others of Q4_0.
func mixedModel(t *testing.T) string {
	t.Helper()
	write := func(kind string, layers int) string {
		path := filepath.Join(conform.TempDir(t), kind+".gguf")
		spec := synth.Spec{Layers: layers, Embd: 512, Heads: 4, KVHeads: 2, HeadDim: 32, Experts: 8, Used: 2, ExpertFF: 320, Vocab: 512, Ctx: 256, Seed: 3, Type: kind}
		if err := synth.Write(path, spec); err != nil {
			t.Fatal(err)
		}
		return path
	}
	take := func(m *gguftest.Model, kind string, layer string, names *regexp.Regexp) {
		gguftest.Rewrite(t, write(kind, 1), func(from *gguftest.Model) {
			for _, x := range from.Tensors {
				if names.MatchString(x.Name) {
					x.Name = strings.Replace(x.Name, "blk.0.", layer, 1)
					m.Take(t, x.Name)
					m.Add(x)
				}
			}
		})
	}
	return gguftest.Rewrite(t, write("Q4_0", 4), func(m *gguftest.Model) {
		take(m, "F16", "blk.0.", regexp.MustCompile(`_exps`))
		take(m, "Q8_0", "blk.1.", regexp.MustCompile(`ffn_gate_exps`))
	})
}

// TestBudgetBoundsSlotsOfMixedTypes: whatever the mix of types, slots take no
// more than the budget and a few pages; when nothing is free any more nearly all
// the bytes that the budget names are held; and the text is the same as with
// room for all.
func TestBudgetBoundsSlotsOfMixedTypes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = mixedModel(t), true, 2
	want, _ := outcome(t, cfg)
	cycle := int(units.MiBUp(open(t, cfg).shape.TokenCycle()))
	for _, n := range []int{max(1, cycle/2), cycle, 2 * cycle, 3 * cycle} {
		cfg.Cache, cfg.ForceCache = Budget{Bytes: units.FromMiB(int64(n))}, true
		s := open(t, cfg)
		r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 48})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		st := s.streamer.Stats()
		budget := units.FromMiB(int64(n))
		if st.ArenaBytes > budget+4*int64(os.Getpagesize()) || r.Result.Memory.CacheMiB != units.InMiB(st.ArenaBytes) {
			t.Errorf("a budget of %d MiB took %d bytes for slots; %v MiB reported", n, st.ArenaBytes, r.Result.Memory.CacheMiB)
		}
		if st.SlotsUsed+st.SlotsAhead != st.Slots {
			t.Errorf("a budget of %d MiB: %d of %d slots are used after 48 tokens", n, st.SlotsUsed, st.Slots)
		}
		if part := float64(st.Resident) / float64(budget); n >= cycle && (part < 0.90 || part > 1) {
			t.Errorf("slots of %.3f of a budget of %d MiB are taken", part, n)
		}
		if n > cycle {
			continue
		}
		got, _ := outcome(t, cfg)
		if got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
			t.Errorf("a budget of %d MiB: another text or other logits than with room for all", n)
		}
	}
}

func TestAutoBudget(t *testing.T) {
	sizes := make([]int64, 48)
	for i := range sizes {
		sizes[i] = 3 << 20
	}
	shape := policy.Shape{Experts: 128, Used: 8, Bytes: sizes, Slots: sizes} // a token cycle of 1152 MiB, 18 GiB in all
	const gib, all = 1 << 30, host.HasAvailable | host.HasTotal
	for _, c := range []struct {
		name   string
		m      host.Memory
		others int64
		share  float64
		want   int // MiB
	}{
		{"a large host", host.Memory{Available: 100 * gib, Has: all}, 0, 0, 18 << 10},
		{"a laptop", host.Memory{Available: 13 * gib, Has: all}, gib, 0, 11 << 10 * 3 / 4},
		{"a token cycle before the reserve", host.Memory{Available: 2 * gib, Has: all}, 0, 0, 1152},
		{"no room for a token cycle", host.Memory{Available: 1200 << 20, Has: all}, 0, 0, 176 * 3 / 4},
		{"a container reserves a tenth", host.Memory{Available: 4000 << 20, Limit: 5 * gib, Has: all | host.HasLimit}, 100 << 20, 0, (4000 - 100 - 400) * 3 / 4},
		{"a small container reserves 64 MiB", host.Memory{Available: 400 << 20, Limit: gib, Has: all | host.HasLimit}, 0, 0, (400 - 64) * 3 / 4},
		{"no memory at all", host.Memory{Available: 1 << 20, Has: all}, gib, 0, 24},
		{"an odd number of bytes", host.Memory{Available: 12*gib + 12345, Has: all}, 777, 0, 11 << 10 * 3 / 4},
		{"a host that does not tell", host.Memory{}, gib, 0, 18 << 10},
		{"a share", host.Memory{Available: gib, Has: all}, 0, 0.25, 18 << 8},
	} {
		if got := autoBudget(shape, c.share, c.m, c.others); got != units.FromMiB(int64(c.want)) {
			t.Errorf("%s: %d bytes, want %d MiB", c.name, got, c.want)
		}
	}
	// What a share is of is what the experts take in the cache.
	demo := policy.Shape{Experts: 32, Used: 4, Bytes: slices.Repeat([]int64{104448}, 6), Slots: slices.Repeat([]int64{122880}, 6)}
	for share, want := range map[float64]int{0.4: 9, 1: 23} { // of 22.5 MiB
		if got := autoBudget(demo, share, host.Memory{}, 0); got != units.FromMiB(int64(want)) {
			t.Errorf("%g of the demo's experts: %d bytes, want %d MiB", share, got, want)
		}
	}
}

func TestTooMuchNamesEveryPart(t *testing.T) {
	d := demand{context: 300 << 20, scratch: 20 << 20, dense: 900 << 20}
	want := "a budget of 600 MiB, with 300 MiB for a context of 4096, 20 MiB of scratch, 900 MiB of dense weights, is above the 1500 MiB of memory available"
	if got := tooMuch(600<<20, 1500<<20, d, 4096); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := remedy(600<<20, d); strings.Contains(got, "{ctx}") {
		t.Errorf("a context that fits: %s", got)
	}
	d.context = 10 << 30
	if got := remedy(600<<20, d); !strings.Contains(got, "lower {ctx}") {
		t.Errorf("a context that alone does not fit: %s", got)
	}
}
