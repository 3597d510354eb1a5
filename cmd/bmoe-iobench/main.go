// Command bmoe-iobench measures what the drive under a model file gives, one
// variable a row: lanes, read size, buffered reads, a busy CPU, locality, fresh
// destination pages, and above all a live mapping of the file, which makes some
// hosts serve the reads of all lanes one at a time (docs/windows.md).
package main

import (
	"context"
	"io"
	"os"

	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/interrupt"
	"bmoe/internal/iobench"
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
	err := iobench.Run(ctx, os.Args[1:], cli.NewOutput(os.Stdout), progress)
	os.Exit(cli.Finish(os.Stderr, "bmoe-iobench", err))
}
