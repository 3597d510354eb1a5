// Package interrupt is how a program without a screen is asked to end in good
// order: with its temporary files removed, and with exit code 130.
package interrupt

import (
	"context"
	"os"
	"os/signal"
)

// Signals returns what asks a program to end in good order: Ctrl+C, a kill
// without a number, and the end of the terminal.
func Signals() []os.Signal { return append([]os.Signal{os.Interrupt}, others...) }

// Context returns a context that the first of Signals ends. A second Ctrl+C
// then kills, in case something hangs; another kill or hangup does not, because
// those come in pairs where a shell and the system both send one.
func Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(parent, heard(Signals())...)
	keep := context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	return ctx, func() {
		keep() // nobody pressed Ctrl+C: whoever listens next is not to lose it
		cancel()
	}
}

// Others is Context where Ctrl+C is a command to the program and does not end it.
func Others(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, heard(others)...)
}

// heard leaves out a hangup that is ignored: who starts a program under nohup
// wants it to outlive the terminal.
func heard(signals []os.Signal) []os.Signal {
	var out []os.Signal
	for _, s := range signals {
		if s == hangUp && signal.Ignored(s) {
			continue
		}
		out = append(out, s)
	}
	return out
}
