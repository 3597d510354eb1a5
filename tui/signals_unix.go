//go:build !windows

package tui

import (
	"os"
	"syscall"

	"bmoe/internal/interrupt"
)

// endSignals end the program in good order.
var endSignals = append(interrupt.Signals(), syscall.SIGQUIT)

// jobSignals are those of a shell that stops the program and lets it go on.
var jobSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT}

func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }
func isGoOn(s os.Signal) bool { return s == syscall.SIGCONT }
