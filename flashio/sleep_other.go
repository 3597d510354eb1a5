//go:build !linux

package flashio

import "time"

// pacingSlack is explained in sleep_linux.go. Timers are coarser here: 0.5 ms at
// best on Windows.
const pacingSlack = 2_000_000

// sleep waits.
func sleep(ns int64) { time.Sleep(time.Duration(ns)) }
