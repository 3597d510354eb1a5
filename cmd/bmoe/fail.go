package main

import (
	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/tty"
)

// fail gives the terminal back after a panic, leaves a report, says so in one
// line, and returns the exit code. Only the first panic comes back from it.
func fail(p *crash.Panic) int {
	p.Tell("bmoe", versionText(), tty.Restore)
	return cli.Failed
}
