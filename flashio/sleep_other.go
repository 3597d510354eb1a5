//go:build !linux

package flashio

import "time"

// sleep waits; Go's timers are finer than a millisecond on these systems.
func sleep(ns int64) { time.Sleep(time.Duration(ns)) }
