package replay

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

func file(path string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(path) }
}

func text(s string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
}

const mib = 1 << 20

// The hit rates of the answers alone, in per cent, that the reference's own replay
// gives: belady, lru, lfu, layer, layerlfu.
var decodeOnly = map[string]map[int64][5]float64{
	"gptoss": {250: {17.9, 0.0, 8.2, 19.1, 19.1}, 500: {29.4, 0.0, 14.2, 19.1, 19.1}, 750: {37.2, 0.0, 18.7, 19.1, 19.1}, 1000: {43.5, 17.7, 23.3, 19.1, 19.1},
		1500: {53.2, 18.0, 29.6, 25.9, 27.4}, 2000: {59.9, 30.9, 35.0, 34.5, 34.2}, 3000: {67.8, 44.8, 43.6, 45.9, 44.5}, 4000: {73.0, 51.7, 49.8, 52.1, 50.8},
		6000: {81.0, 59.5, 59.7, 61.6, 61.8}, 8000: {85.0, 65.9, 66.1, 67.7, 67.7}},
	"qwen": {250: {27.5, 0.0, 17.1, 38.3, 38.3}, 500: {45.3, 0.0, 26.6, 38.3, 38.3}, 750: {55.4, 0.0, 34.1, 38.3, 38.3}, 1000: {62.7, 37.7, 40.2, 42.3, 45.1},
		1500: {72.7, 47.0, 50.3, 50.5, 55.2}, 2000: {79.4, 56.5, 58.6, 59.4, 63.3}, 3000: {87.8, 70.6, 71.3, 71.1, 74.2}, 4000: {92.7, 80.3, 80.8, 79.7, 81.7},
		6000: {96.6, 92.1, 92.0, 90.3, 91.0}, 8000: {97.1, 96.0, 96.0, 95.0, 95.2}},
}

func TestReplayIsTheReferencesToTheDecimal(t *testing.T) {
	policies := []string{"belady", "lru", "lfu", "layer", "layerlfu"}
	for name, table := range decodeOnly {
		open := file(conform.Shared(t, "traces/"+name+".route.csv"))
		var cases []Case
		var want []float64
		for budget, row := range table {
			for i, p := range policies {
				cases = append(cases, Case{Policy: p, Budget: budget * mib})
				want = append(want, row[i])
			}
		}
		_, out, err := Run(open, cases)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if got := fmt.Sprintf("%.1f", o.Decode.HitPct()); got != fmt.Sprintf("%.1f", want[i]) {
				t.Errorf("%s, %s at %d MiB: %s %%, want %.1f", name, o.Policy, o.Budget/mib, got, want[i])
			}
		}
	}
}

// What the recording engine found at its budget, prompt and answer together.
func TestReplayFindsWhatWasRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget int64
		want   float64
	}{{"qwen", 4000, 74.9}, {"gptoss", 3000, 32.4}} {
		open := file(conform.Shared(t, "traces/"+c.name+".route.csv"))
		_, out, err := Run(open, []Case{{Policy: "lru", Budget: c.budget * mib}})
		if err != nil {
			t.Fatal(err)
		}
		recorded, _, ok, err := Recorded(open)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if got := out[0].All.HitPct(); math.Abs(got-c.want) > 0.05 || math.Abs(recorded-c.want) > 0.05 {
			t.Errorf("%s: %.2f %% replayed, %.2f recorded, want %.1f", c.name, got, recorded, c.want)
		}
	}
}

