package engine

import (
	"fmt"
	"slices"
	"testing"

	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// A model whose experts' gate and up lie in one tensor, with a scale for each
// expert, streams to the bits that it has resident.
func TestFusedExpertsStream(t *testing.T) {
	path := gguftest.Rewrite(t, conform.File(t, "models/qwen3moe.gguf"), func(m *gguftest.Model) {
		for i := range 3 {
			name := func(s string) string { return fmt.Sprintf("blk.%d.ffn_%s_exps.", i, s) }
			gate, up := m.Take(t, name("gate")+"weight"), m.Take(t, name("up")+"weight")
			const experts = 8
			fused := gguftest.Tensor{Name: name("gate_up") + "weight", Type: gate.Type, Dims: []int64{gate.Dims[0], 2 * gate.Dims[1], experts}}
			for e := range experts {
				for _, x := range []gguftest.Tensor{gate, up} {
					n := len(x.Data) / experts
					fused.Data = append(fused.Data, x.Data[e*n:][:n]...)
				}
			}
			m.Add(fused, gguftest.F32(name("down")+"scale", []float32{1, 1.1, 1.2, 1.3, 0.9, 0.8, 0.7, 0.6}, experts))
		}
	})
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Threads = path, true, 2
	resident := cfg
	resident.Stream, resident.Dense = false, DenseMmap
	want, _ := outcome(t, resident)
	cfg.Cache = Budget{Bytes: layerBytes(t, cfg)}
	for _, lanes := range []int{1, 4} {
		cfg.Lanes = lanes
		got, run := outcome(t, cfg)
		if got.hash != want.hash || !slices.Equal(got.logits, want.logits) {
			t.Errorf("%d lanes: another text or other logits than resident", lanes)
		}
		if run.Sum.Evictions == 0 {
			t.Error("nothing was evicted: the case shows nothing")
		}
	}
}
