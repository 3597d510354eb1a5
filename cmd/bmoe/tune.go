package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/clock"
	"bmoe/internal/units"
	"bmoe/tui/term"
)

// tuning is what --tune found, as --json prints it.
type tuning struct {
	ab.Tuned
	Flags     string `json:"flags"` // the settings to keep, as a command line; empty: nothing helps here
	Simulated bool   `json:"simulated"`
	Build     string `json:"build"`
}

// tuneTokens is how many tokens an answer has, unless the user says: some more than a
// trial of guesses takes.
const tuneTokens = 48

// tune looks for the settings with which this machine answers the prompt fastest.
func tune(ctx context.Context, o *options, out *cli.Output) error {
	prompt := reportPrompt
	if o.given("prompt") || o.given("file") {
		var err error
		if prompt, err = o.readPrompt(ctx); err != nil {
			return err
		}
	}
	if !o.given("n-predict") {
		o.cfg.MaxTokens = tuneTokens
	}
	s, err := o.opener(nil)(ctx, nil)
	if err != nil {
		return err
	}
	begun := clock.Now()
	t := &ab.Tuner{Session: s, Request: backend.Request{Text: prompt}, Now: func() time.Duration { return time.Duration(clock.Now() - begun) },
		Each: func(r ab.TuneRun) {
			note := ""
			if r.Excluded != "" {
				note = ", left out: " + r.Excluded
			}
			fmt.Fprintf(os.Stderr, "%s: %s tokens/s%s\n", term.CleanLine(r.What), r.Speed.Text(units.Fine, ""), note)
		}}
	fmt.Fprintln(os.Stderr, "Settings are tried one after the other, each against the present one; this takes about three minutes. Ctrl+C ends it.")
	found, err := t.Run(ctx)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if found == nil || len(found.Steps) == 0 {
		return err
	}
	told := tuning{Tuned: *found, Flags: o.keepFlags(found.Keep), Simulated: o.cfg.SimulateHost != "", Build: versionText()}
	if o.json {
		return errors.Join(err, out.Line("", told))
	}
	return errors.Join(err, out.Text(told.text()))
}

// keepFlags words settings as a command line, in the order of the table.
func (o *options) keepFlags(keep map[string]string) string {
	var list []string
	for i := range o.settings {
		if v, ok := keep[o.settings[i].Name]; ok {
			list = append(list, o.words("{"+o.settings[i].Name+"="+v+"}"))
		}
	}
	return strings.Join(list, " ")
}

// text is the report for people: what was tried, and one line to keep.
func (t *tuning) text() string {
	var b strings.Builder
	if t.Simulated {
		b.WriteString("SIMULATED host: what follows is about it, and not about this machine.\n\n")
	}
	b.WriteString("| setting | was | tried | best against it | kept |\n|---|---|---|---|---|\n")
	told := map[string]bool{}
	for _, s := range t.Steps {
		if told[s.Setting] && s.Kept == s.From {
			continue // as in the pass before
		}
		told[s.Setting] = true
		change := s.Change
		if change == "" {
			change = "none was faster"
		}
		tried := strings.Join(s.Tried, ", ")
		if len(s.Tried) == 0 {
			tried, change = "-", "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.Setting, s.From, tried, change, s.Kept)
	}
	b.WriteString("\n")
	var refused []string
	for _, s := range t.Steps {
		refused = append(refused, s.Refused...)
	}
	slices.Sort(refused)
	for _, why := range slices.Compact(refused) {
		fmt.Fprintf(&b, "not taken: %s\n", term.CleanLine(why))
	}
	if len(t.Left) > 0 {
		fmt.Fprintf(&b, "not tried, time was up: %s\n", strings.Join(t.Left, ", "))
	}
	if !t.Same {
		b.WriteString("the text was not the same in every run\n")
	}
	switch {
	case t.Flags != "":
		fmt.Fprintf(&b, "%s tokens/s from %s, %s, %d runs. Keep:\n\n    %s\n", t.After.Text(units.Fine, ""), t.Before.Text(units.Fine, ""), t.Change, t.Runs, t.Flags)
	case t.Change != "":
		fmt.Fprintf(&b, "nothing helps here that is sure: together %s (%d runs)\n", t.Change, t.Runs)
	default:
		fmt.Fprintf(&b, "nothing helps here (%d runs)\n", t.Runs)
	}
	return b.String()
}
