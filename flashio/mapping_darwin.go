package flashio

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of proc_pidinfo(PROC_PIDREGIONPATHINFO) and offsets in its answer,
// struct proc_regionwithpathinfo (xnu, bsd/sys/proc_info.h): a proc_regioninfo
// of 96 bytes whose last two fields are the region's address and size, then a
// vnode_info_path that begins with the vnode's stat and ends in its path.
const (
	procInfoCallPidInfo = 2
	pidRegionPathInfo   = 8

	regionAddress  = 80
	regionSize     = 88
	vnodeDevice    = 96
	vnodeInode     = 104
	regionInfoSize = 96 + 152 + 1024
)

// insideMapping asks the kernel, by system call, which region of this process
// lies at each address and which file it shows. [unverified] on real hardware;
// InsideMapping checks the answer against the views that this package made.
func insideMapping(s *Files, ptrs []uintptr) ([]int, error) {
	return insideBy(ptrs, func(p uintptr) (span, bool, error) {
		var info [regionInfoSize]byte
		//lint:ignore SA1019 x/sys has no wrapper, and without cgo there is no other way
		n, _, errno := unix.Syscall6(unix.SYS_PROC_INFO, procInfoCallPidInfo, uintptr(os.Getpid()),
			pidRegionPathInfo, p, uintptr(unsafe.Pointer(&info)), regionInfoSize)
		if errno == unix.EINVAL || errno == unix.ESRCH {
			return span{p, p + 1}, false, nil // no region at or above the address
		}
		if errno != 0 {
			return span{}, false, os.NewSyscallError("proc_pidinfo", errno)
		}
		if n < regionInfoSize {
			return span{}, false, ErrNotAvailable
		}
		word := func(at int) uint64 { return binary.NativeEndian.Uint64(info[at:]) }
		from := uintptr(word(regionAddress))
		sp := span{from, from + uintptr(word(regionSize))}
		if !sp.has(p) {
			return span{p, p + 1}, false, nil // the answer is the next region
		}
		id := FileID{uint64(binary.NativeEndian.Uint32(info[vnodeDevice:])), word(vnodeInode)}
		for i := range s.files {
			if s.files[i].ID == id {
				return sp, true, nil
			}
		}
		return sp, false, nil
	})
}

// adviseSequential lets the kernel read ahead of a sweep. It is a hint.
func adviseSequential(b []byte) { _ = unix.Madvise(b, unix.MADV_WILLNEED) }

func mincore(b, vec []byte) error {
	//lint:ignore SA1019 x/sys has no wrapper, and without cgo there is no other way
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
