package engine

import (
	"context"
	"testing"

	"bmoe/internal/conform"
	"bmoe/internal/units"
)

// A forecast is what opening then comes to.
func TestForesee(t *testing.T) {
	c := DefaultConfig()
	c.Model = conform.File(t, "models/qwen3moe.gguf")
	for _, ceil := range []int{0, 1} {
		c.CacheCeil = ceil
		f, err := Foresee(context.Background(), c, 0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Config()
		if !f.Streams || f.Length != got.Ctx || f.Context != s.state.Bytes() || f.Experts != s.shape.Total() || f.Cycle != s.shape.TokenCycle() || f.Budget != min(got.Cache.Bytes, f.Experts) || f.Budget == 0 {
			t.Errorf("at most %d MiB: %+v; opened with %d MiB and a context of %d", ceil, f, units.MiBUp(got.Cache.Bytes), got.Ctx)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	c.Model = "none.gguf"
	if _, err := Foresee(context.Background(), c, 0); err == nil {
		t.Error("a forecast of no file")
	}
}
