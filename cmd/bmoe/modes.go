package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"bmoe/engine/model"
	"bmoe/internal/cli"
	"bmoe/internal/interrupt"
	"bmoe/internal/tty"

	"github.com/spf13/pflag"
)

// mode is one of the things that the program can be asked to do.
type mode struct {
	asked func(*options) bool
	// where is what the user called it by, for a flag that does nothing there.
	where string
	// acts are the flags that do something there, by name, and the headings of the
	// help whose flags all do.
	acts []string
	run  func(*options, *cli.Output) error
}

// modes are all of them; the first that is asked for is it.
var modes = []mode{
	{func(o *options) bool { return o.version }, "with --version", []string{"version"},
		func(_ *options, out *cli.Output) error { return out.Text(versionText() + "\n") }},
	{func(o *options) bool { return o.completion != "" }, "with --completion", []string{"completion"},
		func(o *options, out *cli.Output) error { return out.Text(completion(o.completion, o.sections())) }},
	{func(o *options) bool { return o.manPage }, "with --man-page", []string{"man-page"},
		func(o *options, out *cli.Output) error { return out.Text(manPage(o.sections())) }},
	{func(o *options) bool { return o.listArchs }, "with --list-archs", []string{"list-archs"}, listArchs},
	{func(o *options) bool { return o.sessions }, "with --sessions", []string{"sessions", "json"}, listSessions},
	{func(o *options) bool { return o.models }, "with --models", []string{"models", "models-dir", "config", "json"}, interruptible(listModels)},
	{func(o *options) bool { return o.given("tokenize") }, "with --tokenize",
		[]string{"tokenize", "model", "hf", "config", "parse-special", "json"}, interruptible(tokenize)},
	{func(o *options) bool { return o.showPrompt }, "with --show-prompt",
		[]string{"show-prompt", "conversation", "prompt", "file", "model", "hf", "config", "raw", "chat-template-file", "parse-special", "no-think", "json"}, interruptible(showPrompt)},
	{func(o *options) bool { return o.given("eval-tokens") }, "with --eval-tokens",
		[]string{"eval-tokens", "eval-decode", "save-logits", "model", "hf", "config", "ctx-size", "Compute", "Streaming", "json"}, interruptible(eval)},
	{func(o *options) bool { return o.given("ppl") }, "with --ppl",
		[]string{"ppl", "ppl-step", "ppl-ref", "model", "hf", "config", "ctx-size", "n-expert-used", "drop-cold-experts", "drop-renorm", "expert-substitute", "Compute", "Streaming", "json"}, interruptible(measurePPL)},
	{func(o *options) bool { return o.given("ab") }, "with --ab",
		[]string{"ab", "cells", "order", "thermal-gate", "csv", "Prompt", "Model", "Compute", "Streaming", "Sampling", sectionRemote, "json"}, interruptible(experiment)},
	{func(o *options) bool { return o.tune }, "with --tune",
		[]string{"tune", "Prompt", "Model", "Compute", "Streaming", "Sampling", "json"}, interruptible(tune)},
	{func(o *options) bool { return o.given("report") }, "with --report",
		[]string{"report", "yes", "cells", "order", "thermal-gate", "n-predict", "Model", "Compute", "Streaming", "Sampling"}, interruptible(report)},
	{func(o *options) bool { return o.given("compare") }, "with --compare", []string{"compare", "json"}, compare},
	{func(o *options) bool { return o.given("play") }, "with --play", []string{"play", "plain", "ascii", "no-mouse", "theme"}, playBack},
	{(*options).answers, "where there is no screen",
		[]string{"Prompt", "Model", "Compute", "Streaming", "Sampling", sectionRemote, "progress", "json", "csv", "record", "route-trace", "io-trace", "compute-trace"}, interruptible(answer)},
	{func(o *options) bool { return o.plain }, "with --plain",
		[]string{"plain", "n-predict", "Sessions", "csv", "record", "route-trace", "io-trace", "compute-trace", "Model", "Compute", "Streaming", "Sampling", sectionRemote}, chat},
	{func(*options) bool { return true }, "on the screen",
		[]string{"ascii", "no-mouse", "theme", "n-predict", "Sessions", "csv", "record", "route-trace", "io-trace", "compute-trace", "Model", "Compute", "Streaming", "Sampling", sectionRemote}, chat},
}

// opens reports whether a model is opened, so that settings matter.
func (m *mode) opens() bool {
	return slices.Contains(m.acts, "model") || slices.Contains(m.acts, "Model") || slices.Contains(m.acts, "models-dir")
}

// mode returns what the command line asks for.
func (o *options) mode() *mode {
	return &modes[slices.IndexFunc(modes, func(m mode) bool { return m.asked(o) })]
}

// answers reports whether there is to be one answer and no conversation: because a
// prompt or a form of the output says so, or because nobody sits at both ends.
func (o *options) answers() bool {
	for _, name := range []string{"prompt", "file", "json", "progress"} {
		if o.given(name) {
			return true
		}
	}
	return !o.plain && !(tty.Is(os.Stdin) && tty.Is(os.Stdout))
}

// idle says of flags that were given and that do nothing in a mode; it is empty if
// there are none.
func (o *options) idle(m *mode) string {
	var names []string
	acts, where := m.acts, m.where
	if o.connects() && !o.hasModel() && slices.Contains(acts, sectionRemote) {
		acts, where = remoteActs(acts), "with --connect"
	}
	for _, s := range o.groups {
		s.VisitAll(func(f *pflag.Flag) {
			if f.Changed && !slices.Contains(acts, s.heading()) && !slices.Contains(acts, f.Name) {
				names = append(names, "--"+f.Name)
			}
		})
	}
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + " does nothing " + where
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " do nothing " + where
	}
}

// dispatch does what the command line asks for.
func dispatch(o *options, out *cli.Output) error {
	m := o.mode()
	warnOf(o.idle(m))
	return m.run(o, out)
}

// interruptible gives what runs without a screen a context that signals end.
func interruptible(run func(context.Context, *options, *cli.Output) error) func(*options, *cli.Output) error {
	return func(o *options, out *cli.Output) error {
		ctx, stop := interrupt.Context(context.Background())
		defer stop()
		return run(ctx, o, out)
	}
}

// listArchs prints the architectures that can be run, and models of each.
func listArchs(_ *options, out *cli.Output) error {
	for _, name := range model.Archs() {
		if err := out.Text(fmt.Sprintf("%-14s %s\n", name, model.Models(name))); err != nil {
			return err
		}
	}
	return nil
}
