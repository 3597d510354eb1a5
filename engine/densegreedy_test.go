package engine

import (
	"path/filepath"
	"slices"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
)

// denseGreedy is what llama.cpp makes of the prompt of TestDenseFamiliesAgreeWithThePeer
// on the models that the test writes: the likeliest tokens, by architecture.
var denseGreedy = map[string][]int32{
	"qwen3":  {1473, 1634, 1867, 798, 706, 1618, 673, 29, 651, 1753, 1332, 972, 50, 681, 1365, 303},
	"qwen35": {990, 1737, 1406, 727, 1587, 1011, 36, 1361, 645, 2029, 1093, 104, 847, 1981, 1247, 1676},
	"llama":  {1571, 1402, 69, 795, 1528, 479, 239, 1509, 1927, 1619, 239, 1165, 1377, 1402, 1883, 239},
	"gemma4": {1932, 25, 663, 1368, 475, 675, 1912, 1478, 1888, 1724, 1724, 1724, 1939, 391, 117, 664},
	"lfm2":   {146, 678, 1342, 505, 935, 804, 1504, 1853, 1853, 723, 1032, 1877, 437, 1824, 1808, 1136},
	"glm4":   {1608, 308, 821, 435, 1084, 1080, 821, 131, 634, 1159, 1080, 821, 1961, 1542, 1080, 803},
}

// Dense models of each family that has them say what llama.cpp says.
func TestDenseFamiliesAgreeWithThePeer(t *testing.T) {
	for arch, want := range denseGreedy {
		t.Run(arch, func(t *testing.T) {
			spec, err := synth.Preset("tiny-" + arch)
			if err != nil {
				t.Fatal(err)
			}
			spec.Layers, spec.Type, spec.Seed = 6, "F32", 7
			if spec.Experts > 0 {
				spec.Experts, spec.Used, spec.ExpertFF, spec.DenseFF = 0, 0, 0, 512
			}
			cfg := DefaultConfig()
			cfg.Model, cfg.Raw, cfg.Threads, cfg.Ctx, cfg.Sampling.Temp = filepath.Join(conform.TempDir(t), "m.gguf"), true, 2, 512, 0
			cfg.Numerics, cfg.KVType = "exact", "f16"
			if err := synth.Write(cfg.Model, spec); err != nil {
				t.Fatal(err)
			}
			s := open(t, cfg)
			run, err := s.Generate(t.Context(), backend.Request{Text: "tasi nopo vu meno zeli koru bi sanu tasi nopo", MaxTokens: len(want)})
			if err != nil || run.Err != nil {
				t.Fatal(err, run)
			}
			if !slices.Equal(run.Result.TokenIDs, want) {
				t.Errorf("said %v, llama.cpp %v", run.Result.TokenIDs, want)
			}
		})
	}
}
