package flashio

import "golang.org/x/sys/unix"

// sleep blocks in a system call, as a read does, so that the scheduler treats
// a simulated lane like a real one.
func sleep(ns int64) {
	ts := unix.NsecToTimespec(ns)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, &ts) == unix.EINTR {
	}
}
