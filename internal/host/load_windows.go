package host

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var procSystemTimes = kernel32.NewProc("GetSystemTimes")

// loadSource asks for all processors' times. How long threads waited for one
// Windows does not tell, so whether others disturbed a run stays not measured.
type loadSource struct{ idle, kernel, user windows.Filetime }

func (*loadSource) open()              {}
func (*loadSource) close() error       { return nil }
func (*loadSource) delays(*LoadSample) {}

// processors fills the sums. Kernel time includes idle time. [unverified] on a
// machine with more than 64 processors, where the sums may be of one group.
func (s *loadSource) processors(dst *LoadSample) {
	ok, _, _ := syscall.SyscallN(procSystemTimes.Addr(), uintptr(unsafe.Pointer(&s.idle)), uintptr(unsafe.Pointer(&s.kernel)), uintptr(unsafe.Pointer(&s.user)))
	if ok == 0 {
		return
	}
	idle := time.Duration(ticks(s.idle)) * 100 // in 100 ns
	dst.Idle = idle
	dst.Busy = time.Duration(ticks(s.kernel)+ticks(s.user))*100 - idle
	dst.CPUs = runtime.NumCPU()
	dst.Has |= HasLoad
}
