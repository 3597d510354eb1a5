// Package iobench measures what the drive under a file gives, one variable a row. It
// is the command bmoe-iobench, and a part of what bmoe --report sends back.
//
// It drives flashio, the read path of the engine, so that alignment, direct I/O
// and its fallback are part of what is measured.
package iobench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/pflag"

	"bmoe/internal/cli"
)

// Run is the command. Progress goes to progress, which is nil unless a person
// watches.
func Run(ctx context.Context, args []string, out *cli.Output, progress io.Writer) error {
	opt, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return out.Text(Usage())
	case err != nil:
		return cli.UsageError{Err: err}
	}
	c, err := newCampaign(opt, progress)
	if err != nil {
		return err
	}
	return c.run(ctx, out)
}

// newCampaign looks at the file and plans the rows.
func newCampaign(opt *options, progress io.Writer) (*campaign, error) {
	subject, err := inspect(opt)
	if err != nil {
		return nil, err
	}
	cells, err := plan(opt, subject)
	if err != nil {
		return nil, err
	}
	asks, err := demandOf(opt)
	if err != nil {
		return nil, fmt.Errorf("--for: %w", err)
	}
	return &campaign{opt: opt, subject: subject, cells: cells, demand: asks, progress: progress}, nil
}

// giveProcessors lets as many goroutines run at once as the cells need. A lane that
// comes back from its system call needs a processor at once, beside the compute
// load; waiting for one would look like a slow drive (docs/architecture.md, "Where
// time is counted"). Two more are for the timer and the collector.
func (c *campaign) giveProcessors() {
	procs := runtime.NumCPU()
	for _, one := range c.cells {
		procs = max(procs, one.lanes+one.load+2)
	}
	runtime.GOMAXPROCS(procs)
}

// Table is the whole table of a file in all its forms.
type Table struct {
	Result Result
	Text   string // for people
	CSV    string // every measurement
}

// MeasureTable measures every variable, as --table does: args are flags that go with
// it. What ends it early is returned beside what was measured by then; without any
// measurement the table is nil.
func MeasureTable(ctx context.Context, path string, progress io.Writer, args ...string) (*Table, error) {
	opt, err := parse(append([]string{"--table", "--model", path}, args...))
	if err != nil {
		return nil, err
	}
	c, err := newCampaign(opt, progress)
	if err != nil {
		return nil, err
	}
	var text, rows bytes.Buffer
	file, err := newCSV(c, nopCloser{&rows})
	if err != nil {
		return nil, err
	}
	out := newTextReport(cli.NewOutput(&text), c)
	err = c.measureAll(ctx, out, file)
	if len(c.measurements) == 0 {
		return nil, err
	}
	s := c.summarise()
	s.complete = err == nil
	if eerr := out.end(s); eerr != nil {
		return nil, eerr
	}
	return &Table{s.result(c.demand), text.String(), rows.String()}, err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
