package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bmoe/profile"
)

const dogStory = "Tell me a story about a dog."

// resultKeys are the keys of --json, a dot between an object and its own.
var resultKeys = strings.Fields(`
	text token_ids n_prompt n_gen prefill_tps decode_tps ttft_s load_s
	s_per_token.wall s_per_token.compute s_per_token.mgmt s_per_token.stall s_per_token.other s_per_token.stall_union s_per_token.mgmt_serial
	ceiling_tps read_mib_per_token window_mib_per_token
	cache.hit_pct cache.lookups cache.hits cache.evictions cache.rereads cache.resident_mib cache.budget_mib cache.token_cycle_mib cache.policy
	io.engine io.lanes io.mib_s io.p50_ms io.p99_ms io.direct io.reads
	mapping.state mapping.reason mapping.weights_inside mapping.weights_checked
	process.cpu_s_per_token process.majflt_per_token process.rss_mib process.gc_pct
	config flags text_sha256`)

// lookUp finds a key with dots in a decoded object.
func lookUp(object map[string]any, key string) (any, bool) {
	outer, inner, nested := strings.Cut(key, ".")
	v, ok := object[outer]
	if !nested || !ok {
		return v, ok
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	return lookUp(o, inner)
}

func TestJSON(t *testing.T) {
	r := succeeds(t, "-p", dogStory, "-n", "64", "--temp", "0", "--json")
	if r.stderr != "" {
		t.Errorf("standard error: %q", r.stderr)
	}
	var object map[string]any
	parseJSON(t, r.stdout, &object)
	for _, key := range resultKeys {
		v, ok := lookUp(object, key)
		if !ok {
			t.Errorf("%s is missing", key)
		}
		hostLacks := key == "process.majflt_per_token" && runtime.GOOS == "windows"
		if v == nil && key != "mapping.reason" && !hostLacks {
			t.Errorf("%s is null where all is measured", key)
		}
	}
	var res profile.Result
	parseJSON(t, r.stdout, &res)
	p := &res.PerToken
	sum := p.Compute.Value + p.Mgmt.Value + p.Stall.Value + p.Other.Value
	if math.Abs(sum-p.Wall.Value) > 0.01*p.Wall.Value {
		t.Errorf("the parts add up to %v of %v", sum, p.Wall.Value)
	}
	if p.StallUnion.Value < p.Stall.Value || p.StallUnion.Value > p.Wall.Value {
		t.Errorf("stall %v, of at least one worker %v, wall %v", p.Stall.Value, p.StallUnion.Value, p.Wall.Value)
	}
	if want := 1 / (p.Wall.Value - p.Stall.Value); math.Abs(res.CeilingTPS.Value-want) > 0.001*want {
		t.Errorf("ceiling %v, want %v", res.CeilingTPS.Value, want)
	}
	if want := 1 / p.Wall.Value; math.Abs(res.DecodeTPS.Value-want) > 0.01*want {
		t.Errorf("%v tokens a second of %v seconds", res.DecodeTPS.Value, p.Wall.Value)
	}
	if res.NGen != 64 || len(res.TokenIDs) != 64 || res.StopReason != "length" {
		t.Errorf("%d tokens, %d ids, stopped by %s", res.NGen, len(res.TokenIDs), res.StopReason)
	}
	if sum := sha256.Sum256([]byte(res.Text)); hex.EncodeToString(sum[:]) != res.TextSHA256 {
		t.Errorf("text_sha256 is not that of %q", res.Text)
	}
	// 6 layers of 4 experts for each of the 63 tokens that were decoded.
	if n := res.Cache.Lookups.Value; n != 63*24 {
		t.Errorf("%d lookups", n)
	}
	// A budget above what all experts take is lowered to that, in whole MiB. How
	// much it is differs with the page and so with the host.
	var whole profile.Result
	parseJSON(t, succeeds(t, "-p", dogStory, "-n", "1", "--cache-mb", "64", "--json").stdout, &whole)
	budget, all := res.Cache.BudgetMiB.Value, whole.Cache.BudgetMiB.Value
	if all >= 64 || budget < 0.4*(all-1) || budget > 0.4*all+1 {
		t.Errorf("the demo's cache is %v MiB, its experts take %v", budget, all)
	}
	if r := &res.Cache; r.ResidentMiB.Value > r.BudgetMiB.Value {
		t.Errorf("%v MiB resident of a budget of %v", r.ResidentMiB.Value, r.BudgetMiB.Value)
	}
	config, _ := json.Marshal(object["config"])
	for _, want := range []string{`"io_threads":4`, fmt.Sprintf(`"cache_mb":%v,`, budget), `"ctx_size":512`, `"temp":0`, `"moe_stream":true`} {
		if !strings.Contains(string(config), want) {
			t.Errorf("config lacks %s: %s", want, config)
		}
	}
}

// What is not measured is null and never 0, and its object is there all the same.
func TestJSONWithoutStreaming(t *testing.T) {
	var object map[string]any
	parseJSON(t, succeeds(t, "-p", "hi", "-n", "1", "--json", "--moe-stream=false").stdout, &object)
	for _, key := range resultKeys {
		v, ok := lookUp(object, key)
		if !ok {
			t.Errorf("%s is missing", key)
		}
		outer, _, _ := strings.Cut(key, ".")
		if (outer == "cache" || outer == "io" || outer == "s_per_token" || outer == "decode_tps" || outer == "read_mib_per_token") && v != nil {
			t.Errorf("%s is %v, though nothing was streamed and one token was generated", key, v)
		}
	}
}

// The same text whichever way it is had: as it comes, as JSON, in lines; with
// the prompt given, in a file, or piped in.
func TestOneTextInEveryOutput(t *testing.T) {
	flags := []string{"-n", "40", "--temp", "0"}
	with := func(more ...string) []string { return append(more, flags...) }
	var res profile.Result
	parseJSON(t, succeeds(t, with("-p", dogStory, "--json")...).stdout, &res)
	if len(res.Text) < 80 {
		t.Fatalf("a short story: %q", res.Text)
	}
	plain := succeeds(t, with("-p", dogStory)...)
	if plain.stdout != res.Text+"\n" {
		t.Errorf("plain: %q", plain.stdout)
	}
	for _, want := range []string{"40 tokens", "tok/s", "compute", "mgmt", "stall", "other", "ceiling", "hits", "lanes 4 direct", "mapping mapped"} {
		if !strings.Contains(plain.stderr, want) {
			t.Errorf("the summary does not say %q: %s", want, plain.stderr)
		}
	}
	file := temp(t, "prompt.txt", []byte(dogStory+"\r\n"))
	if got := succeeds(t, with("-f", file)...).stdout; got != plain.stdout {
		t.Errorf("from a file: %q", got)
	}
	for _, more := range [][]string{nil, {"-f", "-"}} {
		cmd := program(with(more...)...)
		cmd.Stdin = strings.NewReader(dogStory + "\n")
		if r := finish(t, cmd); r.stdout != plain.stdout || r.code != 0 {
			t.Errorf("piped in: %q %q", r.stdout, r.stderr)
		}
	}
	text, steps := "", 0
	progress := succeeds(t, with("-p", dogStory, "--progress")...)
	for line := range strings.Lines(progress.stdout) {
		word, object, _ := strings.Cut(line, " ")
		if word != "BMOE_PROGRESS" {
			continue
		}
		var p progressLine
		parseJSON(t, object, &p)
		text += p.Text
		steps = p.Step
	}
	if text != res.Text || steps != 40 {
		t.Errorf("the deltas of %d steps make %q", steps, text)
	}
}

func TestProgress(t *testing.T) {
	r := succeeds(t, "-p", dogStory, "-n", "32", "--temp", "0", "--progress", "--cache-mb", "6", "--ubatch", "4")
	if r.stderr != "" {
		t.Errorf("standard error: %q", r.stderr)
	}
	var words []string
	var read float64
	var loads, nulls int
	var prefilled []int
	for line := range strings.Lines(r.stdout) {
		word, object, _ := strings.Cut(line, " ")
		words = append(words, word)
		var fields map[string]any
		parseJSON(t, object, &fields)
		has := func(names string) {
			for _, name := range strings.Fields(names) {
				if _, ok := fields[name]; !ok {
					t.Errorf("%s lacks %s: %s", word, name, object)
				}
			}
		}
		number := func(name string) float64 {
			f, ok := fields[name].(float64)
			if !ok {
				nulls++
			}
			return f
		}
		switch word {
		case "BMOE_READY":
			has("load_s arch n_ctx think_ctl n_expert_used")
			if fields["arch"] != "qwen3moe" || fields["n_ctx"] != 512.0 || fields["n_expert_used"] != 4.0 || fields["think_ctl"] != "template" {
				t.Errorf("ready: %s", object)
			}
		case "BMOE_BEGIN":
			has("id")
		case "BMOE_PREFILL":
			has("done n_prompt elapsed_s left_s")
			if done := int(number("done")); done != len(prefilled)*4 && done != int(number("n_prompt")) || words[len(words)-2] != "BMOE_BEGIN" && words[len(words)-2] != word {
				t.Errorf("%v, then %s", prefilled, line)
			} else {
				prefilled = append(prefilled, done)
			}
			if left, ok := fields["left_s"].(float64); ok == (len(prefilled) == 1) || left < 0 {
				t.Errorf("an estimate of %v", fields["left_s"])
			}
		case "BMOE_LOAD":
			has("mb ms")
			loads++
		case "BMOE_PROGRESS":
			has("step steps wall_ms io_ms compute_ms mgmt_ms stall_ms read_mb cache_hit_pct majflt cpu_ms dense_resident_frac delta_reasoning delta_text")
			if number("step") == 1 {
				nulls = 0 // the first token comes of the prefill: it has no time of its own
				if fields["wall_ms"] != nil {
					t.Errorf("the first token took %v", fields["wall_ms"])
				}
				continue
			}
			wall := number("wall_ms")
			if parts := number("compute_ms") + number("mgmt_ms") + number("stall_ms"); parts > 1.01*wall || wall <= 0 {
				t.Errorf("parts of %v ms in %v ms", parts, wall)
			}
			read += number("read_mb")
			if hit := number("cache_hit_pct"); hit < 0 || hit > 100 {
				t.Errorf("%v %% hits", hit)
			}
			number("majflt")
			number("cpu_ms")
			if number("steps") != 32 {
				t.Errorf("of %v steps", fields["steps"])
			}
		case "BMOE_DONE":
			has("id cancelled tokens tok_s prefill_s prefill_tps load_s cache_hit_pct n_prompt n_past compute_s_tok io_s_tok cache_resident_mib cache_budget_mib read_mib stall_s_tok mgmt_s_tok majflt_tok cpu_s_tok token_demand_mib reasoning text")
			if math.Abs(number("read_mib")-read) > 0.001 || read == 0 {
				t.Errorf("%v MiB read in tokens, %v in all", read, number("read_mib"))
			}
			if number("tokens") != 32 || number("cache_budget_mib") != 6 || fields["cancelled"] != false {
				t.Errorf("done: %s", object)
			}
		default:
			t.Errorf("unknown line %q", line)
		}
	}
	if nulls > 0 && runtime.GOOS == "linux" { // other hosts may not tell all
		t.Errorf("%d figures are null", nulls)
	}
	if n := len(prefilled); n < 3 || prefilled[0] != 0 || prefilled[n-1] <= prefilled[n-2] {
		t.Errorf("prefilled %v", prefilled)
	}
	if loads == 0 || words[0] != "BMOE_READY" || words[1] != "BMOE_BEGIN" || words[len(words)-1] != "BMOE_DONE" {
		t.Errorf("lines %v", words)
	}
}

// TestDemoGreedy compares with what llama.cpp says about the demo model. Where
// its two best tokens are closer than the tolerance, either may win: sums in
// another order and 8-bit roundings move logits of this model by up to about
// a tenth.
func TestDemoGreedy(t *testing.T) {
	const (
		tolerance = 0.15
		endOfTurn = 4095 // <|im_end|>
	)
	var golden struct {
		Cases []struct {
			Prompt string
			IDs    []int32   `json:"greedy_ids"`
			Margin []float64 `json:"logit_margin"`
		}
	}
	if err := json.Unmarshal(readTest(t, filepath.Join("testdata", "demo-greedy.json")), &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) != 6 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	equal := 0
	for _, c := range golden.Cases {
		var res profile.Result
		parseJSON(t, succeeds(t, "-p", c.Prompt, "-n", fmt.Sprint(len(c.IDs)), "--temp", "0", "--repeat-penalty", "1", "--json").stdout, &res)
		ids := res.TokenIDs
		for i, want := range c.IDs {
			if i < len(ids) && ids[i] == want {
				equal++
				continue
			}
			if i == len(ids) && res.StopReason == "eos" && want == endOfTurn {
				continue
			}
			if c.Margin[i] < tolerance {
				break // a tie; what follows means nothing
			}
			t.Errorf("%q: token %d of %v is not %d, though the margin is %v", c.Prompt, i, ids, want, c.Margin[i])
			break
		}
	}
	if equal < 100 {
		t.Errorf("only %d tokens were compared before a tie", equal)
	}
	t.Logf("%d tokens equal", equal)
}

func TestVersionAndArchs(t *testing.T) {
	if got := succeeds(t, "--version").stdout; !strings.HasPrefix(got, "bmoe "+version) {
		t.Errorf("version: %q", got)
	}
	archs := succeeds(t, "--list-archs").stdout
	if !strings.Contains(archs, "qwen3moe") || !strings.Contains(archs, "Qwen3-30B-A3B") {
		t.Errorf("architectures: %q", archs)
	}
	// README's table has a row for each, with the same names.
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(archs) {
		arch, models, _ := strings.Cut(strings.TrimSpace(line), " ")
		if row := fmt.Sprintf("| `%s` | %s |", arch, strings.TrimSpace(models)); !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row %s", row)
		}
	}
}

// A simulated host is labelled wherever its figures go.
func TestSimulatedIsLabelled(t *testing.T) {
	args := []string{"-p", "hi", "-n", "3", "--temp", "0", "--simulate-host", "ntfs"}
	if r := succeeds(t, args...); !strings.Contains(r.stderr, "SIMULATED") {
		t.Errorf("the summary: %s", r.stderr)
	}
	var res profile.Result
	parseJSON(t, succeeds(t, append(args, "--json")...).stdout, &res)
	if len(res.Flags) == 0 || res.Flags[0] != "simulated" {
		t.Errorf("flags %v", res.Flags)
	}
}
