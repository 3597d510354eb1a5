// Package cli holds what bmoe's commands have in common: exit codes, errors in the
// command line, the one line that tells of an error or a panic, standard output.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"bmoe/internal/crash"
	"bmoe/tui/term"
)

// Exit codes.
const (
	Done        = 0
	Failed      = 1   // the run failed: a bad file, an I/O error
	Usage       = 2   // the command line is wrong
	Interrupted = 130 // Ctrl+C, a kill, the end of the terminal
)

// ExitCodes says what they mean, for a help text.
const ExitCodes = "0 done, 1 failed, 2 bad usage, 130 interrupted."

// UsageError is an error in what was asked for, as opposed to one of a file or of
// the host.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// ExitCode returns the exit code for what ended a command. When standard output
// has been closed nobody is left to tell.
func ExitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, ErrStdoutClosed):
		return Done
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, new(UsageError)):
		return Usage
	}
	return Failed
}

// Tell says in one line why a command fails with an exit code. It says nothing of
// the other codes: the user knows.
func Tell(stderr io.Writer, command string, err error, code int) {
	if code != Failed && code != Usage {
		return
	}
	hint := ""
	if code == Usage && errors.As(err, new(UsageError)) {
		hint = " (--help lists the flags)"
	}
	fmt.Fprintf(stderr, "%s: %s%s\n", command, term.CleanLine(err.Error()), hint)
}

// EndOnPanic makes a panic on any goroutine that defers crash.Catch end the command
// in good order: with a report, one line that tells of it, and Failed.
func EndOnPanic(command string) {
	crash.Handle(func(p *crash.Panic) {
		p.Tell(command, command, nil)
		os.Exit(Failed)
	})
}

// Finish tells of an error, if there is one, and returns the exit code.
func Finish(stderr io.Writer, command string, err error) int {
	code := ExitCode(err)
	Tell(stderr, command, err, code)
	return code
}
