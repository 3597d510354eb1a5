package iobench

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"bmoe/internal/cli"
	"bmoe/internal/units"
)

// csvFile is the file of --csv: a preamble of comments, a header, one line per
// measurement. Read it by column name. Without --csv it swallows what is written.
type csvFile struct {
	file io.WriteCloser
	csv  *csv.Writer
}

// CSVHeader are the columns of --csv.
var CSVHeader = []string{
	"round", "cell", "lanes", "slice_kb", "read_kb", "engine", "mode", "mib_s", "mean_ms", "p50_ms", "p99_ms", "reads",
	"seconds", "cpu_ms_per_gib", "foreign_mib_s", "from_drive_pct", "notes",
}

func createCSV(c *campaign) (*csvFile, error) {
	if c.opt.csv == "" {
		return &csvFile{}, nil
	}
	if c.subject.is(c.opt.csv) {
		return nil, cli.Usagef("--csv %s is the file to be read: it would be overwritten", c.opt.csv)
	}
	file, err := os.Create(c.opt.csv)
	if err != nil {
		return nil, fmt.Errorf("--csv: %w", err)
	}
	return newCSV(c, file)
}

// newCSV writes what stands above the measurements.
func newCSV(c *campaign, file io.WriteCloser) (*csvFile, error) {
	f := &csvFile{file, csv.NewWriter(file)}
	simulated := "none"
	if c.opt.simulate {
		simulated = "ntfs, SIMULATED"
	}
	_, err := fmt.Fprintf(file, "# bmoe_iobench v1\n# file=%s bytes=%d block=%d seed=%d seconds=%g repeats=%d table=%v\n# system=%s/%s processors=%d go=%s simulated_host=%s\n",
		c.subject.name, c.subject.size, c.subject.align, c.opt.seed, c.opt.duration.Seconds(), c.opt.repeats, c.opt.table,
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), simulated)
	if err == nil {
		err = f.csv.Write(CSVHeader)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--csv: %w", err), file.Close())
	}
	return f, nil
}

// write adds one measurement. Lines are flushed at once: an interrupted run leaves
// what it measured.
func (f *csvFile) write(round int, m *measurement) error {
	if f.file == nil {
		return nil
	}
	r := newRow(m.cell, []*measurement{m})
	cell := func(v float64, decimals int) string {
		if s := units.Decimals(v, decimals); s != units.NotMeasured {
			return s
		}
		return ""
	}
	mode, reads, size := "", "", ""
	if r.unavailable == "" {
		mode, reads, size = r.mode.String(), strconv.FormatInt(r.reads, 10), kib(m.length)
	}
	notes := ""
	for i, n := range r.notes {
		if i > 0 {
			notes += "; "
		}
		notes += n
	}
	err := f.csv.Write([]string{
		strconv.Itoa(round), r.cell.name(), strconv.Itoa(r.cell.lanes), strconv.FormatInt(r.cell.sliceKiB, 10), size, r.engine, mode, cell(r.rate, 2), cell(r.meanMs, 4),
		cell(r.p50Ms, 4), cell(r.p99Ms, 4), reads, cell(m.seconds, 3), cell(r.cpuMsPerGiB, 2), cell(r.foreignMiBs, 2),
		cell(r.fromDrivePct, 1), notes,
	})
	if err == nil {
		f.csv.Flush()
		err = f.csv.Error()
	}
	if err != nil {
		return fmt.Errorf("--csv: %w", err)
	}
	return nil
}

func (f *csvFile) close() error {
	if f.file == nil {
		return nil
	}
	if err := f.file.Close(); err != nil {
		return fmt.Errorf("--csv: %w", err)
	}
	return nil
}
