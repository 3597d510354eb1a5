package engine

import (
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// A model without experts answers, says that there is nothing to stream, and ignores
// what streaming is set by.
func TestDenseModel(t *testing.T) {
	path := gguftest.Rewrite(t, conform.File(t, "models/qwen3moe.gguf"), func(m *gguftest.Model) {
		m.OneExpert()
		m.Rename("qwen3moe", "qwen3")
		m.Set["qwen3.feed_forward_length"] = uint32(32)
	})
	var texts []string
	for _, dense := range []DensePolicy{DenseAnon, DenseMmap} {
		cfg := DefaultConfig()
		cfg.Model, cfg.Raw, cfg.Threads, cfg.Dense, cfg.Sampling.Temp = path, true, 2, dense, 0
		s := open(t, cfg)
		if w := strings.Join(s.Warnings(), "\n"); !strings.Contains(w, notMoE) {
			t.Errorf("%s: warnings %q", dense, w)
		}
		run, err := s.Generate(t.Context(), backend.Request{Text: "hello", MaxTokens: 8})
		if err != nil || run.Err != nil || run.Result.NGen != 8 {
			t.Fatalf("%s: %v, %+v", dense, err, run)
		}
		texts = append(texts, run.Result.TextSHA256)
		for _, row := range s.Settings() {
			if row.Name == "cache" && row.Idle != notMoE {
				t.Errorf("%s: the budget is idle because of %q", dense, row.Idle)
			}
		}
		for _, o := range s.Apply(map[string]string{"threads": "1", "ubatch": "8", "dense-weights": string(dense)}) {
			if o.Verdict != backend.Applied {
				t.Errorf("%s: %+v, which the screen says applies", dense, o)
			}
		}
		out := s.Apply(map[string]string{"cache": "100", "release-mmap": "on"})
		for _, o := range out {
			want := backend.Ignored
			if o.Setting == "release-mmap" {
				want = backend.Applied
				if dense == DenseMmap {
					want = backend.Declined // the weights are in the mapping
				}
			}
			if o.Verdict != want {
				t.Errorf("%s: %+v, want %s", dense, o, want)
			}
		}
	}
	if texts[0] != texts[1] {
		t.Error("the text depends on where the weights lie")
	}
}
