package tui

import (
	"os"
	"syscall"
)

// endSignals end the program in good order.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// jobSignals do not exist here.
var jobSignals []os.Signal

func isStop(os.Signal) bool { return false }
func isGoOn(os.Signal) bool { return false }
