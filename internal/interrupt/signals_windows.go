package interrupt

import (
	"os"
	"syscall"
)

const hangUp = syscall.SIGHUP // never comes

// others ask like Ctrl+C: a console that is closed, a user who logs off.
var others = []os.Signal{syscall.SIGTERM}
