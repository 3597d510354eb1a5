// Package clock is the only source of time for figures that bmoe reports. It
// counts monotonic nanoseconds from the start of the process.
//
// It exists because Go's own monotonic clock on Windows advances in steps of
// 0.5 to 15.6 ms, which is useless for read latencies of about 1 ms
// (golang/go#67066); there the performance counter is read instead.
package clock

import "time"

// Now returns the nanoseconds of monotonic time that have passed since the
// process started. It allocates nothing and is safe for concurrent use.
func Now() int64 { return now() }

// Since returns the time that has passed since an earlier Now.
func Since(start int64) time.Duration { return time.Duration(Now() - start) }