// What the traces' own authors found, to the decimal: how much of a token's route the
// token before it had, the reuse ages, and the union of tokens in a row.
func TestAnalysis(t *testing.T) {
	for _, c := range []struct {
		name                  string
		overlap, twice, never float64
		union                 [3]float64
	}{{"qwen", 37.9, 9.3, 2.9, [3]float64{1.62, 2.15, 2.59}}, {"gptoss", 18.3, 13.1, 10.9, [3]float64{1.82, 2.51, 3.08}}} {
		in, err := os.Open(conform.Shared(t, "traces/"+c.name+".route.csv"))
		if err != nil {
			t.Fatal(err)
		}
		_, a, err := Analyze(in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		close := func(what string, got, want, by float64) {
			if math.Abs(got-want) > by {
				t.Errorf("%s, %s: %.2f, want %.2f", c.name, what, got, want)
			}
		}
		close("used by the token before", 100*a.Reuse[0], c.overlap, 0.06)
		close("used two tokens before", 100*a.Reuse[1], c.twice, 0.06)
		close("never before", 100*a.Reuse[8], c.never, 0.06)
		for i, want := range c.union {
			close("union", a.Union[i+1], want, 0.006)
		}
		sum := 0.0
		for _, s := range a.Reuse {
			sum += s
		}
		close("all ages", sum, 1, 1e-9)
		close("adjacent", 100*a.Adjacent, 2, 3)
	}
}

const small = "# route_trace v1\n# model=m.gguf arch=x n_layer=2 n_expert=4 n_expert_used=2\n# layer=0 expert_bytes=10 dense_bytes=1\n# layer=1 expert_bytes=10 dense_bytes=1\n" +
	"turn,phase,step,layer,slot,expert,weight\n"

func TestWhatCannotBeReplayed(t *testing.T) {
	for want, c := range map[string]struct {
		text, policy string
	}{
		`unknown policy "lur"; known: belady, lfu`:                     {small, "lur"},
		"it ends before the first route":                               {strings.Split(small, "turn,")[0], "lru"},
		"line 3: layer 0 has no expert_bytes":                          {strings.Replace(small, " expert_bytes=10", "", 1), "lru"},
		"line 1: not a route trace":                                    {strings.TrimPrefix(small, "# route_trace v1\n"), "lru"},
		"turn 0, step 3, layer 0: slot 1 is out of order":              {small + "0,1,3,0,1,2,0.5\n", "lru"},
		"turn 0, step 3, layer 0, slot 1 comes twice":                  {small + "0,1,3,0,0,1,0.5\n0,1,3,0,1,2,0.5\n0,1,3,0,1,3,0.5\n", "lru"},
		"turn 0, step 3, layer 0, slot 0: step 3 comes after step 4":   {small + "0,1,4,0,0,1,0.5\n0,1,4,0,1,2,0.5\n0,1,3,0,0,1,0.5\n", "lru"},
		"turn 0, step 3, layer 0, slot 0: layer 0 comes after layer 1": {small + "0,1,3,1,0,1,0.5\n0,1,3,1,1,2,0.5\n0,1,3,0,0,1,0.5\n", "lru"},
		"turn 0, step 0, layer 0, slot 0: phase 0 comes after phase 1": {small + "0,1,3,0,0,1,0.5\n0,1,3,0,1,2,0.5\n0,0,0,0,0,1,0.5\n", "lru"},
		"turn 0, step 3, layer 0, slot 0: turn 0 comes after turn 1":   {small + "1,1,3,0,0,1,0.5\n1,1,3,0,1,2,0.5\n0,1,3,0,0,1,0.5\n", "lru"},
		"turn 0, step 3, layer 0, slot 0 comes twice, or out of order": {small + "0,1,3,0,0,1,0.5\n0,1,3,0,1,2,0.5\n0,1,3,0,0,1,0.5\n0,1,3,0,1,2,0.5\n", "lru"},
		"line 5: the column step stands twice":                         {strings.Replace(small, "weight\n", "weight,step\n", 1), "lru"},
		"line 6: 6 cells, the column weight is missing":                {small + "0,1,3,0,0,1\n", "lru"},
		"line 6: expert 4 of 4":                                        {small + "0,1,3,0,0,4,0.5\n", "lru"},
	} {
		if _, _, err := Run(text(c.text), []Case{{Policy: c.policy, Budget: 100}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A budget that shrinks on the way gives up what no longer fits.
func TestBudgetThatChanges(t *testing.T) {
	var b strings.Builder
	b.WriteString(small)
	for step := range 8 {
		for layer := range 2 {
			fmt.Fprintf(&b, "0,1,%d,%d,0,1,0.5\n0,1,%d,%d,1,2,0.5\n", step, layer, step, layer)
		}
	}
	_, out, err := Run(text(b.String()), []Case{
		{Policy: "lru", Budget: 40}, {Policy: "lru", Budget: 40, Then: []Change{{Token: 4, Budget: 20}}}})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Decode.Hits != 28 || out[1].Decode.Hits != 12 || out[1].Decode.Evictions == 0 || len(out[1].Then) != 1 {
		t.Errorf("%+v", out)
	}
}

func BenchmarkReplay(b *testing.B) {
	for _, p := range []string{"lru", "lfu"} {
		b.Run(p, func(b *testing.B) {
			open := file(conform.Shared(b, "traces/qwen.route.csv"))
			for b.Loop() {
				if _, _, err := Run(open, []Case{{Policy: p, Budget: 2000 * mib}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(44767*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
