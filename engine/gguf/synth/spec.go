// Package synth writes models of several families with random weights, of any shape and in any of the usual types: tiny ones for tests,
// gigabytes for benchmarks. The weights are scaled so that activations keep their size from
// layer to layer, experts are all used, and the text does not fall into a loop
// of few tokens.
package synth

import (
	"errors"
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

	Arch   string // the family; empty: qwen3moe
	Window int    // positions that windowed layers see
	// Of families that have them:
	SharedFF   int // inner width of the shared expert
	Dense      int // first layers that have a dense network in place of experts
	DenseFF    int // inner width of that
	RopeDims   int // entries of a head that turn; 0: all
	KeyHeads   int // heads of keys in recurrent layers
	ValueHeads int // heads of values in recurrent layers
	StateSize  int // of a recurrent layer's head: entries of a key, and of a value
	ValueDim   int // entries of a head's value where they are not those of its key
	Latent     int // length of the routed experts' input where it is shorter than the stream; 0: it is not
	QRank      int // of latent attention: entries of what queries are made of
	KVRank     int // and of what keys and values are made of
	NopeDim    int // entries of its keys that do not turn
	Streams    int // of the residual
	StreamRank int // of the streams' mixers
	IndexHeads int // of the indexers that choose keys
	IndexDim   int
	IndexTop   int // keys that they choose
	IndexRatio int // keys of a block that is chosen as a whole
	NgramRows  int // of the table of n-grams; 0: none
	Conv       int // positions that a recurrent layer's convolution sees
	Interval   int // every so many layers one has attention, or attention to every position
	Groups     int // of heads whose outputs are made short together
	GroupRank  int // what a group's are made

	Name   string  // general.name; empty: made from the shape
	Tied   bool    // no output.weight: the head is the token embedding
	Yarn   float64 // RoPE scaling factor over Ctx/Yarn positions; 0: none
	Seed   uint64
	Shards int // files to split the model over; 0 or 1: one
	Topics int // the text is of so many topics, and routing follows it (see topics); 0: neither
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
	"tiny-qwen35moe": {Arch: "qwen35moe", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		KeyHeads: 4, ValueHeads: 8, StateSize: 32, Conv: 4, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-qwen3next": {Arch: "qwen3next", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		KeyHeads: 4, ValueHeads: 8, StateSize: 32, Conv: 4, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-bailingmoe3": {Arch: "bailingmoe3", Layers: 8, Embd: 256, Heads: 8, KVHeads: 1, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		Dense: 1, DenseFF: 512, StateSize: 32, Conv: 4, Interval: 4, QRank: 128, KVRank: 64, NopeDim: 32, ValueDim: 32, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-qwen4exp": {Arch: "qwen4exp", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		KeyHeads: 4, ValueHeads: 8, StateSize: 32, Conv: 4, Interval: 4, Streams: 4, StreamRank: 32, IndexHeads: 4, IndexDim: 32, IndexTop: 64, IndexRatio: 4,
		NgramRows: 16000, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"qwen3.8-flash-next": {Arch: "qwen4exp", Layers: 48, Embd: 2560, Heads: 16, KVHeads: 2, HeadDim: 256, RopeDims: 64, Experts: 512, Used: 10, ExpertFF: 640, SharedFF: 640,
		KeyHeads: 16, ValueHeads: 48, StateSize: 128, Conv: 4, Interval: 4, Streams: 4, StreamRank: 320, IndexHeads: 4, IndexDim: 128, IndexTop: 2048, IndexRatio: 4,
		NgramRows: 320_000_000, Vocab: 248320, Ctx: 262144, Type: "Q8_0"},
	"tiny-deepseek2": {Arch: "deepseek2", Layers: 4, Embd: 256, Heads: 8, KVHeads: 1, HeadDim: 48, RopeDims: 16, ValueDim: 32, QRank: 256, KVRank: 256, Experts: 16, Used: 4,
		ExpertFF: 256, SharedFF: 256, Dense: 1, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-glm-dsa": {Arch: "glm-dsa", Layers: 4, Embd: 256, Heads: 8, KVHeads: 1, HeadDim: 48, RopeDims: 16, ValueDim: 32, QRank: 256, KVRank: 256, IndexHeads: 4, IndexDim: 64,
		IndexTop: 48, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256, Dense: 1, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-deepseek4": {Arch: "deepseek4", Layers: 4, Embd: 256, Heads: 8, KVHeads: 1, HeadDim: 64, RopeDims: 16, QRank: 256, IndexHeads: 4, IndexDim: 64, IndexTop: 8,
		Groups: 2, GroupRank: 128, Window: 32, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-gemma4": {Arch: "gemma4", Layers: 6, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, DenseFF: 512, Window: 32, Interval: 3,
		Vocab: 2048, Ctx: 1024, Type: "Q8_0", Tied: true},
	"glm-4.7-flash": {Arch: "deepseek2", Layers: 47, Embd: 2048, Heads: 20, KVHeads: 1, HeadDim: 256, RopeDims: 64, ValueDim: 256, QRank: 768, KVRank: 512, Experts: 64, Used: 4,
		ExpertFF: 1536, SharedFF: 1536, Dense: 1, DenseFF: 10240, Vocab: 154880, Ctx: 202752, Type: "Q4_K_M"},
	"gemma-4-26b-a4b": {Arch: "gemma4", Layers: 30, Embd: 2816, Heads: 16, KVHeads: 8, HeadDim: 256, Experts: 128, Used: 8, ExpertFF: 704, DenseFF: 2112, Window: 1024, Interval: 6,
		Vocab: 262144, Ctx: 262144, Type: "Q8_0", Tied: true},
	"tiny-qwen2moe": {Arch: "qwen2moe", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 512,
		Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-olmoe": {Arch: "olmoe", Layers: 4, Embd: 256, Heads: 8, KVHeads: 8, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-llama": {Arch: "llama", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 8, Used: 2, ExpertFF: 256, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-granitemoe": {Arch: "granitemoe", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256,
		Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-minimax-m2": {Arch: "minimax-m2", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256,
		Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-ernie4_5-moe": {Arch: "ernie4_5-moe", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 512,
		Dense: 1, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-glm4moe": {Arch: "glm4moe", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		Dense: 1, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-bailingmoe2": {Arch: "bailingmoe2", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		Dense: 1, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-qwen3": {Arch: "qwen3", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-glm4":  {Arch: "glm4", Layers: 4, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, DenseFF: 512, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-qwen35": {Arch: "qwen35", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, RopeDims: 16, DenseFF: 512,
		KeyHeads: 4, ValueHeads: 8, StateSize: 32, Conv: 4, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-lfm2": {Arch: "lfm2", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, DenseFF: 512, Conv: 3, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0", Tied: true},
	"mixtral-8x7b": {Arch: "llama", Layers: 32, Embd: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, Experts: 8, Used: 2, ExpertFF: 14336,
		Vocab: 32000, Ctx: 32768, Type: "Q4_K_M"},
	"glm-4.5-air": {Arch: "glm4moe", Layers: 46, Embd: 4096, Heads: 96, KVHeads: 8, HeadDim: 128, RopeDims: 64, Experts: 128, Used: 8, ExpertFF: 1408, SharedFF: 1408,
		Dense: 1, DenseFF: 10944, Vocab: 151552, Ctx: 131072, Type: "Q4_K_M"},
	"olmoe-1b-7b": {Arch: "olmoe", Layers: 16, Embd: 2048, Heads: 16, KVHeads: 16, HeadDim: 128, Experts: 64, Used: 8, ExpertFF: 1024, Vocab: 50304, Ctx: 4096, Type: "Q4_K_M"},
	"ernie-4.5-21b-a3b": {Arch: "ernie4_5-moe", Layers: 28, Embd: 2560, Heads: 20, KVHeads: 4, HeadDim: 128, Experts: 64, Used: 6, ExpertFF: 1536, SharedFF: 3072,
		Dense: 1, DenseFF: 12288, Vocab: 103424, Ctx: 131072, Type: "Q4_K_M"},
	"minimax-m2": {Arch: "minimax-m2", Layers: 62, Embd: 3072, Heads: 48, KVHeads: 8, HeadDim: 128, RopeDims: 64, Experts: 256, Used: 8, ExpertFF: 1536,
		Vocab: 200064, Ctx: 196608, Type: "Q4_K_M"},
	"ling-mini-2.0": {Arch: "bailingmoe2", Layers: 20, Embd: 2048, Heads: 16, KVHeads: 4, HeadDim: 128, RopeDims: 64, Experts: 256, Used: 8, ExpertFF: 512, SharedFF: 512,
		Dense: 1, DenseFF: 5120, Vocab: 157184, Ctx: 32768, Type: "Q4_K_M"},
	"qwen3-4b": {Arch: "qwen3", Layers: 36, Embd: 2560, Heads: 32, KVHeads: 8, HeadDim: 128, DenseFF: 9728, Vocab: 151936, Ctx: 40960, Type: "Q4_K_M", Tied: true},
	"tiny-laguna": {Arch: "laguna", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		Dense: 1, DenseFF: 512, Window: 32, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"tiny-lfm2moe": {Arch: "lfm2moe", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256,
		Dense: 2, DenseFF: 512, Conv: 3, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0", Tied: true},
	"tiny-nemotron_h_moe": {Arch: "nemotron_h_moe", Layers: 8, Embd: 256, Heads: 8, KVHeads: 2, HeadDim: 32, Experts: 16, Used: 4, ExpertFF: 256, SharedFF: 256,
		KeyHeads: 4, ValueHeads: 16, ValueDim: 32, StateSize: 32, Conv: 4, Interval: 4, Vocab: 2048, Ctx: 1024, Type: "Q8_0"},
	"nemotron-3-nano-30b-a3b": {Arch: "nemotron_h_moe", Layers: 52, Embd: 2688, Heads: 32, KVHeads: 2, HeadDim: 128, Experts: 128, Used: 6, ExpertFF: 1856, SharedFF: 3712,
		KeyHeads: 8, ValueHeads: 64, ValueDim: 64, StateSize: 128, Conv: 4, Interval: 7, Vocab: 131072, Ctx: 262144, Type: "Q8_0"},
	"lfm2-8b-a1b": {Arch: "lfm2moe", Layers: 24, Embd: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, Experts: 32, Used: 4, ExpertFF: 1792,
		Dense: 2, DenseFF: 7168, Conv: 3, Interval: 4, Vocab: 65536, Ctx: 128000, Type: "Q4_K_M", Tied: true},
	"qwen3.6-35b-a3b": {Arch: "qwen35moe", Layers: 40, Embd: 2048, Heads: 16, KVHeads: 2, HeadDim: 256, RopeDims: 64, Experts: 256, Used: 8, ExpertFF: 512, SharedFF: 512,
		KeyHeads: 16, ValueHeads: 32, StateSize: 128, Conv: 4, Interval: 4, Vocab: 248320, Ctx: 262144, Type: "Q4_K_M"},
	"qwen3-next-80b-a3b": {Arch: "qwen3next", Layers: 48, Embd: 2048, Heads: 16, KVHeads: 2, HeadDim: 256, RopeDims: 64, Experts: 512, Used: 10, ExpertFF: 512, SharedFF: 512,
		KeyHeads: 16, ValueHeads: 32, StateSize: 128, Conv: 4, Interval: 4, Vocab: 151936, Ctx: 262144, Type: "Q4_K_M"},
}

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

// Size is a number of a Spec.
type Size struct {
	Name  string // also of its flag
	Value *int
	Help  string

	lo, hi int // its range; hi is 0 if only some families have it
}

// Sizes returns the spec's numbers, to be read or set.
func (s *Spec) Sizes() []Size {
	least := func(n int) int { // of what belongs to experts
		if s.Experts == 0 {
			return 0
		}
		return n
	}
	return []Size{
		{"layers", &s.Layers, "layers", 1, 1 << 10},
		{"embd", &s.Embd, "width of the residual stream", 1, 1 << 20},
		{"heads", &s.Heads, "attention heads", 1, 1 << 12},
		{"kv-heads", &s.KVHeads, "key and value heads", 1, s.Heads},
		{"head-dim", &s.HeadDim, "width of a head", 2, 1 << 12},
		{"rope-dims", &s.RopeDims, "entries of a head that turn with the position (default: all)", 0, 0},
		{"experts", &s.Experts, "experts in each layer (0: none, in dense families)", least(2), 1 << 12},
		{"used", &s.Used, "experts that a token is routed to", least(1), max(1, s.Experts)},
		{"expert-ff", &s.ExpertFF, "inner width of an expert", least(1), 1 << 20},
		{"shared-ff", &s.SharedFF, "inner width of the shared expert", 0, 0},
		{"dense", &s.Dense, "first layers, with one dense network in place of experts", 0, 0},
		{"dense-ff", &s.DenseFF, "inner width of that network", 0, 0},
		{"vocab", &s.Vocab, "tokens in the vocabulary", minVocab, maxVocab},
		{"ctx", &s.Ctx, "context length that the model claims", 1, 1 << 28},
		{"window", &s.Window, "positions that windowed layers see", 0, 0},
		{"key-heads", &s.KeyHeads, "heads of keys in recurrent layers", 0, 0},
		{"value-heads", &s.ValueHeads, "heads of values in recurrent layers", 0, 0},
		{"state-size", &s.StateSize, "size of a head in recurrent layers", 0, 0},
		{"value-dim", &s.ValueDim, "entries of a value head in Mamba-2 layers and with latent attention", 0, 0},
		{"q-rank", &s.QRank, "latent attention: length of what queries are made of", 0, 0},
		{"kv-rank", &s.KVRank, "latent attention: length of what keys and values are made of", 0, 0},
		{"nope-dim", &s.NopeDim, "latent attention: entries of a key that do not turn", 0, 0},
		{"streams", &s.Streams, "vectors of the residual (qwen4exp)", 0, 0},
		{"stream-rank", &s.StreamRank, "rank of the streams' mixers", 0, 0},
		{"index-heads", &s.IndexHeads, "heads of the indexers that choose keys", 0, 0},
		{"index-dim", &s.IndexDim, "width of their heads", 0, 0},
		{"index-top", &s.IndexTop, "keys that they choose", 0, 0},
		{"index-ratio", &s.IndexRatio, "keys of a block that is chosen as a whole", 0, 0},
		{"ngram-rows", &s.NgramRows, "rows of the table of n-grams", 0, 0},
		{"latent", &s.Latent, "length of the routed experts' input, if they have a shorter one (nemotron_h_moe)", 0, 0},
		{"conv", &s.Conv, "positions that a recurrent layer's convolution sees", 0, 0},
		{"interval", &s.Interval, "every so many layers one has attention, where others are recurrent; in gemma4 attention without a window", 0, 0},
		{"groups", &s.Groups, "groups of heads whose outputs are made short together", 0, 0},
		{"group-rank", &s.GroupRank, "what a group's outputs are made", 0, 0},
	}
}

// check returns an error that names the first field which cannot be used, by
// the name of its flag.
func (s *Spec) check() error {
	for _, x := range s.Sizes() {
		if x.hi > 0 && (*x.Value < x.lo || *x.Value > x.hi) {
			return fmt.Errorf("%s is %d, not %d to %d", x.Name, *x.Value, x.lo, x.hi)
		}
	}
	switch {
	case families[s.arch()].layer == nil:
		return fmt.Errorf("unknown family %q (known: %s)", s.Arch, strings.Join(Families(), ", "))
	case s.Experts == 0 && !families[s.arch()].dense:
		return fmt.Errorf("experts is 0, not 2 to %d: %s has no dense models", 1<<12, s.arch())
	case s.Experts == 0 && (s.Used > 0 || s.ExpertFF > 0):
		return fmt.Errorf("used is %d and expert-ff %d, but experts is 0", s.Used, s.ExpertFF)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("heads (%d) is not a multiple of kv-heads (%d)", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return fmt.Errorf("head-dim is %d, not even", s.HeadDim)
	case s.Yarn != 0 && !(s.Yarn >= 1 && s.Yarn <= float64(s.Ctx)):
		return fmt.Errorf("yarn is %g, not 1 to ctx", s.Yarn)
	case s.RopeDims < 0 || s.RopeDims > s.HeadDim || s.RopeDims%2 != 0:
		return fmt.Errorf("rope-dims is %d, not an even number of head-dim (%d) at most", s.RopeDims, s.HeadDim)
	case s.Topics < 0 || s.Topics > 256:
		return fmt.Errorf("topics is %d, not 0 to 256", s.Topics)
	case s.Topics > 0 && s.arch() != archQwen3MoE && s.arch() != archGPTOSS:
		return fmt.Errorf("topics are for %s and %s", archQwen3MoE, archGPTOSS)
	case s.Topics > 0 && s.Tied:
		return errors.New("topics do not go with a tied head: one that likes what the embedding says repeats the last token")
	case s.Shards < 0:
		return fmt.Errorf("shards is %d", s.Shards)
	}
	if err := families[s.arch()].check(s); err != nil {
		return err
	}
	_, err := mixOf(s.Type)
	return err
}

// name returns the model's name.
func (s *Spec) name() string {
	if s.Name != "" {
		return s.Name
	}
	return fmt.Sprintf("random %s %dx%d, %d of %d experts, %s", s.arch(), s.Layers, s.Embd, s.Used, s.Experts, s.Type)
}
