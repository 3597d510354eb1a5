//go:build unix

package main

import (
	"errors"
	"os/signal"
	"syscall"
)

// ignoreBrokenPipe makes a write to a closed pipe an error in place of a
// signal, so that the run ends in order.
func ignoreBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }

// isClosedPipe reports whether a write failed because the reader has gone.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// holdConsole does nothing: a terminal stays when its program ends.
func holdConsole() {}
