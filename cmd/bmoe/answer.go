package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/clock"
	"bmoe/internal/tty"
	"bmoe/profile"
	"bmoe/tui/term"
)

// reporter tells of a plain run as it goes.
type reporter interface {
	opened(b backend.Backend, loadNanos int64) error
	prefilled(done, of int) error
	delta(d backend.Delta) error
	finished(run *backend.Run) error
}

// answer is the plain run: one prompt, one answer.
func answer(ctx context.Context, o *options, out *cli.Output) error {
	prompt, err := o.readPrompt(ctx)
	if err != nil {
		return err
	}
	files, err := o.createSinks(ctx, func(err error) { fmt.Fprintf(os.Stderr, "bmoe: warning: %s\n", term.CleanLine(err.Error())) })
	if err != nil {
		return err
	}
	o.notice = func(text string) { fmt.Fprintf(os.Stderr, "bmoe: %s\n", term.CleanLine(text)) }
	status := newStatus(os.Stderr)
	defer status.clear()
	began := clock.Now()
	s, err := o.open(ctx, status.loading)
	if err != nil {
		return err
	}
	status.clear()
	for _, w := range s.Warnings() {
		fmt.Fprintf(os.Stderr, "bmoe: warning: %s\n", term.CleanLine(o.words(w)))
	}
	var rep reporter
	switch {
	case o.json:
		rep = jsonReport{out, o.words}
	case o.progress:
		rep = &progressReport{out: out, session: s}
	default:
		status.lines = true // who reads JSON has it there
		rep = &textReport{out: out, say: o.words, status: status, safe: tty.Is(os.Stdout)}
	}
	files.observe(s)
	err = files.joined(generate(ctx, s, o, prompt, rep, status, clock.Now()-began))
	if cerr := s.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing: %w", cerr)
	}
	return err
}

// generate runs and reports. When the reports cannot be delivered any more, it
// stops.
func generate(ctx context.Context, s backend.Backend, o *options, prompt string, rep reporter, status *status, loadNanos int64) error {
	if err := rep.opened(s, loadNanos); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopReading := status.reading(s.Snapshot)
	run, err := s.Generate(ctx, backend.Request{Text: prompt, OnPrefill: func(done, of int) {
		if err := rep.prefilled(done, of); err != nil {
			cancel(err)
		}
	}, OnDelta: func(d backend.Delta) {
		stopReading()
		if err := rep.delta(d); err != nil {
			cancel(err)
		}
	}})
	stopReading()
	if errors.Is(err, context.Canceled) {
		// While the prompt was rendered. Who has read that a run began reads that
		// it has ended.
		run, err = &backend.Run{Err: err, Result: profile.Result{StopReason: "cancelled"}}, nil
	}
	if err != nil {
		return err
	}
	if err := rep.finished(run); err != nil {
		return err
	}
	if run.Err != nil && errors.Is(run.Err, context.Canceled) {
		return context.Cause(ctx) // a failed write, or the interrupt
	}
	return run.Err
}

// readPrompt returns the prompt of -p, of -f, or of standard input.
func (o *options) readPrompt(ctx context.Context) (string, error) {
	text := o.prompt
	if !o.given("prompt") {
		var err error
		switch {
		case o.given("file") && o.file != "-":
			text, err = readFile(ctx, o.file, "prompt", true)
		case !o.given("file") && tty.Is(os.Stdin):
			return "", cli.Usagef("nothing to answer: give -p TEXT or -f PATH, or pipe the prompt in")
		default:
			text, err = readAll(ctx, "prompt from standard input", func() (io.ReadCloser, error) { return io.NopCloser(os.Stdin), nil })
		}
		if err != nil {
			return "", err
		}
		// Editors and echo end a text with one.
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	if strings.TrimSpace(text) == "" && !o.cfg.Raw || text == "" {
		return "", cli.Usagef("the prompt is empty: give -p TEXT or -f PATH, or pipe the prompt in")
	}
	return text, nil
}

// jsonReport prints the result, and nothing before.
type jsonReport struct {
	out *cli.Output
	say func(string) string // mentions of settings in the words of the command line
}

func (r jsonReport) opened(backend.Backend, int64) error { return nil }

func (r jsonReport) prefilled(int, int) error { return nil }

func (r jsonReport) delta(backend.Delta) error { return nil }

func (r jsonReport) finished(run *backend.Run) error {
	run.Result.Build = versionText()
	for i := range run.Result.Diagnosis {
		f := &run.Result.Diagnosis[i]
		f.Action = r.say(f.Action)
	}
	return r.out.Line("", &run.Result)
}

// textReport streams the answer to standard output. What the model thinks
// goes to standard error: it is not the answer, but a silent program looks
// like one that hangs.
type textReport struct {
	say      func(string) string // mentions of settings in the words of the command line
	out      *cli.Output
	status   *status
	safe     bool // standard output is a terminal
	last     byte // of the answer so far
	thinking bool
}

func (r *textReport) opened(backend.Backend, int64) error { return nil }

func (r *textReport) prefilled(int, int) error { return nil }

func (r *textReport) delta(d backend.Delta) error {
	if d.WasThought { // what stands on standard output cannot be taken back
		fmt.Fprintf(os.Stderr, "%s\n[that was a thought]\n[answer]\n", term.Clean(d.Reasoning))
		d.Reasoning, r.last = "", 0
	}
	if d.Reasoning != "" {
		if !r.thinking {
			r.thinking = true
			fmt.Fprint(os.Stderr, "[thinking] ")
		}
		fmt.Fprint(os.Stderr, term.Clean(d.Reasoning))
	}
	if d.Text == "" {
		return nil
	}
	r.endThinking()
	r.last = d.Text[len(d.Text)-1]
	if r.safe {
		return r.out.Text(term.Clean(d.Text))
	}
	return r.out.Text(d.Text)
}

func (r *textReport) endThinking() {
	if r.thinking {
		r.thinking = false
		fmt.Fprint(os.Stderr, "\n[answer]\n")
	}
}

func (r *textReport) finished(run *backend.Run) error {
	if r.thinking {
		fmt.Fprintln(os.Stderr)
	}
	if r.last != 0 && r.last != '\n' {
		if err := r.out.Text("\n"); err != nil {
			return err
		}
	}
	fmt.Fprint(os.Stderr, summary(&run.Result, r.say))
	return nil
}
