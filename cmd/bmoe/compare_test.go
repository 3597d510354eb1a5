package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// rowsOf are the token rows of a made-up run: every token takes so many ms.
func rowsOf(settings, flags string, tokens int, ms float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# bmoe_metrics v2\n# model=A n_layer=2\nstep,wall_ms,read_bytes,run\n# run=1 %s\n", settings)
	for i := range tokens {
		fmt.Fprintf(&b, "%d,%g,%d,1\n", i+1, ms+0.01*float64(i%3), 1<<20)
	}
	fmt.Fprintf(&b, "# summary run=1 flags=%s text_sha256=abc\n", flags)
	return b.String()
}

func TestCompareSaysWhatDifferedAndWhatCameOfIt(t *testing.T) {
	dir := conform.TempDir(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	slow := write("slow.csv", rowsOf("io_threads=1 overlap=1", "", 64, 20))
	fast := write("fast.csv", rowsOf("io_threads=4 overlap=1 new=3", "", 64, 10))
	disturbed := write("disturbed.csv", rowsOf("io_threads=4 overlap=1", "traced+disturbed_cpu", 64, 10))
	short := write("short.csv", rowsOf("io_threads=4", "", 15, 10))
	torn := write("torn.csv", strings.Replace(rowsOf("io_threads=4", "", 64, 10), "\n7,10", "\n7,ten", 1))

	var c comparison
	parseJSON(t, succeeds(t, "--json", "--compare", slow, fast).stdout, &c)
	if len(c.Config) != 2 || c.Config[0].Name != "io_threads" || *c.Config[0].A != "1" || *c.Config[0].B != "4" || c.Config[1].Name != "new" || c.Config[1].A != nil {
		t.Errorf("what differed: %+v", c.Config)
	}
	if !strings.HasPrefix(c.Speed.Words, "faster ") || c.Speed.LowPct.Value < 50 || c.Speed.HighPct.Value > 150 || c.Speed.Tokens != 64 || c.SameText == nil || !*c.SameText {
		t.Errorf("speed: %+v", c.Speed)
	}
	if len(c.Metrics) != 2 || c.Metrics[1].Name != "read_mib" || c.Metrics[1].A.Mean.Value != 1 || c.Metrics[0].B.Low.Value < 10 || c.Metrics[0].B.High.Value > 10.03 {
		t.Errorf("metrics: %+v", c.Metrics)
	}
	for want, files := range map[string][2]string{
		"B against A: slower ":                                                     {fast, slow},
		"B against A: no clear change":                                             {fast, fast},
		"Everything was set the same.":                                             {slow, slow},
		"B against A: not comparable: run 1 is marked disturbed_cpu":               {slow, disturbed},
		"new                                         n/a                        3": {slow, fast},
	} {
		if out := succeeds(t, "--compare", files[0], files[1]).stdout; !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	refused(t, 1, []string{"short.csv", "no run of 16 decoded tokens"}, "--compare", slow, short)
	refused(t, 1, []string{"torn.csv: line 11: wall_ms is \"ten"}, "--compare", torn, slow)
	text := string(readTest(t, slow))
	lines := strings.SplitAfter(text, "\n")
	damaged := func(name, text string) string { return temp(t, name, []byte(text)) }
	if r := succeeds(t, "--compare", damaged("crlf.csv", strings.ReplaceAll(text, "\n", "\r\n")), slow); !strings.Contains(r.stdout, "no clear change") {
		t.Errorf("CRLF: %s", r.stdout)
	}
	rows := len(lines) - 2 // what stands behind the last line end is empty
	refused(t, 1, []string{"bare.csv: line 1: not a file of token rows"}, "--compare", damaged("bare.csv", strings.Join(lines[1:], "")), slow)
	refused(t, 1, []string{"twice.csv: line ", "comes after step"}, "--compare", damaged("twice.csv", strings.Join(lines[:rows], "")+lines[rows-1]+lines[rows-1]), slow)
	refused(t, 1, []string{"away.csv"}, "--compare", slow, filepath.Join(dir, "away.csv"))
	refused(t, 2, []string{"--compare takes two files"}, "--compare", slow)
}

// Files that the program wrote itself are compared, and the setting that differed is
// the one that was changed.
func TestCompareReadsWhatTheProgramWrote(t *testing.T) {
	dir := conform.TempDir(t)
	a, b := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
	for path, lanes := range map[string]string{a: "1", b: "2"} {
		succeeds(t, "-p", dogStory, "-n", "24", "--temp", "0", "--io-threads", lanes, "--csv", path)
	}
	var c comparison
	parseJSON(t, succeeds(t, "--json", "--compare", a, b).stdout, &c)
	found := false
	for _, d := range c.Config {
		found = found || d.Name == "io_threads" && *d.A == "1" && *d.B == "2"
	}
	if !found || c.A.Runs != 1 || c.B.Tokens != 23 || c.SameText == nil || !*c.SameText {
		t.Errorf("%+v", c)
	}
}
