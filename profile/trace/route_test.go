package trace

import (
	"strings"
	"testing"

	"bmoe/internal/conform"
)

const head = "# route_trace v1\n# model=m.gguf arch=x n_layer=3 n_expert=4 n_expert_used=2\n# layer=0 expert_bytes=10 dense_bytes=1\n" +
	"# layer=2 expert_bytes=12 slot_bytes=16\nturn,phase,step,layer,slot,expert,weight,residency,expert_bytes,dropped,token_id\n"

func TestRoute(t *testing.T) {
	r, err := ReadRoute(strings.NewReader(head +
		"0,0,0,0,0,3,0.75,0,10,0,7\n0,0,0,0,1,1,0.25,0,10,0,7\n0,0,0,2,0,2,0.5,0,12,0,7\n0,0,0,2,1,0,0.5,0,12,0,7\n" +
		"0,1,1,0,0,1,0.5,1,0,0,\n0,1,1,0,1,2,0.5,0,10,0,\n0,1,1,2,0,0,0.5,1,0,0,\n0,1,1,2,1,1,0.5,0,12,0,\n" +
		"0,1,2,0,0,1,0.5,1,0,0,\n0,1,2,0,1,1")) // the last token was cut off
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Turns) != 1 || len(r.Turns[0].Prompt) != 1 || len(r.Turns[0].Decoded) != 1 {
		t.Fatalf("got %+v", r.Turns)
	}
	p, d := r.Turns[0].Prompt[0], r.Turns[0].Decoded[0]
	if p.ID != 7 || d.ID != -1 || p.Experts[0] != 3 || p.Experts[3] != 0 || p.Weights[1] != 0.25 || d.Experts[2] != 0 {
		t.Errorf("prompt %+v, decoded %+v", p, d)
	}
	if r.SlotBytes[0] != 0 || r.SlotBytes[1] != 16 || r.Layers[1] != 2 {
		t.Errorf("layers %v, slots %v", r.Layers, r.SlotBytes)
	}
}

func TestBadRoutesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"something else": {"a,b\n", "line 1: not a route trace"},
		"empty":          {"", "it is empty"},
		"no rows":        {head, "it ends before the first route"},
		"no model":       {"# route_trace v1\nturn,phase,step,layer,slot,expert,weight\n", "line 2: the lines that describe"},
		"column":         {strings.Replace(head, "expert,weight", "expert,w", 1), "line 5: the column weight"},
		"expert":         {head + "0,0,0,0,0,4,0.5,0,0,0,\n", "line 6: expert 4 of 4"},
		"layer":          {head + "0,0,0,1,0,3,0.5,0,0,0,\n", "line 6: layer 1 was not described"},
		"twice":          {head + "0,0,0,0,0,3,0.5,0,0,0,\n0,0,0,0,0,3,0.5,0,0,0,\n", "line 7: turn 0, step 0"},
		"hole":           {head + "0,0,0,0,0,3,0.5,0,0,0,\n0,1,1,0,0,3,0.5,0,0,0,\n", "prompt token 0 has only some"},
		"hole later":     {head + "0,1,1,0,0,3,0.5,0,0,0,\n0,1,2,0,0,3,0.5,0,0,0,\n", "decoded token 0 has no expert"},
		"short":          {head + "0,0,0\n", "line 6: 3 cells"},
		"number":         {head + "0,0,0,0,0,x,0.5,0,0,0,\n", "line 6: expert is \"x\""},
	} {
		if _, err := ReadRoute(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestRecordedRoutes(t *testing.T) {
	for _, c := range []struct {
		name                          string
		layers, used, prompt, decoded int
	}{{"qwen", 48, 6, 28, 128}, {"gptoss", 36, 2, 85, 64}} {
		r, err := OpenRoute(conform.Shared(t, "traces/"+c.name+".route.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Turns) != 1 || len(r.Layers) != c.layers || r.Used != c.used || len(r.Turns[0].Prompt) != c.prompt || len(r.Turns[0].Decoded) != c.decoded {
			t.Errorf("%s: %d layers, %d used, %d and %d tokens", c.name, len(r.Layers), r.Used, len(r.Turns[0].Prompt), len(r.Turns[0].Decoded))
		}
	}
}

func FuzzReadRoute(f *testing.F) {
	f.Add(head + "0,0,0,0,0,3,0.75,0,10,0,7\n")
	f.Fuzz(func(t *testing.T, s string) { ReadRoute(strings.NewReader(s)) })
}
