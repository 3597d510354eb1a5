// Command bmoe-iobench measures what the drive under a model file gives, one
// variable a row: lanes, read size, buffered reads, a busy CPU, locality, fresh
// destination pages, and above all a live mapping of the file, which makes some
// hosts serve the reads of all lanes one at a time (docs/windows.md).
//
// It drives flashio, the read path of the engine, so that alignment, direct I/O
// and its fallback are part of what is measured.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/pflag"

	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/interrupt"
	"bmoe/internal/tty"
)

func main() {
	cli.EndOnPanic("bmoe-iobench")
	defer crash.Catch("program")
	cli.IgnoreBrokenPipe()
	ctx, stop := interrupt.Context(context.Background())
	defer stop()
	var progress io.Writer
	if tty.Is(os.Stderr) {
		progress = os.Stderr
	}
	err := run(ctx, os.Args[1:], cli.NewOutput(os.Stdout), progress)
	os.Exit(cli.Finish(os.Stderr, "bmoe-iobench", err))
}

// run is the program. Progress goes to progress, which is nil unless a person
// watches.
func run(ctx context.Context, args []string, out *cli.Output, progress io.Writer) error {
	opt, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return out.Text(usage())
	case err != nil:
		return cli.UsageError{Err: err}
	}
	subject, err := inspect(opt)
	if err != nil {
		return err
	}
	cells, err := plan(opt, subject)
	if err != nil {
		return err
	}
	asks, err := demandOf(opt)
	if err != nil {
		return fmt.Errorf("--for: %w", err)
	}
	// A lane that comes back from its system call needs a processor at once,
	// beside the compute load; waiting for one would look like a slow drive
	// (docs/architecture.md, "Where time is counted"). Two more are for the timer and the collector.
	procs := runtime.NumCPU()
	for _, c := range cells {
		procs = max(procs, c.lanes+c.load+2)
	}
	runtime.GOMAXPROCS(procs)

	c := &campaign{opt: opt, subject: subject, cells: cells, demand: asks, progress: progress}
	return c.run(ctx, out)
}
