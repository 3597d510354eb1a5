package iobench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/cli"
	"bmoe/internal/conform"
	"bmoe/internal/units"
)

// testFile writes size random bytes.
func testFile(t *testing.T, size int) string {
	t.Helper()
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(data)
	path := filepath.Join(conform.TempDir(t), "model.gguf")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// ran runs the command and returns its standard output.
func ran(args ...string) (string, error) {
	var out bytes.Buffer
	err := Run(context.Background(), args, cli.NewOutput(&out), nil)
	return out.String(), err
}

func TestAdviceInJSON(t *testing.T) {
	parsed := func(path string) (r Result, text string) {
		text, err := ran("-m", path, "--lanes", "1,2", "--slice-kb", "64", "--seconds", "0.05", "--json")
		if err == nil {
			err = json.Unmarshal([]byte(text), &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r, text
	}
	r, text := parsed(small(t))
	if r.Means == nil || r.Means.Model == nil || *r.Means.Model != "small.gguf" || r.Means.TokenMiB != smallToken/float64(units.MiB) || len(r.Try) != 2 {
		t.Fatalf("%s", text)
	}
	for _, a := range r.Means.AtMost {
		if want := r.Peak.MiBs / r.Means.TokenMiB / (1 - float64(a.HitPct)/100); math.Abs(a.TPS/want-1) > 1e-9 {
			t.Errorf("%+v, want %g", a, want)
		}
	}
	if r, text := parsed(testFile(t, 1<<20)); r.Means != nil || !strings.Contains(text, `"means": null`) || r.Try == nil {
		t.Errorf("without a model: %s", text)
	}
}

func TestBadFor(t *testing.T) {
	path := testFile(t, 1<<20)
	for asked, code := range map[string]int{"0": cli.Usage, "-5": cli.Usage, "nan": cli.Usage, "inf": cli.Usage, "": cli.Usage, path: cli.Failed, path + ".none": cli.Failed} {
		text, err := ran("-m", path, "--for", asked, "--seconds", "0.05")
		if cli.ExitCode(err) != code || text != "" || !strings.Contains(err.Error(), "--for") {
			t.Errorf("--for %q: %v, %q", asked, err, text)
		}
	}
	if _, err := readDemand(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A table in all its forms, each labelled where the host is simulated; one that is
// stopped has what was measured by then, and one that has measured nothing is none.
func TestMeasureTable(t *testing.T) {
	path := testFile(t, 8<<20)
	args := []string{"--simulate-host", "ntfs", "--lanes", "1,2", "--seconds", "0.05", "--repeats", "1"}
	table, err := MeasureTable(context.Background(), path, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	if r := &table.Result; !r.Complete || !r.Simulated || len(r.Rows) < 10 {
		t.Errorf("%+v", r)
	}
	lines := strings.Count(table.CSV, "\n")
	if !strings.Contains(table.Text, "SIMULATED NTFS host") || !strings.Contains(table.CSV, "simulated_host=ntfs, SIMULATED") || lines != 4+len(table.Result.Rows) {
		t.Errorf("%s\n%s", table.Text, table.CSV)
	}
	for what, text := range map[string]string{"text": table.Text, "CSV": table.CSV} {
		if strings.Contains(text, filepath.Dir(path)) {
			t.Errorf("the %s names a folder", what)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped, err := MeasureTable(ctx, path, stopAt{"3/", stop}, args...)
	if !errors.Is(err, context.Canceled) || stopped == nil || stopped.Result.Complete || len(stopped.Result.Rows) != 2 || !strings.Contains(stopped.Text, "incomplete") {
		t.Errorf("%+v, %v", stopped, err)
	}
	if none, err := MeasureTable(ctx, path, nil, args...); none != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", none, err)
	}
}

// stopAt is a watcher that ends the run when the progress tells of a row.
type stopAt struct {
	begins string
	stop   func()
}

func (s stopAt) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), s.begins) {
		s.stop()
	}
	return len(b), nil
}
