package main

import (
	"fmt"
	"os"
	"sync"

	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/tty"
	"bmoe/tui/term"
)

// failing is held by the first panic, which ends the program.
var failing sync.Mutex

// fail gives the terminal back after a panic, leaves a report, says so in one
// line, and returns the exit code. Only the first panic comes back from it.
func fail(p *crash.Panic) int {
	failing.Lock()
	tty.Restore()
	where := "no report could be written"
	path, err := p.Report(versionText())
	if err == nil {
		where = "the report is " + path
	}
	fmt.Fprintf(os.Stderr, "bmoe: failed within itself: %s (please report this; %s)\n", term.CleanLine(p.String()), term.CleanLine(where))
	if os.Getenv(debugVariable) != "" {
		os.Stderr.Write(p.Stack)
	}
	return cli.Failed
}
