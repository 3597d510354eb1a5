package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

// IgnoreBrokenPipe has nothing to do: there is no such signal.
func IgnoreBrokenPipe() {}

// isClosedPipe reports whether a write failed because the reader has gone.
func isClosedPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
