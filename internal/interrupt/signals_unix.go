//go:build !windows

package interrupt

import (
	"os"
	"syscall"
)

const hangUp = syscall.SIGHUP

// others ask like Ctrl+C.
var others = []os.Signal{syscall.SIGTERM, hangUp}
