//go:build linux || darwin

package flashio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// residentPages asks mincore(2), whose lowest bit per page means "in memory" on
// both systems.
func residentPages(b []byte) (resident, pages int, err error) {
	page := os.Getpagesize()
	vec := make([]byte, (len(b)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return 0, 0, os.NewSyscallError("mincore", errno)
	}
	for _, v := range vec {
		resident += int(v & 1)
	}
	return resident, len(vec), nil
}
