package gguf

import (
	"fmt"
	"strconv"
)

// FormatError says that a file is not a GGUF file that can be used: what is
// wrong, where, and what to do. errors.As tells it from an I/O error.
type FormatError struct {
	Path string // the file
	Msg  string // what is wrong, and where
}

// Error returns the message in one line.
func (e *FormatError) Error() string { return e.Path + ": " + e.Msg }

// fileError returns a FormatError about a file as a whole.
func fileError(path, format string, args ...any) error {
	return &FormatError{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// quote prints a name that came from a file, on one line and not longer than a
// reader can take in.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
