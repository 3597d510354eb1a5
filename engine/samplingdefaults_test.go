package engine

import (
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/gguf/gguftest"
	"bmoe/internal/conform"
)

// A model's file may say how it is sampled: that holds where the user has said nothing,
// and is refused by name where it makes no sense.
func TestSamplingDefaultsOfTheModel(t *testing.T) {
	write := func(temp float32) Config {
		cfg := DefaultConfig()
		cfg.Threads = 1
		cfg.Model = gguftest.Rewrite(t, conform.File(t, "models/qwen3moe.gguf"), func(m *gguftest.Model) {
			m.Set["general.sampling.temp"], m.Set["general.sampling.top_k"] = temp, int32(7)
			m.Set["general.sampling.top_p"], m.Set["general.sampling.min_p"] = float32(0.5), float32(0.25)
			m.Set["general.sampling.penalty_repeat"], m.Set["general.sampling.penalty_last_n"] = float32(1.5), int32(-1)
		})
		return cfg
	}
	cfg := write(0.75)
	cfg.Sampling.TopK = 9
	cfg.Origins = map[string]string{"top-k": backend.FromFlag}
	s := open(t, cfg)
	got := s.cfg.Sampling
	if got.Temp != 0.75 || got.TopP != 0.5 || got.MinP != 0.25 || got.RepeatPenalty != 1.5 || got.RepeatLastN != s.cfg.Ctx {
		t.Errorf("sampled with %+v, not as the model says", got)
	}
	if got.TopK != 9 {
		t.Errorf("top-k is %d: the model's, not the user's", got.TopK)
	}
	if bad, err := Open(t.Context(), write(-3), nil); err == nil {
		bad.Close()
		t.Error("a negative temperature is taken")
	} else if says := err.Error(); !strings.Contains(says, "general.sampling") || !strings.Contains(says, "temp") || strings.Contains(says, "\n") {
		t.Errorf("refused with %q", says)
	}
}
