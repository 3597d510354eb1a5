//go:build unix

package cli

import (
	"errors"
	"os/signal"
	"syscall"
)

// IgnoreBrokenPipe makes a write to a closed pipe an error in place of a
// signal, so that the run ends in order.
func IgnoreBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }

// isClosedPipe reports whether a write failed because the reader has gone.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
