package host

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// taskInfo is struct proc_taskinfo of <sys/proc_info.h>.
type taskInfo struct {
	VirtualSize, ResidentSize uint64
	Times                     [4]uint64
	Counts                    [12]int32
}

// processSource reads getrusage and, for the resident size, proc_pidinfo by its
// system call. How the resident memory splits, and swap, need Mach calls that
// cannot be made without cgo.
type processSource struct {
	usage unix.Rusage
	task  taskInfo
}

func (s *processSource) open() {}

func (s *processSource) close() error { return nil }

func (s *processSource) counters(dst *Sample) {
	if unix.Getrusage(unix.RUSAGE_SELF, &s.usage) != nil {
		return
	}
	dst.CPU = time.Duration(s.usage.Utime.Nano() + s.usage.Stime.Nano())
	dst.MajorFaults = s.usage.Majflt
	dst.Faults = s.usage.Majflt + s.usage.Minflt
	dst.Has |= HasCPU | HasFaults | HasMajorFaults
}

func (s *processSource) memory(dst *Sample) {
	const (
		callPidInfo = 2 // PROC_INFO_CALL_PIDINFO
		taskFlavor  = 4 // PROC_PIDTASKINFO
	)
	size := unsafe.Sizeof(s.task)
	//lint:ignore SA1019 x/sys has no wrapper, and without cgo there is no other way
	n, _, errno := syscall.Syscall6(unix.SYS_PROC_INFO, callPidInfo, uintptr(os.Getpid()), taskFlavor, 0, uintptr(unsafe.Pointer(&s.task)), size)
	if errno == 0 && n == size {
		dst.RSS = int64(s.task.ResidentSize)
		dst.Has |= HasRSS
	}
}

// readMemory counts free pages and those of files, which can be dropped, as
// available. [unverified] on a real machine.
func readMemory() Memory {
	var m Memory
	if total, err := unix.SysctlUint64("hw.memsize"); err == nil {
		m.Total = int64(total)
		m.Has |= HasTotal
	}
	free, errFree := unix.SysctlUint32("vm.page_free_count")
	files, errFiles := unix.SysctlUint32("vm.page_pageable_external_count")
	if errFree == nil && errFiles == nil {
		m.Available = (int64(free) + int64(files)) * int64(os.Getpagesize())
		m.Has |= HasAvailable
	}
	return m
}

func physicalCores() (int, bool) {
	n, err := unix.SysctlUint32("hw.physicalcpu")
	return int(n), err == nil && n > 0
}

type driveSource struct{ name string }

func (*driveSource) open(string) error {
	return errors.New("macOS shows a drive's counters only through IOKit, which bmoe does not use")
}
func (*driveSource) close() error        { return nil }
func (*driveSource) sample(*DriveSample) {}
