package trace

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

func TestReadsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "io.csv")
	w, err := CreateIO(context.Background(), path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	w.Begin([]Pair{{"model", "a model"}})
	want := []IORow{
		{At{1, 0, 7}, 3, 5, 2, 1, false, 4096, 8192, 8100, 123456, 77},
		{At{1, 1, 8}, 4, 6, 0, 3, true, 1 << 40, 4096, 4096, 99, -1},
	}
	for i := range want {
		w.Pass(want[i].At)
		w.Row(&want[i])
		w.Flush()
	}
	more := want[1]
	if n := testing.AllocsPerRun(50, func() { more.Offset += 4096; w.Row(&more); w.Flush() }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"as written": string(text), "CRLF": strings.ReplaceAll(string(text), "\n", "\r\n"), "killed in a row": string(text) + "1,1,9,4,6,0,3"} {
		var got []IORow
		if err := ReadIO(strings.NewReader(text), func(r *IORow) error { got = append(got, *r); return nil }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got) != len(want)+51 || !reflect.DeepEqual(got[:2], want) {
			t.Errorf("%s: %d rows, %+v, want %+v", name, len(got), got[:2], want)
		}
	}
	sums, err := SumIO(bytes.NewReader(text))
	if err != nil || len(sums) != 3 || sums[0].Reads != 53 || sums[0].Guessed != 52 || sums[1].Lane != 1 || sums[1].Bytes != 8100 || sums[2].Reads != 52 || sums[1].P50.Value < 0.1 {
		t.Errorf("%+v, %v", sums, err)
	}
}

func TestStepsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "compute.csv")
	w, err := CreateCompute(context.Background(), path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	w.Begin(nil)
	want := []ComputeRow{
		{At{0, 0, 7}, 0, -1, "embed", "embed", 100, 3, 5, 10, 20, 30, 40},
		{At{0, 1, 8}, 0, -1, "embed", "embed", 1e6, -1, 6, 0, 0, 0, 1e6},
		{At{0, 1, 8}, 1, 2, "moe", "blk.2.moe", 3e6, 0, -1, -1, -1, -1, -1},
	}
	for i := range want {
		w.Row(&want[i])
	}
	w.Flush()
	more := want[2]
	more.Wall = 0
	if n := testing.AllocsPerRun(50, func() { more.Seq++; w.Row(&more); w.Flush() }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []ComputeRow
	if err := ReadCompute(bytes.NewReader(text), func(r *ComputeRow) error { got = append(got, *r); return nil }); err != nil || !reflect.DeepEqual(got[:3], want) {
		t.Errorf("read %+v, %v, want %+v", got[:3], err, want)
	}
	steps, tokens, err := SumCompute(bytes.NewReader(text))
	if err != nil || tokens != 1 || len(steps) != 2 || steps[0].Op != "moe" || steps[0].Share != 0.75 {
		t.Errorf("%+v of %d tokens, %v", steps, tokens, err)
	}
}

func TestDamagedTraces(t *testing.T) {
	head := ioMark + "\n" + strings.Join(ioColumns, ",") + "\n"
	const row = "0,1,2,3,4,5,6,0,8,9,10,11\n"
	for want, text := range map[string]string{
		"it ends before the line that names the columns of an I/O trace":        ioMark + "\n",
		"line 1: not an I/O trace: it should begin with # io_trace v1":          strings.Replace(head, "# io_trace v1\n", "", 1) + row,
		"line 2: the column latency_ns is missing":                              strings.Replace(head, ",latency_ns", "", 1),
		"line 2: the column lane stands twice":                                  strings.Replace(head, "proj", "lane", 1),
		"line 4: 2 cells in a row of 12 columns":                                head + row + "0,1\n",
		`line 3: layer is "x"`:                                                  head + strings.Replace(row, "3", "x", 1),
		`line 3: req_bytes is "-9"`:                                             head + strings.Replace(row, "9", "-9", 1),
		"line 3: phase 7":                                                       head + "0,7" + row[3:],
		"line 3: longer than 65536 bytes":                                       head + strings.Repeat("1", maxCellsLine+1),
		"line 1: not an I/O trace: it should begin with # io_trace v1 (binary)": "GGUF\x00\x00\n",
	} {
		want, _, _ = strings.Cut(want, " (")
		if err := ReadIO(strings.NewReader(text), func(*IORow) error { return nil }); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// More columns are fine, and so is another order.
	more := ioMark + "\nnew," + strings.Join(ioColumns, ",") + "\nyes," + row
	if err := ReadIO(strings.NewReader(more), func(r *IORow) error {
		if r.Latency != 11 || r.Turn != 0 || r.Layer != 3 {
			t.Errorf("%+v", r)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func FuzzReadTraces(f *testing.F) {
	f.Add(ioMark + "\n" + strings.Join(ioColumns, ",") + "\n0,1,2,3,4,5,6,0,8,9,10,11\n")
	f.Add(computeMark + "\n" + strings.Join(computeColumns, ",") + "\n0,1,2,0,,embed,embed,5,\n")
	f.Fuzz(func(t *testing.T, text string) {
		ReadIO(strings.NewReader(text), func(r *IORow) error {
			if r.Phase > 1 || r.Read < 0 {
				t.Fatalf("%+v", r)
			}
			return nil
		})
		ReadCompute(strings.NewReader(text), func(r *ComputeRow) error {
			if r.Wall < 0 || r.Layer < -1 {
				t.Fatalf("%+v", r)
			}
			return nil
		})
	})
}
