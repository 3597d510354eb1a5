package flashio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func reserveMemory(size int) (unsafe.Pointer, error) {
	p, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	return pointer(p), os.NewSyscallError("VirtualAlloc", err)
}

func commitMemory(p unsafe.Pointer, size int) error {
	_, err := windows.VirtualAlloc(uintptr(p), uintptr(size), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return os.NewSyscallError("VirtualAlloc", err)
}

func decommitMemory(p unsafe.Pointer, size int) error {
	return os.NewSyscallError("VirtualFree", windows.VirtualFree(uintptr(p), uintptr(size), windows.MEM_DECOMMIT))
}

func releaseMemory(p unsafe.Pointer, _ int) error {
	return os.NewSyscallError("VirtualFree", windows.VirtualFree(uintptr(p), 0, windows.MEM_RELEASE))
}

// adviseHuge does nothing: large pages take a privilege that users do not have.
func adviseHuge(unsafe.Pointer, int, bool) {}
