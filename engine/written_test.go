package engine

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"bmoe/engine/gguf/synth"
	"bmoe/engine/model"
	"bmoe/internal/conform"
)

// smallModel writes a small random model of a family and returns a configuration
// over it.
func smallModel(t testing.TB, arch string) Config {
	t.Helper()
	spec, err := synth.Preset("tiny-" + arch)
	if err != nil {
		t.Fatal(err)
	}
	spec.Layers, spec.Embd, spec.Vocab, spec.Seed = 4, 64, 600, 5
	if spec.Experts > 0 {
		spec.Experts, spec.ExpertFF = 8, 32
	} else {
		spec.DenseFF = 64
	}
	if spec.SharedFF > 0 {
		spec.SharedFF = 32
	}
	if spec.Dense > 0 {
		spec.Dense, spec.DenseFF = 1, 64
	}
	cfg := DefaultConfig()
	cfg.Model, cfg.Threads, cfg.Ctx = filepath.Join(conform.TempDir(t), "m.gguf"), 2, 1024
	if err := synth.Write(cfg.Model, spec); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Families that can be written run: their text does not fall into a loop, and is
// that of the resident model to the bit, however it is computed.
func TestSmallModelsStream(t *testing.T) {
	for _, arch := range synth.Families() {
		if arch == "qwen3moe" {
			continue // what the other tests run
		}
		t.Run(arch, func(t *testing.T) {
			t.Parallel() // they wait for reads most of the time
			cfg := smallModel(t, arch)
			cfg.Raw = true
			resident := cfg
			resident.Stream, resident.Dense = false, DenseMmap
			want, run := outcome(t, resident)
			ids := slices.Clone(run.Result.TokenIDs)
			slices.Sort(ids)
			if different := len(slices.Compact(ids)); len(run.Result.TokenIDs) < 24 || different < 12 {
				t.Errorf("%d different tokens: %v", different, run.Result.TokenIDs)
			}
			if n := layerBytes(t, cfg); n > 0 { // else it is a dense model: nothing is streamed
				cfg.Cache = Budget{Bytes: n}
			}
			for _, threads := range []int{3, 1} {
				if testing.Short() && threads == 1 {
					continue
				}
				cfg.Threads, cfg.UBatch, cfg.Lanes, cfg.ReleaseMmap = threads, 5*threads, threads, threads == 1
				if got, _ := outcome(t, cfg); got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
					t.Errorf("%d threads: another text or other logits than resident", threads)
				}
			}
		})
	}
}

// Every architecture that runs can be written, so that it can be measured at any size.
func TestEveryFamilyCanBeWritten(t *testing.T) {
	if got, want := synth.Families(), model.Archs(); !slices.Equal(got, want) {
		t.Errorf("written: %q, run: %q", got, want)
	}
}

// Models of every type and mix run, and their logits are numbers.
func TestEveryTypeCanBeWritten(t *testing.T) {
	for _, kind := range synth.Types() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // they wait for reads most of the time
			cfg := DefaultConfig()
			cfg.Model, cfg.Threads, cfg.Ctx, cfg.Raw = filepath.Join(conform.TempDir(t), "m.gguf"), 1, 128, true
			spec := synth.Spec{Layers: 3, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 4, Used: 2, ExpertFF: 256, Vocab: 300, Ctx: 128, Type: kind, Seed: 2}
			if err := synth.Write(cfg.Model, spec); err != nil {
				t.Fatal(err)
			}
			got, run := outcome(t, cfg)
			if len(run.Result.TokenIDs) == 0 {
				t.Error("no text")
			}
			for i, x := range got.logits {
				if v := float64(math.Float32frombits(x)); math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 100 {
					t.Fatalf("logit %d is %g", i, v)
				}
			}
		})
	}
}
