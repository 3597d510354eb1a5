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
	"os/signal"
	"runtime"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1   // the run failed: a bad file, an I/O error
	exitUsage       = 2   // the command line is wrong
	exitInterrupted = 130 // Ctrl+C
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() { // a second Ctrl+C kills, should a read hang
		<-ctx.Done()
		stop()
	}()
	var progress io.Writer
	if term.IsTerminal(int(os.Stderr.Fd())) {
		progress = os.Stderr
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, progress))
}

// run is the program. Progress goes to progress, which is nil unless a person
// watches.
func run(ctx context.Context, args []string, stdout, stderr, progress io.Writer) int {
	opt, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return finish(stderr, writeText(stdout, usage()))
	case err != nil:
		fmt.Fprintf(stderr, "bmoe-iobench: %v (--help lists the flags)\n", err)
		return exitUsage
	}
	subject, err := inspect(opt)
	if err != nil {
		return finish(stderr, err)
	}
	cells, err := plan(opt, subject)
	if err != nil {
		return finish(stderr, err)
	}
	// A lane that comes back from its system call needs a processor at once,
	// beside the compute load; waiting for one would look like a slow drive
	// (docs/architecture.md, "Where time is counted"). Two more are for the timer and the collector.
	procs := runtime.NumCPU()
	for _, c := range cells {
		procs = max(procs, c.lanes+c.load+2)
	}
	runtime.GOMAXPROCS(procs)

	c := &campaign{opt: opt, subject: subject, cells: cells, progress: progress}
	return finish(stderr, c.run(ctx, stdout))
}

// usageError is an error in what was asked for, as opposed to one of the file or
// the drive.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errStdoutClosed ends a run whose reader has gone: nothing is left to say.
var errStdoutClosed = errors.New("standard output is closed")

// errInterrupted ends a run that the user broke off.
var errInterrupted = errors.New("interrupted")

// finish says what went wrong, if something did, and returns the exit code.
func finish(stderr io.Writer, err error) int {
	var asked usageError
	switch {
	case err == nil, errors.Is(err, errStdoutClosed):
		return exitDone
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "bmoe-iobench: %v\n", err)
	if errors.As(err, &asked) {
		return exitUsage
	}
	return exitFailed
}

// writeText writes to standard output.
func writeText(stdout io.Writer, text string) error {
	if _, err := io.WriteString(stdout, text); err != nil {
		return fmt.Errorf("%w: %v", errStdoutClosed, err)
	}
	return nil
}
