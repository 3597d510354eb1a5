package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
	"bmoe/profile"
	"bmoe/profile/trace"
)

func TestExperimentOnTheCommandLine(t *testing.T) {
	cells := filepath.Join(conform.TempDir(t), "cells.csv")
	r := succeeds(t, "--ab", "release-mmap=off,on;io-threads=1,2", "--cells", "1", "-p", dogStory, "-n", "20", "--temp", "0", "--csv", cells)
	for _, want := range []string{"| release-mmap off, lanes 1 | release-mmap off, lanes 2 | release-mmap on, lanes 1 | release-mmap on, lanes 2 |",
		"| decode_tps, tokens/s |", "not comparable: fewer than three undisturbed pairs", "All runs gave the same text.", "1 rounds were asked for"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing:\n%s", want, r.stdout)
		}
	}
	if !strings.Contains(r.stderr, "warm-up, release-mmap off, lanes 1:") {
		t.Errorf("standard error: %s", r.stderr)
	}
	f, err := os.Open(cells)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 6 || rows[0][0] != "cell" || rows[1][3] != "warm-up" {
		t.Errorf("%q, %v", rows, err)
	}
}

func TestAWrongPathCostsNoRuns(t *testing.T) {
	refused(t, 1, []string{"cells: open"}, "--ab", "lanes=1,2", "-p", dogStory, "-n", "20", "--csv", filepath.Join(conform.TempDir(t), "away", "x.csv"))
}

func TestExperimentAsJSON(t *testing.T) {
	r := succeeds(t, "--ab", "no-odirect=off,on", "--cells", "1", "-p", dogStory, "-n", "20", "--temp", "0", "--json")
	var report struct {
		Variants []struct {
			Name    string
			Figures map[string]struct{ Median *float64 }
			Change  *struct{ Verdict string }
		}
		SameText bool `json:"same_text"`
		Config   map[string]any
		Build    string
	}
	parseJSON(t, r.stdout, &report)
	if len(report.Variants) != 2 || !report.SameText || report.Build == "" || report.Config == nil || report.Variants[1].Change == nil {
		t.Errorf("%+v", report)
	}
	if _, told := report.Variants[0].Figures["load_s"]; !told {
		t.Error("every run opened the model, and how long that took is not told")
	}
}

func TestExperimentsThatMakeNoSense(t *testing.T) {
	for want, args := range map[string][]string{
		`--ab: "speed" is no setting`:                    {"--ab", "speed=1,2"},
		`--io-threads "99": want 1 to 64`:                {"--ab", "lanes=1,99"},
		"--cells does nothing without --ab":              {"--cells", "2"},
		"--io-threads and --ab both set lanes":           {"--ab", "lanes=1,2", "--io-threads", "2"},
		"--tokenize and --ab exclude each other":         {"--ab", "lanes=1,2", "--tokenize", "hi"},
		"one combination leaves nothing to compare":      {"--ab", "lanes=1"},
		`invalid argument "sideways" for "--order" flag`: {"--ab", "lanes=1,2", "--order", "sideways"},
	} {
		refused(t, 2, []string{want}, append(args, "-p", "hi")...)
	}
}

func TestTokensAreWrittenDown(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "tokens.csv")
	r := succeeds(t, "-p", dogStory, "-n", "20", "--temp", "0", "--csv", path, "--json")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := trace.ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	var result profile.Result
	parseJSON(t, r.stdout, &result)
	if len(table.Runs) != 1 || len(table.Runs[0].Rows) != 19 || table.Runs[0].Settings["io_threads"] != "4" || table.Runs[0].Summary["text_sha256"] != result.TextSHA256 {
		t.Fatalf("%+v", table.Runs)
	}
	wall, _ := table.Column(&table.Runs[0], "wall_ms")
	sum := 0.0
	for _, v := range wall {
		sum += v / 1e3 / float64(len(wall))
	}
	if got := result.PerToken.Wall.Value; math.Abs(sum-got) > 1e-5 {
		t.Errorf("rows of %v s, the result says %v", sum, got)
	}
	refused(t, 1, []string{"csv: open"}, "-p", "hi", "--csv", filepath.Join(path, "..", "away", "x.csv"))
}
