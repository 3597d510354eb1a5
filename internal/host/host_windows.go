package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32              = windows.NewLazySystemDLL("kernel32.dll")
	procMemoryInfo        = kernel32.NewProc("K32GetProcessMemoryInfo")
	procMemoryStatus      = kernel32.NewProc("GlobalMemoryStatusEx")
	procIoCounters        = kernel32.NewProc("GetProcessIoCounters")
	procLogicalProcessors = kernel32.NewProc("GetLogicalProcessorInformationEx")
)

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX2. Systems before Windows 10 22H2
// know only the part before PrivateWorkingSetSize and refuse the longer size.
type memoryCounters struct {
	Size                       uint32
	PageFaultCount             uint32
	PeakWorkingSetSize         uintptr
	WorkingSetSize             uintptr
	QuotaPeakPagedPoolUsage    uintptr
	QuotaPagedPoolUsage        uintptr
	QuotaPeakNonPagedPoolUsage uintptr
	QuotaNonPagedPoolUsage     uintptr
	PagefileUsage              uintptr
	PeakPagefileUsage          uintptr
	PrivateUsage               uintptr
	PrivateWorkingSetSize      uintptr
	SharedCommitUsage          uint64
}

// processSource asks for this process by its pseudo-handle, which needs no
// closing. Windows counts hard and soft faults of a process together, so major
// faults stay unmarked, as does swap: its page file usage is a promise of space,
// not memory that was moved out.
type processSource struct {
	memoryInfo                    memoryCounters
	created, exited, kernel, user windows.Filetime
}

func (s *processSource) open() {}

func (s *processSource) close() error { return nil }

func (s *processSource) counters(dst *Sample) {
	if windows.GetProcessTimes(windows.CurrentProcess(), &s.created, &s.exited, &s.kernel, &s.user) == nil {
		dst.CPU = time.Duration(ticks(s.kernel)+ticks(s.user)) * 100 // in 100 ns
		dst.Has |= HasCPU
	}
	// No process runs without a fault: a zero (under Wine) means unknown.
	if s.query(unsafe.Offsetof(s.memoryInfo.PrivateWorkingSetSize)) && s.memoryInfo.PageFaultCount > 0 {
		dst.Faults = int64(s.memoryInfo.PageFaultCount)
		dst.Has |= HasFaults
	}
}

func (s *processSource) memory(dst *Sample) {
	split := s.query(unsafe.Sizeof(s.memoryInfo))
	if !split && !s.query(unsafe.Offsetof(s.memoryInfo.PrivateWorkingSetSize)) {
		return
	}
	dst.RSS = int64(s.memoryInfo.WorkingSetSize)
	dst.Has |= HasRSS
	if private := int64(s.memoryInfo.PrivateWorkingSetSize); split && private > 0 {
		dst.RSSAnon, dst.RSSFile = private, max(dst.RSS-private, 0)
		dst.Has |= HasRSSSplit
	}
}

// query fills memoryInfo with the counters of the given size. (SyscallN, because
// a LazyProc's Call allocates its arguments.)
func (s *processSource) query(size uintptr) bool {
	s.memoryInfo = memoryCounters{Size: uint32(size)}
	ok, _, _ := syscall.SyscallN(procMemoryInfo.Addr(), uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&s.memoryInfo)), size)
	return ok != 0
}

func ticks(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

func readMemory() Memory {
	var status struct { // MEMORYSTATUSEX
		Length, Load                                       uint32
		TotalPhys, AvailPhys, TotalPageFile, AvailPageFile uint64
		TotalVirtual, AvailVirtual, AvailExtendedVirtual   uint64
	}
	status.Length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := procMemoryStatus.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return Memory{}
	}
	return Memory{Total: int64(status.TotalPhys), Available: int64(status.AvailPhys), Has: HasTotal | HasAvailable}
}

func physicalCores() (int, bool) {
	const relationProcessorCore = 0
	var size uint32
	procLogicalProcessors.Call(relationProcessorCore, 0, uintptr(unsafe.Pointer(&size)))
	if size == 0 {
		return 0, false
	}
	buf := make([]byte, size)
	if ok, _, _ := procLogicalProcessors.Call(relationProcessorCore, uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size))); ok == 0 {
		return 0, false
	}
	// A list of records; each starts with its relation and its own length.
	cores := 0
	for at := uint32(0); at+8 <= size; {
		length := *(*uint32)(unsafe.Pointer(&buf[at+4]))
		if length < 8 {
			return 0, false
		}
		cores++
		at += length
	}
	return cores, cores > 0
}

// driveSource asks the volume of the file for its counters, and the process for
// its own. The own ones count every transfer, those from the cache too, so what
// others moved comes out too small where this process reads with the cache.
type driveSource struct {
	name   string
	volume windows.Handle
	disk   diskPerformance
	io     ioCounters
}

// diskPerformance is DISK_PERFORMANCE of winioctl.h.
type diskPerformance struct {
	BytesRead, BytesWritten                    int64
	ReadTime, WriteTime, IdleTime              int64
	ReadCount, WriteCount, QueueDepth, SplitIO uint32
	QueryTime                                  int64
	StorageDeviceNumber                        uint32
	StorageManagerName                         [8]uint16
}

// ioCounters is IO_COUNTERS of winnt.h.
type ioCounters struct {
	ReadOperations, WriteOperations, OtherOperations uint64
	ReadTransfer, WriteTransfer, OtherTransfer       uint64
}

const ioctlDiskPerformance = 0x70020

func (s *driveSource) open(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("drive of %s: %w", path, err)
	}
	s.name = filepath.VolumeName(absolute)
	if len(s.name) != 2 || s.name[1] != ':' {
		return fmt.Errorf("drive of %s: %s is not a local drive", path, s.name)
	}
	device, err := windows.UTF16PtrFromString(`\\.\` + s.name)
	if err != nil {
		return fmt.Errorf("drive of %s: %w", path, err)
	}
	// No access rights are asked for: the counters need none, and so no
	// administrator.
	s.volume, err = windows.CreateFile(device, 0, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return fmt.Errorf("drive of %s: open volume %s: %w", path, s.name, err)
	}
	if !s.queryDisk() {
		return errors.Join(fmt.Errorf("drive of %s: the volume %s keeps no counters", path, s.name), s.close())
	}
	return nil
}

func (s *driveSource) queryDisk() bool {
	var returned uint32
	return windows.DeviceIoControl(s.volume, ioctlDiskPerformance, nil, 0,
		(*byte)(unsafe.Pointer(&s.disk)), uint32(unsafe.Sizeof(s.disk)), &returned, nil) == nil
}

func (s *driveSource) close() error { return windows.CloseHandle(s.volume) }

func (s *driveSource) sample(dst *DriveSample) {
	if s.queryDisk() {
		dst.Read, dst.Written = s.disk.BytesRead, s.disk.BytesWritten
		dst.Has |= HasDrive
	}
	if ok, _, _ := syscall.SyscallN(procIoCounters.Addr(), uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&s.io))); ok != 0 {
		dst.OwnRead, dst.OwnWritten = int64(s.io.ReadTransfer), int64(s.io.WriteTransfer)
		dst.Has |= HasOwn
	}
}
