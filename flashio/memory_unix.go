//go:build linux || darwin

package flashio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const anonymous = unix.MAP_PRIVATE | unix.MAP_ANON

// reserveMemory takes addresses that begin at a multiple of a huge page, if the
// range can hold one, and gives back what it took too much to find them.
func reserveMemory(size int) (unsafe.Pointer, error) {
	spare := 0
	if hugePage > 0 && size >= hugePage {
		spare = hugePage
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(size+spare), unix.PROT_NONE, anonymous|unix.MAP_NORESERVE)
	if err != nil || spare == 0 {
		return p, os.NewSyscallError("mmap", err)
	}
	before := int(-uintptr(p) & uintptr(spare-1))
	start := unsafe.Add(p, before)
	if before > 0 {
		err = releaseMemory(p, before)
	}
	if after := spare - before; after > 0 && err == nil {
		err = releaseMemory(unsafe.Add(start, size), after)
	}
	return start, err
}

func commitMemory(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("mprotect", unix.Mprotect(unsafe.Slice((*byte)(p), size), unix.PROT_READ|unix.PROT_WRITE))
}

// decommitMemory maps fresh inaccessible pages over the old ones: unlike
// madvise that frees the memory at once on every Unix.
func decommitMemory(p unsafe.Pointer, size int) error {
	_, err := unix.MmapPtr(-1, 0, p, uintptr(size), unix.PROT_NONE, anonymous|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return os.NewSyscallError("mmap", err)
}

func releaseMemory(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("munmap", unix.MunmapPtr(p, uintptr(size)))
}
