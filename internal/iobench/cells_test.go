package iobench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/cli"
	"bmoe/internal/host"
)

func plannedCells(t *testing.T, s *subject, args string) []*cell {
	t.Helper()
	o, err := parse(strings.Fields("-m m " + args))
	if err != nil {
		t.Fatal(err)
	}
	cells, err := plan(o, s)
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

func TestLabelsCanBePastedAsFlags(t *testing.T) {
	s := &subject{path: "m", size: 4 << 30, align: 4096}
	for _, c := range plannedCells(t, s, "--table --compute-load 8") {
		o, err := parse(strings.Fields("-m m " + c.variable))
		if err != nil {
			t.Errorf("%q is not a command line: %v", c.variable, err)
			continue
		}
		again, err := plan(o, s)
		if err != nil {
			t.Fatal(err)
		}
		again[0].lanes, again[0].engine = c.lanes, c.engine
		if *again[0] != *c {
			t.Errorf("%q gives %+v, not %+v", c.variable, *again[0], *c)
		}
	}
}

func TestTableHasEveryRowOfTheMission(t *testing.T) {
	s := &subject{path: "m", size: 22 << 30, align: 4096}
	got := map[string]int{}
	for _, c := range plannedCells(t, s, "--table --compute-load 8 --lanes 1,4") {
		got[fmt.Sprintf("%s at %d", c.name(), c.lanes)]++
	}
	for _, want := range []string{
		"nothing (the drive) at 1", "nothing (the drive) at 4",
		"--range-mb 440 at 1", "--range-mb 440 at 4",
		"--compute-load 8 at 4",
		"--fresh at 1", "--fresh at 4",
		"--small-pages at 1", "--small-pages at 4",
		"--scatter 3 at 4",
		"--slice-kb 572 --no-round at 4",
		"--mmap at 1", "--mmap at 4",
		"--mmap --reopen-lanes at 4",
		"--mmap --mmap-when before at 4",
		"--mmap --via-hardlink at 4",
		"--mmap --mmap-when section-only at 4",
		"--mmap --mmap-when view-only at 4",
		"--mmap --mmap-when old-handle at 4",
		"--buffered at 4",
		"--buffered --mmap at 4",
	} {
		if got[want] != 1 {
			t.Errorf("%d rows %q", got[want], want)
		}
		delete(got, want)
	}
	if len(got) > 0 {
		t.Errorf("rows beyond those: %v", got)
	}
}

func TestTableWithOneLaneCountMeasuresNothingTwice(t *testing.T) {
	s := &subject{path: "m", size: 1 << 30, align: 4096}
	seen := map[string]bool{}
	for _, c := range plannedCells(t, s, "--table --lanes 2") {
		if seen[c.variable] {
			t.Errorf("%q appears twice", c.variable)
		}
		seen[c.variable] = true
	}
}

func TestSweepCrossesEnginesSizesAndLanes(t *testing.T) {
	s := &subject{path: "m", size: 1 << 30, align: 4096}
	var got []string
	for _, c := range plannedCells(t, s, "--io-engine lanes,uring --slice-kb 64,576 --lanes 1,4 --fresh") {
		if c.variable != "--fresh" {
			t.Errorf("label %q", c.variable)
		}
		got = append(got, fmt.Sprint(c.engine, " ", c.sliceKiB, " ", c.lanes))
	}
	want := []string{"lanes 64 1", "lanes 64 4", "lanes 576 1", "lanes 576 4", "uring 64 1", "uring 64 4", "uring 576 1", "uring 576 4"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestOddSliceIsBlocksButNot64KiB(t *testing.T) {
	for _, c := range []struct {
		kib   int64
		align int
		want  int64
	}{{576, 4096, 572}, {576, 16384, 560}, {4096, 512, 4095}, {64, 4096, 60}, {576, 65536, 0}, {4, 4096, 0}, {68, 4096, 60}} {
		if got := oddSlice(c.kib, c.align); got != c.want {
			t.Errorf("oddSlice(%d, %d) = %d, want %d", c.kib, c.align, got, c.want)
		}
	}
}

func TestReadsAreRoundedUpToTheBlock(t *testing.T) {
	for _, c := range []struct {
		kib     int64
		scatter int
		align   int
		want    int64
	}{{576, 1, 4096, 576 << 10}, {577, 1, 4096, 580 << 10}, {1, 1, 16384, 16 << 10}, {576, 3, 4096, 192 << 10}, {64, 3, 4096, 24 << 10}} {
		one := cell{sliceKiB: c.kib, scatter: c.scatter}
		if got := one.pieceBytes(c.align); got != c.want {
			t.Errorf("%d KiB in %d pieces, blocks of %d: %d, want %d", c.kib, c.scatter, c.align, got, c.want)
		}
	}
}

func TestPlanRefusesWhatTheFileCannotServe(t *testing.T) {
	s := &subject{path: "m", size: 10 << 20, align: 4096, memory: host.Memory{Available: 64 << 20, Has: host.HasAvailable}}
	for args, want := range map[string]string{
		"--range-mb 11":                    "--range-mb 11: m has only 10 MiB",
		"--range-mb 1 --slice-kb 2048":     "--range-mb 1: one read takes 2097152",
		"--slice-kb 64,20480":              "m has 10485760 bytes, one read of --slice-kb 20480",
		"--table --lanes 4 --range-mb 100": "--range-mb 100",
		"--lanes 8 --slice-kb 8192":        "8 lanes of 8192 KiB take more than half of the 64 MiB",
	} {
		o, err := parse(strings.Fields("-m m " + args))
		if err != nil {
			t.Fatal(err)
		}
		_, err = plan(o, s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
		var asked cli.UsageError
		if wantUsage := strings.Contains(args, "range-mb"); errors.As(err, &asked) != wantUsage {
			t.Errorf("%q: bad usage %v, want %v", args, !wantUsage, wantUsage)
		}
	}
}
