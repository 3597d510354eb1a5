//go:build linux || darwin

package flashio_test

import "golang.org/x/sys/unix"

// cpuTime returns the nanoseconds of CPU that the process has used.
func cpuTime() int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}
