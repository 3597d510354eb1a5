package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"bmoe/internal/crash"
	"bmoe/internal/tty"

	tea "charm.land/bubbletea/v2"
)

// How long things may take that a blocked loop or terminal would keep for ever.
const (
	endPatience    = 2 * time.Second // from a signal to the program's end in good order
	stopDrawing    = time.Second     // for the renderer to reset its modes
	promptPatience = time.Second     // for what was sent to be kept
	impatience     = time.Second     // after a quit, a Ctrl+C is taken for its second one

	signalPatience = time.Second / 2 // for a signal to itself to be heard, on a busy machine
)

// A frame is due every twentieth of a second.
const (
	drawPatience = time.Second / 2
	drawTries    = 4
)

// resumeNotice is said where stopping makes no sense.
const resumeNotice = "there is no shell to go back to here; Ctrl+C quits"

// PanicError is a panic within the program that was met in good order: the
// terminal has been given back.
type PanicError struct{ *crash.Panic }

func (e PanicError) Error() string { return "failed within itself: " + e.String() }

// show is a program on a terminal: it hears signals, stops and goes on, and
// ends the program even when nobody listens.
type show struct {
	p      *tea.Program
	screen *tty.Screen // nil where input or output is no terminal
	sigs   chan os.Signal
	ended  chan error    // the program has ended by itself
	asked  chan struct{} // somebody pressed Ctrl+Z

	// Until then a signal to stop may be the one that stop itself has sent.
	ownStop time.Time
}

// onTerminal runs a model until it ends. The terminal is given back on every
// return. forced means that the program did not end in good order, and that the
// model may not be looked at.
func onTerminal(ctx context.Context, m *Model, opts []tea.ProgramOption) (forced bool, s *show, err error) {
	s = &show{sigs: make(chan os.Signal, 8), ended: make(chan error, 1), asked: make(chan struct{}, 1)}
	input, output := m.o.Input, m.o.Output
	in, isFile := m.o.Input.(*os.File)
	out, outIsFile := m.o.Output.(*os.File)
	if isFile && outIsFile && tty.Is(in) && tty.Is(out) {
		if s.screen, err = tty.Take(in, out); err != nil {
			return true, s, fmt.Errorf("terminal: %w", err)
		}
		defer s.screen.Close()
		input, output = s.screen.Keys(), s.screen.Output()
	}
	m.suspend = func() {
		select {
		case s.asked <- struct{}{}:
		default:
		}
	}
	opts = append(opts, tea.WithInput(input), tea.WithOutput(output), tea.WithEnvironment(m.o.Environ),
		tea.WithFPS(20), tea.WithoutSignalHandler(), tea.WithoutCatchPanics())
	s.p = tea.NewProgram(m, opts...)
	s.listen()
	go s.run()
	forced, err = s.attend(ctx)
	if s.screen != nil && (forced || errors.As(err, new(PanicError))) {
		s.screen.Restore()
	}
	return forced, s, err
}

// run is the program's loop. Panics in it are met here.
func (s *show) run() {
	defer func() {
		if v := recover(); v != nil {
			s.ended <- PanicError{crash.New("screen", v, debug.Stack())}
		}
	}()
	_, err := s.p.Run()
	s.ended <- err
}

// listen asks for the signals that are not ignored: who started the program
// without SIGHUP wants it to outlive the terminal's, and it ends by the
// terminal's end all the same.
func (s *show) listen() {
	for _, sig := range append(endSignals, jobSignals...) {
		if !signal.Ignored(sig) {
			signal.Notify(s.sigs, sig)
		}
	}
}

// attend waits for the end and does what signals ask for.
func (s *show) attend(ctx context.Context) (forced bool, err error) {
	var force <-chan time.Time
	end := func() {
		if force == nil {
			force = time.After(endPatience)
			go s.p.Send(interruptMsg{})
		}
	}
	var gone <-chan struct{}
	if s.screen != nil {
		gone = s.screen.Gone()
	}
	cancelled := ctx.Done()
	for {
		select {
		case err := <-s.ended:
			return false, err
		case <-force: // the loop is blocked, most likely by a terminal that takes no output
			return true, ErrInterrupted
		case <-cancelled:
			cancelled = nil
			end()
		case <-gone:
			gone = nil
			end()
		case <-s.asked:
			s.stop(true, end)
		case sig := <-s.sigs:
			switch {
			case isStop(sig) && time.Now().Before(s.ownStop):
				s.ownStop = time.Time{}
			case isStop(sig):
				s.stop(false, end)
			case isGoOn(sig):
				s.renew(end)
			case force != nil:
				return true, ErrInterrupted // asked twice
			default:
				end()
			}
		}
	}
}

// stop gives the terminal back and stops the process, with its whole job if it
// was a key that asked, and goes on when it is resumed.
func (s *show) stop(job bool, end func()) {
	if s.screen == nil {
		return
	}
	if job && !tty.CanStop() {
		go s.p.Send(resumedMsg{})
		return
	}
	released := make(chan struct{})
	go func() {
		defer crash.Catch("screen")
		s.p.ReleaseTerminal() // what it writes may fail: that shows when it is written to again
		close(released)
	}()
	select {
	case <-released:
	case <-time.After(stopDrawing): // the terminal takes no output
	}
	s.screen.Release()
	stopped := tty.Stop(job)
	if err := s.screen.Retake(); err != nil { // in the background this stops once more
		end()
		return
	}
	<-released
	if job { // the signal for the whole job is for this process, too
		s.ownStop = time.Now().Add(signalPatience)
	}
	s.forget()
	s.goOn(resumedMsg{stopped: true, told: !stopped})
}

// renew takes the terminal anew after the process was stopped without a word:
// who had it meanwhile may have left it in any mode.
func (s *show) renew(end func()) {
	if s.screen == nil {
		return
	}
	if err := s.screen.Retake(); err != nil {
		end()
		return
	}
	s.p.ReleaseTerminal()
	s.forget()
	s.goOn(resumedMsg{stopped: true})
}

// forget drops signals of stopping and going on that came on the way.
func (s *show) forget() {
	for range len(s.sigs) {
		switch sig := <-s.sigs; {
		case isStop(sig):
			s.ownStop = time.Time{}
		case !isGoOn(sig):
			s.sigs <- sig
		}
	}
}

// goOn begins to draw again, until something has been drawn: if the renderer's
// old goroutine is late, it stops the clock that the new one draws by.
func (s *show) goOn(msg resumedMsg) {
	for range drawTries {
		next := s.screen.Output().Next()
		s.p.RestoreTerminal() // an error would be that of reading keys, and end the program
		select {
		case <-next:
			go s.p.Send(msg)
			return
		case <-time.After(drawPatience):
		}
		s.p.ReleaseTerminal()
	}
	s.p.RestoreTerminal()
	go s.p.Send(msg)
}

// finish closes the engine while signals are heard. A Ctrl+C right after the
// one that quit was meant for the program and not for what it leaves behind; a
// later one ends the wait.
func (s *show) finish(close func() error) error {
	done := make(chan error, 1)
	go func() {
		defer crash.Catch("closing")
		done <- close()
	}()
	began := time.Now()
	for {
		select {
		case err := <-done:
			return err
		case sig := <-s.sigs:
			if isStop(sig) || isGoOn(sig) || sig == os.Interrupt && time.Since(began) < impatience {
				continue
			}
			return ErrInterrupted
		}
	}
}

// writeLines writes lines under what is on the terminal.
func writeLines(w io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(w, l) // a terminal that has gone does not matter
	}
}
