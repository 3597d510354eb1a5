// Package synth writes models of the qwen3moe and gpt-oss families with random
// weights, of any shape and in any of the usual types: tiny ones for tests,
// gigabytes for benchmarks. The weights are scaled so that activations keep their size from
// layer to layer, experts are all used, and the text does not fall into a loop
// of few tokens.
package synth

import (
	"fmt"
	"slices"
	"strings"
)

// Spec is the shape of a model to be written. Zero fields of the last group
// have a use; all others must be set, most easily by starting from Preset.
type Spec struct {
	Layers   int
	Embd     int // width of the residual stream
	Heads    int
	KVHeads  int
	HeadDim  int
	Experts  int // in each layer
	Used     int // of them for a token
	ExpertFF int // inner width of an expert
	Vocab    int
	Ctx      int    // the context length that the model claims
	Type     string // a tensor type as quant.Type prints it, or a mix; see Types

	Arch   string  // the family; empty: qwen3moe
	Window int     // positions that gpt-oss's windowed layers see
	Name   string  // general.name; empty: made from the shape
	Tied   bool    // no output.weight: the head is the token embedding
	Yarn   float64 // RoPE scaling factor over Ctx/Yarn positions; 0: none
	Seed   uint64
	Shards int // files to split the model over; 0 or 1: one
}

// presets are shapes by name.
var presets = map[string]Spec{
	"tiny": {Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256,
		Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"qwen3-30b-a3b": {Layers: 48, Embd: 2048, Heads: 32, KVHeads: 4, HeadDim: 128, Experts: 128, Used: 8, ExpertFF: 768,
		Vocab: 151936, Ctx: 40960, Type: "Q4_K_M"},
	"tiny-gpt-oss": {Arch: archGPTOSS, Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256,
		Vocab: 2048, Ctx: 1024, Type: "MXFP4_MOE", Window: 32},
	"gpt-oss-20b": {Arch: archGPTOSS, Layers: 24, Embd: 2880, Heads: 64, KVHeads: 8, HeadDim: 64, Experts: 32, Used: 4, ExpertFF: 2880,
		Vocab: 201088, Ctx: 131072, Type: "MXFP4_MOE", Window: 128, Yarn: 32},
}

// The families that can be written.
const (
	archQwen3MoE = "qwen3moe"
	archGPTOSS   = "gpt-oss"
)

// arch returns the family's GGUF name.
func (s *Spec) arch() string {
	if s.Arch == "" {
		return archQwen3MoE
	}
	return s.Arch
}

// Presets returns the names of the known shapes, sorted.
func Presets() []string {
	var names []string
	for name := range presets {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Preset returns the shape of the given name.
func Preset(name string) (Spec, error) {
	s, ok := presets[name]
	if !ok {
		return s, fmt.Errorf("unknown preset %q (known: %s)", name, strings.Join(Presets(), ", "))
	}
	return s, nil
}

// check returns an error that names the first field which cannot be used, by
// the name of its flag.
func (s *Spec) check() error {
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"layers", s.Layers, 1, 1 << 10}, {"embd", s.Embd, 1, 1 << 20}, {"heads", s.Heads, 1, 1 << 12}, {"kv-heads", s.KVHeads, 1, s.Heads},
		{"head-dim", s.HeadDim, 2, 1 << 12}, {"experts", s.Experts, 2, 1 << 12}, {"used", s.Used, 1, s.Experts},
		{"expert-ff", s.ExpertFF, 1, 1 << 20}, {"vocab", s.Vocab, minVocab, maxVocab}, {"ctx", s.Ctx, 1, 1 << 28},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("%s is %d, not %d to %d", f.name, f.value, f.lo, f.hi)
		}
	}
	switch {
	case s.arch() != archQwen3MoE && s.arch() != archGPTOSS:
		return fmt.Errorf("unknown family %q (known: %s, %s)", s.Arch, archGPTOSS, archQwen3MoE)
	case (s.arch() == archGPTOSS) != (s.Window > 0):
		return fmt.Errorf("window is %d: %s needs one, other families have none", s.Window, archGPTOSS)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("heads (%d) is not a multiple of kv-heads (%d)", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("head-dim is %d, not even", s.HeadDim)
	case s.Yarn != 0 && !(s.Yarn >= 1 && s.Yarn <= float64(s.Ctx)):
		return fmt.Errorf("yarn is %g, not 1 to ctx", s.Yarn)
	case s.Shards < 0:
		return fmt.Errorf("shards is %d", s.Shards)
	}
	if _, err := mixOf(s.Type); err != nil {
		return err
	}
	return nil
}

// name returns the model's name.
func (s *Spec) name() string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprintf("random %s %dx%d, %d of %d experts, %s", s.arch(), s.Layers, s.Embd, s.Used, s.Experts, s.Type)
}
