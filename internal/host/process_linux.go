package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// processSource reads getrusage, a system call without a file, for the counters
// and /proc/self/status for the memory. (/proc/self/statm would be quicker but
// knows no swap; smaps_rollup is exact but walks every page table.)
type processSource struct {
	status procFile
	usage  unix.Rusage
	buf    [4096]byte
}

func (s *processSource) open() { s.status, _ = openProcFile("/proc/self/status") }

func (s *processSource) close() error { return s.status.close() }

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
	text := s.status.read(s.buf[:])
	if rss, ok := field(text, "VmRSS"); ok {
		dst.RSS = rss << 10
		dst.Has |= HasRSS
	}
	anon, okAnon := field(text, "RssAnon")
	file, okFile := field(text, "RssFile")
	shared, okShared := field(text, "RssShmem")
	if okAnon && okFile && okShared {
		dst.RSSAnon, dst.RSSFile = anon<<10, (file+shared)<<10
		dst.Has |= HasRSSSplit
	}
	if swap, ok := field(text, "VmSwap"); ok {
		dst.Swap = swap << 10
		dst.Has |= HasSwap
	}
}
