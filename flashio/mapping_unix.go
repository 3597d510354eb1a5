//go:build linux || darwin

package flashio

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SectionsExist tells whether a mapping has a section beside its view: here it is
// its view and nothing else.
const SectionsExist = false

type section struct{}

func mapFile(path string) (unsafe.Pointer, int, section, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, section{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, section{}, err
	}
	if !st.Mode().IsRegular() {
		return nil, 0, section{}, errors.New("not a regular file")
	}
	size := int(st.Size())
	if size == 0 {
		return nil, 0, section{}, errors.New("the file is empty")
	}
	p, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, 0, section{}, os.NewSyscallError("mmap", err)
	}
	return p, size, section{}, nil
}

func unmapView(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("munmap", unix.MunmapPtr(p, uintptr(size)))
}

func closeSection(section) error { return nil }
