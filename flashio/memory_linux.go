package flashio

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page in bytes, 0 if the kernel has none.
var hugePage = askHugePage()

func askHugePage() int {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n&(n-1) != 0 {
		return 0
	}
	return n
}

// adviseHuge asks for huge pages, or for none. It is a hint: a kernel without
// them, or with them switched off, is right to refuse it.
func adviseHuge(p unsafe.Pointer, size int, huge bool) {
	if hugePage == 0 {
		return
	}
	advice := unix.MADV_HUGEPAGE
	if !huge {
		advice = unix.MADV_NOHUGEPAGE
	}
	_ = unix.Madvise(unsafe.Slice((*byte)(p), size), advice)
}
