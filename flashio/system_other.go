//go:build !linux && !darwin && !windows

package flashio

import (
	"fmt"
	"io"
	"os"
)

// The plain path of systems without code of their own: buffered reads through
// package os, memory from the Go heap, and no mappings.

type osHandle struct{ *os.File }

func systemOpen(path string, direct bool) (Handle, error) {
	if direct {
		return nil, NoDirect(ErrNotAvailable)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return osHandle{f}, nil
}

func (h osHandle) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.File.ReadAt(p, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

func refusesDirect(error) bool { return false }

func systemFacts(path string) (Facts, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Facts{}, err
	}
	if !st.Mode().IsRegular() {
		return Facts{}, fmt.Errorf("open %s: not a regular file", path)
	}
	return Facts{Size: st.Size(), Modified: st.ModTime().UnixNano(), Page: os.Getpagesize(), NoDirect: "this system has no direct I/O here"}, nil
}
