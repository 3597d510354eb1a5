package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// bigPages returns n bytes on 2 MiB pages where the kernel grants them: what
// weights in memory of our own lie on.
func bigPages(n int) []byte {
	const page = 2 << 20
	b := make([]byte, n+page)
	skip := page - int(uintptr(unsafe.Pointer(&b[0])))%page
	b = b[skip : skip+n]
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // a wish
	return b
}
