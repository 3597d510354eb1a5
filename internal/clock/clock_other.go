//go:build !windows

package clock

import "time"

// base carries a monotonic reading; time.Since reads only the monotonic clock
// when its argument has one, so a stepped wall clock does not matter.
var base = time.Now()

func now() int64 { return int64(time.Since(base)) }
