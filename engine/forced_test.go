package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/model"
	"bmoe/internal/conform"
)

// writeRoute writes a route trace of random experts and returns them: [tokens][layers x used].
func writeRoute(t *testing.T, layers, experts, used, prompt, decoded int) (string, [][]int32) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# route_trace v1\n# model=x arch=y n_layer=%d n_expert=%d n_expert_used=%d\n", layers, experts, used)
	for l := range layers {
		fmt.Fprintf(&b, "# layer=%d expert_bytes=100 dense_bytes=1\n", l)
	}
	b.WriteString("turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n")
	r := rand.New(rand.NewPCG(1, 2))
	var routes [][]int32
	for step := range prompt + decoded {
		var route []int32
		for l := range layers {
			for slot, e := range r.Perm(experts)[:used] {
				fmt.Fprintf(&b, "0,%d,%d,%d,%d,%d,%g,0,0\n", min(1, step/prompt), step, l, slot, e, 1/float64(used))
				route = append(route, int32(e))
			}
		}
		routes = append(routes, route)
	}
	path := filepath.Join(conform.TempDir(t), "route.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, routes
}

// TestForcedRoute: tokens get the experts of the trace, aligned where decoding
// begins, and every record says so.
func TestForcedRoute(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw = conform.File(t, "models/qwen3moe.gguf"), true
	info := open(t, cfg).arch.Info()
	layers, experts, used := info.MoELayers(), info.Experts.Experts, info.Experts.Used
	const inPrompt, decoded = 3, 6
	var routes [][]int32
	cfg.ForceRoute, routes = writeRoute(t, layers, experts, used-1, inPrompt, decoded)
	s := open(t, cfg)
	var got [][]int32
	s.compute.Watch(&model.Observer{Route: func(layer, tokens int, ids []int32, _ []float32) {
		if layer == 0 {
			got = append(got, make([][]int32, tokens)...)
		}
		for i := range tokens {
			at := len(got) - tokens + i
			got[at] = append(got[at], ids[i*(used-1):][:used-1]...)
		}
	}})
	r, err := s.Generate(context.Background(), backend.Request{Text: prompt, MaxTokens: 100})
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	n := r.Result.NPrompt
	if r.Result.NGen != decoded+1 || len(got) != n+decoded {
		t.Fatalf("%d tokens generated, %d routed; want %d and %d", r.Result.NGen, len(got), decoded+1, n+decoded)
	}
	for i := range got {
		want := inPrompt + i - n
		for want < 0 {
			want += inPrompt
		}
		if !slices.Equal(got[i], routes[want]) {
			t.Errorf("token %d of %d has %v, want %v", i, n, got[i], routes[want])
		}
	}
	if !slices.Contains(r.Result.Flags, "forced-route") || !slices.Contains(r.Result.Flags, "lossy") {
		t.Errorf("flags %v", r.Result.Flags)
	}
	if len(s.Warnings()) == 0 || !strings.Contains(s.Warnings()[0], "takes the routers' place") {
		t.Errorf("warnings %v", s.Warnings())
	}

	var refused *backend.SettingError
	cfg.ForceRoute, _ = writeRoute(t, layers, experts+1, used, 1, 1)
	if _, err := Open(context.Background(), cfg, nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "experts a layer") {
		t.Errorf("a trace of another shape: %v", err)
	}
}
