//go:build linux || darwin

package flashio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const anonymous = unix.MAP_PRIVATE | unix.MAP_ANON

func reserveMemory(size int) (unsafe.Pointer, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, anonymous|mapNoReserve)
	return p, os.NewSyscallError("mmap", err)
}

func commitMemory(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("mprotect", unix.Mprotect(unsafe.Slice((*byte)(p), size), unix.PROT_READ|unix.PROT_WRITE))
}

// decommitMemory maps fresh inaccessible pages over the old ones: unlike
// madvise that frees the memory at once on every Unix.
func decommitMemory(p unsafe.Pointer, size int) error {
	_, err := unix.MmapPtr(-1, 0, p, uintptr(size), unix.PROT_NONE, anonymous|mapNoReserve|unix.MAP_FIXED)
	return os.NewSyscallError("mmap", err)
}

func releaseMemory(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("munmap", unix.MunmapPtr(p, uintptr(size)))
}
