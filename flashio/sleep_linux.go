package flashio

import "golang.org/x/sys/unix"

// pacingSlack is how much of an overslept wait, in nanoseconds, the next read of
// a simulated lane makes up for. Without it every timer's lateness would slow a
// lane down; a pause longer than this is an idle lane, and lost.
const pacingSlack = 300_000

// sleep blocks in a system call, as a read does, so that the scheduler treats
// a simulated lane like a real one.
func sleep(ns int64) {
	ts := unix.NsecToTimespec(ns)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, &ts) == unix.EINTR {
	}
}
