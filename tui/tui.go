// Package tui is the screen: a chat on the left, and beside it live panes that
// show where every token's time goes.
//
// It is one Bubble Tea program with one root model. The panes are plain
// structs that are told what to draw. The engine never calls the screen: a
// ticker samples its snapshot, and text arrives through the callback of a
// generation, in a buffer that the ticker empties.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/sessions"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Options is what the screen is started with.
type Options struct {
	// Open opens the engine. It runs beside the screen, which shows at once,
	// and reports how far it is: a stage in a word or two, and the fraction
	// done of it between 0 and 1, negative when unknown.
	Open func(progress func(stage string, frac float64)) (backend.Backend, error)
	// Name is shown for the model until it is open.
	Name string
	// Notices brings what the user should hear of outside of answers, such as a file
	// that can no longer be written; nil if there is none.
	Notices <-chan string

	// Sessions keeps conversations; nil: nothing is kept.
	Sessions *sessions.Store
	// Resume names the session to go on with; nil: a new one.
	Resume *string
	// Model is the path of what is opened, for sessions to remember.
	Model string
	// Models are those that can be changed to; nil: none. ModelID is the ID of the one
	// that Open opens.
	Models  backend.Models
	ModelID string

	Plain   bool // line by line, for screen readers and terminals that cannot move the cursor
	ASCII   bool // no other characters for frames and bars
	NoMouse bool
	Keys    Keys   // other keys than usual
	Theme   string // one of term.Themes; empty: the first

	Input   io.Reader // standard input if nil
	Output  io.Writer // standard output if nil
	Errors  io.Writer // standard error if nil
	Environ []string  // the process's if nil
}

// ErrInterrupted is returned when a signal or the context ended the program.
var ErrInterrupted = errors.New("interrupted")

// stopPatience is how long a generation may take to notice that the program
// ends. One token of a model much bigger than RAM can take seconds.
const stopPatience = 30 * time.Second

// Run shows the screen until the user quits, and closes the engine. The
// terminal is as it was before on every return. An error of Open comes back
// as it is.
func Run(ctx context.Context, o Options) error {
	if o.Input == nil {
		o.Input = os.Stdin
	}
	if o.Output == nil {
		o.Output = os.Stdout
	}
	if o.Errors == nil {
		o.Errors = os.Stderr
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if err := o.Keys.Check(); err != nil {
		return err
	}
	caps := term.Detect(o.Environ)
	if o.Plain || caps.Dumb {
		return runPlain(ctx, o)
	}
	m := newModel(o, caps)
	var opts []tea.ProgramOption
	if caps.NoColor {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	forced, s, err := onTerminal(ctx, m, opts)
	defer signal.Stop(s.sigs)
	var panicked PanicError
	switch {
	case forced || errors.As(err, &panicked):
		return err
	case m.panicked != nil:
		return *m.panicked
	case err != nil:
		err = fmt.Errorf("terminal: %w", err)
	}
	if m.interrupted {
		err = ErrInterrupted
	}
	writeLines(o.Output, m.farewell())
	return errors.Join(err, s.finish(m.shutDown))
}
