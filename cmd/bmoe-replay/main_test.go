package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// recorded writes a small trace: two layers of four experts, two a token.
func recorded(t *testing.T, change func(string) string) string {
	t.Helper()
	text := "# route_trace v1\n# model=m.gguf arch=x n_layer=2 n_expert=4 n_expert_used=2\n# layer=0 expert_bytes=1048576\n# layer=1 expert_bytes=1048576\n" +
		"turn,phase,step,layer,slot,expert,weight,residency\n"
	for _, row := range []string{"0,0,0,0,0,1,0.5,0", "0,0,0,0,1,2,0.5,0", "0,0,0,1,0,1,0.5,0", "0,0,0,1,1,2,0.5,0",
		"0,1,1,0,0,1,0.5,1", "0,1,1,0,1,3,0.5,0", "0,1,1,1,0,1,0.5,1", "0,1,1,1,1,2,0.5,1"} {
		text += row + "\n"
	}
	path := filepath.Join(conform.TempDir(t), "t.csv")
	if err := os.WriteFile(path, []byte(change(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func same(s string) string { return s }

func TestTableAndFiles(t *testing.T) {
	dir := conform.TempDir(t)
	table, picture := filepath.Join(dir, "c.csv"), filepath.Join(dir, "c.svg")
	code, out, errs := command(recorded(t, same), "--budgets", "3,5,8", "--policies", "belady,lru", "--csv", table, "--svg", picture)
	if code != 0 || errs != "" {
		t.Fatal(code, errs)
	}
	for _, want := range []string{"one token needs 4.0 MiB, all experts take 8.0", "        3*", "lru               25.0      75.0      75.0", "* below one token's experts", "a belady   b lru"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	rows, err := os.ReadFile(table)
	if err != nil || strings.Count(string(rows), "\n") != 7 || !strings.Contains(string(rows), "lru,5,false,75.000") {
		t.Errorf("%s, %v", rows, err)
	}
	svg, err := os.ReadFile(picture)
	if err != nil || strings.Count(string(svg), "<polyline") != 2 {
		t.Errorf("%s, %v", svg, err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, args := range [][]string{{"--budgets", "5"}, {"--validate", "8"}, {"--analyze"}, {"--budget-schedule", "8@0,3@1"}} {
		code, out, errs := command(append([]string{recorded(t, same), "--json"}, args...)...)
		var r report
		if err := json.Unmarshal([]byte(out), &r); code != 0 || errs != "" || err != nil || r.Layers != 2 {
			t.Errorf("%q: %d, %s, %v", args, code, errs, err)
		}
	}
}

func TestItFailsLoudly(t *testing.T) {
	for want, c := range map[string]struct {
		change func(string) string
		args   []string
		code   int
	}{
		`unknown policy "lur"; known: belady`:                {same, []string{"--policies", "lur"}, 2},
		"layer 1 has no expert_bytes":                        {func(s string) string { return strings.Replace(s, "# layer=1 expert_bytes=1048576", "# layer=1", 1) }, nil, 1},
		"layer 1 was not described":                          {func(s string) string { return strings.Replace(s, "# layer=1 expert_bytes=1048576\n", "", 1) }, nil, 1},
		"not a route trace":                                  {func(s string) string { return s[strings.Index(s, "\n")+1:] }, nil, 1},
		"lru at 3 MiB hits":                                  {same, []string{"--validate", "3"}, 1},
		"there is nothing to validate against":               {func(s string) string { return strings.ReplaceAll(s, "residency", "other") }, []string{"--validate", "8"}, 1},
		"want budgets in MiB and from which token on":        {same, []string{"--budget-schedule", "4000"}, 2},
		"the first budget is that of token 0":                {same, []string{"--budget-schedule", "4000@5"}, 2},
		"--budgets and --budget-schedule exclude each other": {same, []string{"--budgets", "5", "--budget-schedule", "5@0"}, 2},
		"name one route trace":                               {same, []string{"other.csv"}, 2},
		"-5 is no budget in MiB":                             {same, []string{"--budgets", "-5"}, 2},
	} {
		code, out, errs := command(append([]string{recorded(t, c.change)}, c.args...)...)
		if code != c.code || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, standard output %q", want, code, errs, out)
		}
	}
	if code, _, errs := command(conform.TempDir(t)); code != 1 || !strings.Contains(errs, "not a regular file") {
		t.Errorf("a folder: %d, %q", code, errs)
	}
}

func TestRecordedTracesValidate(t *testing.T) {
	for name, budget := range map[string]string{"qwen": "4000", "gptoss": "3000"} {
		code, out, errs := command(conform.Shared(t, "traces/"+name+".route.csv"), "--validate", budget)
		if code != 0 || errs != "" || !strings.Contains(out, map[string]string{"qwen": "74.9 % hits replayed, 74.9 % recorded: agrees", "gptoss": "32.4 % hits replayed, 32.4 % recorded: agrees"}[name]) {
			t.Errorf("%s: %d, %s, %s", name, code, out, errs)
		}
	}
}

// Whatever is wrong with a file is told in one line that names the file and the line.
func TestDamagedTracesAreNamed(t *testing.T) {
	good, err := os.ReadFile(recorded(t, same))
	if err != nil {
		t.Fatal(err)
	}
	route := string(good)
	reads := "# io_trace v1\nturn,phase,step,layer,expert,proj,lane,spec,offset,req_bytes,read_bytes,latency_ns\n0,1,2,3,4,5,1,1,0,1048576,1048576,2000000\n"
	steps := "# compute_trace v1\nturn,phase,step,seq,layer,op,name,wall_ns,majflt\n0,1,2,0,,embed,embed,1000000,\n0,1,2,1,0,moe,blk.0.moe,3000000,1\n"
	last := func(s string) string { return s[strings.LastIndex(s[:len(s)-1], "\n")+1:] }
	for want, text := range map[string]string{
		"t.csv: line 1: not a route trace":                               strings.SplitAfterN(route, "\n", 2)[1],
		"t.csv: line 14: turn 0, step 1, layer 1, slot 1 comes twice":    route + last(route),
		"t.csv: line 14: turn 0, step 0, layer 0, slot 0: phase 0 comes": route + "0,0,0,0,0,1,0.5,0\n",
		"t.csv: line 14: 2 cells":                                        route + "0,1\n",
	} {
		expectLine(t, want, text)
	}
	expectLine(t, "t.csv: line 4: layer 3, expert 4, proj 5 comes twice", reads+last(reads))
	expectLine(t, "t.csv: line 4: turn 0, phase 0, step 2 comes after", reads+strings.Replace(last(reads), "0,1,2", "0,0,2", 1))
	expectLine(t, "t.csv: line 2: the column op is missing", strings.Replace(steps, ",op,", ",what,", 1))
	expectLine(t, "t.csv: line 5: seq 1 comes after seq 1", steps+last(steps))
	// What does no harm.
	for _, text := range []string{route, reads, steps} {
		for _, text := range []string{strings.ReplaceAll(text, "\n", "\r\n"), text + last(text)[:5]} {
			if code, _, errs := command(written(t, text)); code != 0 || errs != "" {
				t.Errorf("%d, %s of %q", code, errs, text)
			}
		}
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(conform.TempDir(t), "t.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func expectLine(t *testing.T, want, text string) {
	t.Helper()
	if code, out, errs := command(written(t, text)); code != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
		t.Errorf("%d, %q, %q, want %q", code, out, errs, want)
	}
}

// Traces of reads and of computing are added up.
func TestOtherTraces(t *testing.T) {
	reads := written(t, "# io_trace v1\nturn,phase,step,layer,expert,proj,lane,spec,offset,req_bytes,read_bytes,latency_ns\n0,1,2,3,4,5,1,1,0,1048576,1048576,2000000\n")
	steps := written(t, "# compute_trace v1\nturn,phase,step,seq,layer,op,name,wall_ns,majflt\n0,1,2,0,,embed,embed,1000000,\n0,1,2,1,0,moe,blk.0.moe,3000000,1\n")
	for path, wants := range map[string][]string{reads: {"all             1        1.0          1      2.0", "2               1"}, steps: {"moe                 1.0        3.000     75.0        1"}} {
		code, out, errs := command(path)
		for _, want := range wants {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				t.Errorf("%q is missing: %d, %s\n%s", want, code, errs, out)
			}
		}
		code, out, _ = command(path, "--json")
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("%d, %s", code, out)
		}
		if code, _, errs = command(path, "--budgets", "5"); code != 2 || !strings.Contains(errs, "--budgets is for route traces") {
			t.Errorf("%d, %s", code, errs)
		}
	}
}
