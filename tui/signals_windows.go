package tui

import (
	"os"

	"bmoe/internal/interrupt"
)

// endSignals end the program in good order.
var endSignals = interrupt.Signals()

// jobSignals do not exist here.
var jobSignals []os.Signal

func isStop(os.Signal) bool { return false }
func isGoOn(os.Signal) bool { return false }
