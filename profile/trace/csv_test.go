package trace

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"
	"bmoe/profile"
)

// written makes a file of two runs, the second of which has not ended.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(conform.TempDir(t), "tokens.csv")
	c, err := CreateCSV(context.Background(), path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	lanes := "4"
	c.Begin([]Pair{{"model", "A model"}, {"n_layer", "6"}}, func() []Pair { return []Pair{{"io_threads", lanes}} })
	live := &profile.Snapshot{}
	live.Cache = profile.Cache{Streaming: true, Budget: 9 << 20}
	live.Mapping.State = profile.MappingMapped
	run := func(n int) {
		c.Began(&profile.Start{Run: n, Prompt: 20, Base: 5}, live)
		for step := 2; step <= 4; step++ {
			c.Token(&profile.Record{Run: n, Turn: 1, Step: step, Steps: 64, Token: int32(step), Wall: int64(step) * 1e6, Compute: 1e6, Lookups: 24, Hits: 12,
				Stall: profile.Some[int64](5e5), CPU: profile.Some[int64](2e6)})
		}
	}
	run(1)
	r := &profile.Result{NGen: 4, DecodeTPS: profile.Some(333.0), StopReason: "length"}
	c.Ended(r)
	lanes = "8"
	run(2)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCSVIsReadAsItWasWritten(t *testing.T) {
	text, err := os.ReadFile(written(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{"as written": string(text), "CRLF": strings.ReplaceAll(string(text), "\n", "\r\n")} {
		table, err := ReadCSV(strings.NewReader(s))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if table.Preamble["model"] != "A_model" || table.Preamble["n_layer"] != "6" || len(table.Runs) != 2 {
			t.Fatalf("%s: %v, %d runs", name, table.Preamble, len(table.Runs))
		}
		one, two := &table.Runs[0], &table.Runs[1]
		if one.Settings["io_threads"] != "4" || two.Settings["io_threads"] != "8" || one.Summary["tok/s"] != "333" || two.Summary != nil {
			t.Errorf("%s: %v, %v, %v, %v", name, one.Settings, two.Settings, one.Summary, two.Summary)
		}
		wall, ok := table.Column(two, "wall_ms")
		if !ok || len(wall) != 3 || wall[2] != 4 {
			t.Errorf("%s: wall %v", name, wall)
		}
		if faults, _ := table.Column(one, "majflt"); !math.IsNaN(faults[0]) {
			t.Errorf("%s: what was not measured reads as %v", name, faults[0])
		}
		if hit, _ := table.Column(one, "cache_hit_pct"); hit[1] != 50 {
			t.Errorf("%s: hits %v", name, hit)
		}
		if _, ok := table.Column(one, "nonsense"); ok {
			t.Errorf("%s: a column that is not there", name)
		}
	}
}

// Whatever ends the program, the file is whole up to its last row.
func TestCSVIsWholeAtEveryMoment(t *testing.T) {
	text, err := os.ReadFile(written(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for n := 4; n <= len(lines); n++ {
		if _, err := ReadCSV(strings.NewReader(strings.Join(lines[:n], ""))); err != nil {
			t.Errorf("%d lines: %v", n, err)
		}
	}
}

func TestRowsOfBigMoeOnEdge(t *testing.T) {
	table, err := ReadCSV(strings.NewReader("# bmoe_metrics v1\n# model=a.gguf arch=x\nstep,steps,wall_ms\n1,2,10.5\n2,2,11\n# summary tokens=2\n1,2,9\n"))
	if err != nil || len(table.Runs) != 2 || table.Runs[0].Summary["tokens"] != "2" || len(table.Runs[0].Rows) != 2 {
		t.Errorf("%+v, %v", table, err)
	}
}

func TestDamagedCSV(t *testing.T) {
	const head = "# bmoe_metrics v2\nstep,steps,wall_ms,run\n"
	for want, text := range map[string]string{
		"it ends before the line that names the columns": "",
		"line 1: not a file of token rows":               "step,steps,wall_ms\n1,2,3\n",
		"line 2: the column step is missing":             "# bmoe_metrics v2\nwall_ms\n1\n",
		"line 2: the column step stands twice":           "# bmoe_metrics v2\nstep,step\n1,1\n",
		"line 4: 2 cells in a row of 4 columns":          head + "2,9,1.5,1\n3,9\n",
		`line 3: wall_ms is "fast", not a number`:        head + "2,9,fast,1\n",
		"line 4: run 1: step 2 comes after step 2":       head + "2,9,1,1\n2,9,1,1\n",
		`line 3: run is "x"`:                             head + "# run=x\n",
		"line 3: longer than 65536 bytes":                head + strings.Repeat("1", maxCSVLine+1),
		`line 3: wall_ms is "NaN", not a number`:         head + "2,9,NaN,1\n",
	} {
		if _, err := ReadCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A row that a killed program did not finish is left out.
func TestACSVThatWasCutOff(t *testing.T) {
	text, err := os.ReadFile(written(t))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), ",0.500,")
	table, err := ReadCSV(strings.NewReader(string(text[:at+3])))
	if err != nil || len(table.Runs) != 2 || len(table.Runs[0].Rows) != 3 || len(table.Runs[1].Rows) != 2 {
		t.Errorf("%v, %d runs", err, len(table.Runs))
	}
}

// full is a file on a full disk.
type full struct{ writes, closed int }

func (f *full) Write([]byte) (int, error) {
	f.writes++
	return 0, errors.New("no space left on device")
}

func (f *full) Close() error {
	f.closed++
	return nil
}

func TestAFullDiskEndsTheSinkAndIsToldOnce(t *testing.T) {
	f := &full{}
	var told []string
	c := &CSV{s: &sink{what: "csv", w: f, failed: func(err error) { told = append(told, err.Error()) }}}
	c.Begin(nil, func() []Pair { return nil })
	c.Began(&profile.Start{Run: 1}, &profile.Snapshot{})
	c.Token(&profile.Record{Run: 1, Step: 2})
	c.Ended(&profile.Result{})
	if err := c.Close(); err != nil || f.writes != 1 || f.closed != 1 || len(told) != 1 || told[0] != "csv: no space left on device: nothing more is written to it" {
		t.Errorf("%d writes, closed %d times, told %q, %v", f.writes, f.closed, told, err)
	}
}

func TestARowAllocatesNothing(t *testing.T) {
	c, err := CreateCSV(context.Background(), filepath.Join(conform.TempDir(t), "rows.csv"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Begin(nil, func() []Pair { return nil })
	r := &profile.Record{Run: 1, Step: 2, Wall: 123456789, Stall: profile.Some[int64](5e5)}
	c.Token(r)
	if n := testing.AllocsPerRun(100, func() { c.Token(r) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("# bmoe_metrics v2\n# a=b\nstep,run,wall_ms\n# run=1\n2,1,3\n# summary x=y\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range table.Runs {
			for _, name := range table.Columns {
				if v, ok := table.Column(&table.Runs[i], name); !ok || len(v) != len(table.Runs[i].Rows) {
					t.Fatalf("%s of run %d", name, i)
				}
			}
		}
	})
}

// Every column stands in docs/telemetry.md.
func TestFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, c := range csvColumns {
		rows = append(rows, c.name)
	}
	for flag, columns := range map[string][]string{"--csv": rows, "--route-trace": routeColumns, "--io-trace": slices.Concat(ioColumns, ioLater), "--compute-trace": slices.Concat(computeColumns, computeLater)} {
		_, section, _ := strings.Cut(string(page), "\n## `"+flag+"`")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, name := range columns {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/telemetry.md does not tell of the column %s of %s", name, flag)
			}
		}
	}
}
