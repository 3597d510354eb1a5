package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/either"
	"bmoe/engine/remote"
	"bmoe/internal/cli"
	"bmoe/tui"
	"bmoe/tui/term"

	"github.com/spf13/pflag"
)

// options is the command line.
type options struct {
	ab, order, csv     string // an experiment
	routeTrace         string
	ioTrace            string
	computeTrace       string
	record, play       string
	report             string // a folder
	tune               bool
	yes                bool   // write it without asking
	compare            string // a file of token rows
	compareWith        string // the other one, an argument
	cells, thermalGate int
	cfg                engine.Config
	far                remote.Config                  // the server, if one is given
	engine             string                         // which of both answers
	both               bool                           // both are wanted, where both are given
	notice             func(string)                   // hears what the user should know while an answer is under way
	settings           []backend.Setting              // the rows that become flags, with their defaults
	set                func(name, value string) error // gives one of them a value
	hf                 string                         // a model of the hub
	configFile         string
	resume             string
	sessions, noSave   bool
	models             bool
	modelFolders       []string // where else models are looked for
	prompt             string
	file               string

	progress, json        bool
	plain, ascii, noMouse bool
	theme                 string
	keys                  tui.Keys // other keys of the screen, from the configuration file

	ppl, pplRef  string
	pplStep      bool
	evalTokens   []int32
	evalDecode   bool
	saveLogits   string
	showPrompt   bool
	conversation string
	tokenize     string
	listArchs    bool
	version      bool
	completion   string
	manPage      bool

	groups  []section              // the flags
	given   func(name string) bool // whether one is on the command line
	notices []string               // what may not have been meant
}

// How many runs of each combination an experiment makes at most.
const (
	defaultCells = 12
	maxCells     = 1000
)

// lastSession is the value of --resume where none is given.
const lastSession = "the last"

// section is a group of flags under a heading of the help.
type section struct {
	title string
	*pflag.FlagSet
}

// heading is the title without what stands in brackets.
func (s *section) heading() string {
	heading, _, _ := strings.Cut(s.title, " (")
	return heading
}

func (s *section) text(name, short string, dst *string, kind, help string) {
	s.VarP(&textValue{dst, kind}, name, short, help)
}

// setting makes a flag of a setting.
func (s *section) setting(r backend.Setting, help string, set func(name, value string) error) {
	f := s.VarPF(&settingValue{row: r, set: set}, r.Flag, r.Short, help)
	if r.Kind == backend.Switch {
		f.NoOptDefVal = "true"
	}
}

// sections builds the flags, by heading, in the order of the help: what to
// answer, the settings in the order of their table, and what is of the command
// alone.
func (o *options) sections() []section {
	var all []section
	begin := func(title string) *section {
		f := pflag.NewFlagSet(title, pflag.ContinueOnError)
		f.SortFlags = false
		all = append(all, section{title, f})
		return &all[len(all)-1]
	}

	s := begin("Prompt")
	s.text("prompt", "p", &o.prompt, "TEXT", "answer this and end, without the screen")
	s.text("file", "f", &o.file, "PATH", "the same with the prompt in a file, or - for standard input; one line end at its end is dropped")

	for _, r := range o.settings {
		if r.Section != s.title {
			s = begin(r.Section)
		}
		s.setting(r, o.words(r.Help), o.set)
		if r.Name == "model" { // there are two ways to name one
			s.text("config", "", &o.configFile, "FILE", "take settings from this file (default: bmoe/config.toml in the user's configuration folder)")
			s.VarP(&specValue{&o.hf}, "hf", "", "a model of the Hugging Face Hub: from its cache, or downloaded into it")
			s.BoolVar(&o.models, "models", false, "list the models here and in the caches of the Hugging Face Hub, LM Studio and Ollama, with how fast each may be")
			s.VarP(&listValue{&o.modelFolders}, "models-dir", "", "look for models in this folder too; may be given several times")
		}
	}

	s = begin("Sessions")
	f := s.VarPF(&textValue{&o.resume, "NAME"}, "resume", "", "go on with a conversation that was kept: the last one, or with an equals sign the one of that name")
	f.NoOptDefVal = lastSession
	s.BoolVar(&o.noSave, "no-save", false, "keep nothing of what is said")
	s.BoolVar(&o.sessions, "sessions", false, "list the conversations that were kept")

	s = begin("Output")
	s.BoolVar(&o.progress, "progress", false, "BMOE_* lines on standard output, one JSON object each (docs/telemetry.md)")
	s.BoolVar(&o.json, "json", false, "one JSON object on standard output and nothing else (docs/telemetry.md)")
	s.text("csv", "", &o.csv, "PATH", "write a row for each decoded token; with --ab one for each run (docs/telemetry.md)")
	s.text("route-trace", "", &o.routeTrace, "PATH", "write which experts each token was given, for bmoe-replay (docs/telemetry.md)")
	s.text("io-trace", "", &o.ioTrace, "PATH", "write a row for every read of an expert (docs/telemetry.md)")
	s.text("compute-trace", "", &o.computeTrace, "PATH", "write a row for every step of every pass (docs/telemetry.md)")
	s.text("record", "", &o.record, "FILE", "write the session down as it goes, to be played back with --play (docs/telemetry.md)")
	s.text("play", "", &o.play, "FILE", "play a recorded session back, here or on another machine: no model is needed")
	s.BoolVar(&o.plain, "plain", false, "chat line by line: for screen readers, and for terminals that cannot move the cursor")
	s.BoolVar(&o.ascii, "ascii", false, "draw with ASCII characters only")
	s.Var(&wordValue{&o.theme, term.Themes}, "theme", "the screen's colours: auto follows the terminal's background, as high-contrast and 16 do, which is the terminal's own 16 colours")
	s.BoolVar(&o.noMouse, "no-mouse", false, "leave the mouse to the terminal")

	s = begin("Experiments")
	s.text("ab", "", &o.ab, "SPEC", "answer the prompt under every combination of settings in turns and compare: 'release-mmap=off,on;io-threads=1,4'")
	s.VarP(&intValue{dst: &o.cells, least: 1, most: maxCells}, "cells", "", "with --ab or --report: at most so many runs of each combination; it stops before if it knows enough")
	s.Var(&wordValue{&o.order, orders}, "order", "with --ab or --report: both, every second round backwards, or forward")
	s.VarP(&intValue{dst: &o.thermalGate, least: 1, most: 150}, "thermal-gate", "", "with --ab or --report: before each run wait until the processor is at most so many degrees Celsius")

	s.BoolVar(&o.tune, "tune", false, "try the settings that can be changed between runs, one after the other, and say in one line which to keep, or that nothing helps; about three minutes")
	s.text("report", "", &o.report, "DIR", "measure this host, its drive and the engine with the mapping kept and released, show what came of it, and write it into a folder to send (docs/windows.md)")
	s.BoolVar(&o.yes, "yes", false, "with --report: write without asking")
	s.text("compare", "", &o.compare, "A.csv", "hold the runs of two files of --csv against each other, the second an argument: what was set otherwise, and what came of it")
	s.text("ppl", "", &o.ppl, "FILE", "how well the model foretells this text: negative log-likelihood in nats a token, with its standard error")
	s.BoolVar(&o.pplStep, "ppl-step", false, "with --ppl: one token at a time, as in an answer; settings such as --drop-cold-experts act only so")
	s.text("ppl-ref", "", &o.pplRef, "RUN.json", "with --ppl: hold it against what another run of the same text wrote with --json")

	s = begin("Diagnostics")
	s.BoolVar(&o.showPrompt, "show-prompt", false, "print what the model would see of the prompt, and its ids; with --json {prompt, ids}")
	s.text("conversation", "", &o.conversation, "FILE", "with --show-prompt: the template's whole context, a JSON object with messages")
	s.text("tokenize", "", &o.tokenize, "TEXT", "print the ids of a text as a JSON array, special tokens as text unless --parse-special is given")
	s.Var(&idsValue{&o.evalTokens}, "eval-tokens", "run the model over these token ids, in one prefill, and print the likeliest token after each")
	s.BoolVar(&o.evalDecode, "eval-decode", false, "with --eval-tokens: one id at a time")
	s.text("save-logits", "", &o.saveLogits, "FILE", "with --eval-tokens: write the logits of every position, row by row, as little-endian 32-bit floats")
	s.BoolVar(&o.listArchs, "list-archs", false, "print the architectures that can be run")
	s.Var(&wordValue{&o.completion, shells}, "completion", "print a script that completes the flags in a shell")
	s.BoolVar(&o.manPage, "man-page", false, "print the manual page, to be read with man -l")
	s.BoolVar(&o.version, "version", false, "print the version")
	s.BoolP("help", "h", false, "print this text")
	return all
}

// newOptions returns the defaults.
func newOptions() *options {
	o := &options{cfg: engine.DefaultConfig(), cells: defaultCells, order: orders[0], theme: term.Themes[0]}
	o.engine = backend.Elsewhere
	o.settings = engine.Settings(o.cfg)
	for _, r := range append(remote.Settings(o.far), either.Setting(o.engine, backend.FromDefault)) {
		if r.Flag != "" && backend.Find(o.settings, r.Name) == nil { // some are of both
			r.Section = sectionRemote
			o.settings = append(o.settings, r)
		}
	}
	o.set = o.setOne
	return o
}

// errHelp asks for the help.
var errHelp = errors.New("help")

// parse reads the command line.
func parse(args []string) (*options, error) {
	o := newOptions()
	return o, o.parse(args)
}

// parse reads the command line into the options.
func (o *options) parse(args []string) error {
	f := pflag.NewFlagSet("bmoe", pflag.ContinueOnError)
	f.Usage = func() {} // the caller prints
	o.groups = o.sections()
	for _, s := range o.groups {
		f.AddFlagSet(s.FlagSet)
	}
	err := o.takeFlags(f, args)
	o.given = f.Changed
	if h := f.Lookup("help"); h.Changed && slices.ContainsFunc(args, func(a string) bool { return len(a) > 2 && strings.HasPrefix(a, "-h") && a[1] != '-' }) {
		return cli.Usagef("-h stands alone: it prints the help")
	}
	if f.Changed("help") {
		return errHelp
	}
	if err != nil {
		return cli.UsageError{Err: err}
	}
	if err := o.takeArgs(f.Args()); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	return errors.Join(o.checkExperiment(), o.checkReport())
}

// takeFlags takes the flags in their order. The last of several values holds, so
// that an alias can be overruled, but it is said: two models may be a mistake.
func (o *options) takeFlags(f *pflag.FlagSet, args []string) error {
	type values struct{ first, last string }
	seen := map[string]values{}
	err := f.ParseAll(args, func(flag *pflag.Flag, value string) error {
		v, again := seen[flag.Name]
		if !again {
			v.first = value
		}
		v.last = value
		seen[flag.Name] = v
		return f.Set(flag.Name, value)
	})
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		v := seen[name]
		if _, collects := f.Lookup(name).Value.(*listValue); !collects && v.first != v.last {
			o.notices = append(o.notices, fmt.Sprintf("--%s is given more than once: %q holds, %q does not", name, v.last, v.first))
		}
	}
	return err
}

// takeArgs takes the model, the one argument that is not a flag.
func (o *options) takeArgs(args []string) error {
	for _, a := range args {
		if slices.Contains([]string{"true", "false", "on", "off"}, a) {
			return cli.Usagef("%q stands alone: a switch takes its value behind an equals sign, as in --moe-stream=false", a)
		}
	}
	if o.given("compare") {
		if len(args) != 1 {
			return cli.Usagef("--compare takes two files: --compare A.csv B.csv")
		}
		o.compareWith = args[0]
		return nil
	}
	switch {
	case o.resume == lastSession && len(args) == 1 && !strings.HasSuffix(args[0], ".gguf") && !exists(args[0]):
		return cli.Usagef("a session's name stands behind an equals sign, as in --resume=%q", args[0])
	case len(args) > 1:
		return cli.Usagef("unexpected argument %q: one model at most", args[1])
	case o.hf != "" && (len(args) == 1 || o.given("model")):
		return cli.Usagef("two models: --hf %s, and a path", o.hf)
	case len(args) == 1 && o.given("model"):
		return cli.Usagef("two models: %q and %q", o.cfg.Model, args[0])
	case len(args) == 1:
		o.cfg.Model = args[0]
	}
	if o.cfg.Model == "" && (o.given("model") || len(args) == 1) {
		return cli.Usagef("the model's path is empty")
	}
	return nil
}

// check refuses what contradicts itself or would do nothing.
func (o *options) check() error {
	needs := [][]string{
		{"conversation", "show-prompt"}, {"eval-decode", "eval-tokens"}, {"save-logits", "eval-tokens"},
		{"ppl-step", "ppl"}, {"ppl-ref", "ppl"}, {"cells", "ab", "report"}, {"order", "ab", "report"}, {"thermal-gate", "ab", "report"}, {"yes", "report"},
		{"remote-model", "connect"}, {"connect-insecure", "connect"}, {"engine", "connect"},
	}
	for _, n := range needs {
		if o.given(n[0]) && !slices.ContainsFunc(n[1:], o.given) {
			return cli.Usagef("--%s does nothing without --%s", n[0], strings.Join(n[1:], " or --"))
		}
	}
	excludes := [][]string{
		{"prompt", "file", "conversation"}, {"json", "progress"}, {"resume", "no-save"}, {"record", "connect"}, {"report", "connect"}, {"report", "prompt"}, {"report", "file"}, {"report", "json"}, {"report", "progress"}, {"report", "play"}, {"play", "prompt"}, {"play", "file"}, {"play", "record"}, {"play", "json"}, {"play", "progress"}, {"show-prompt", "tokenize", "eval-tokens", "ab", "tune", "ppl", "compare", "report", "play"}, {"tune", "connect"}, {"tune", "progress"}, {"tune", "record"}, {"ppl", "prompt"}, {"ppl", "file"}, {"ppl", "progress"}, {"progress", "ab"}, {"prompt", "tokenize"}, {"prompt", "eval-tokens"}, {"file", "tokenize"}, {"file", "eval-tokens"},
		{"conversation", "raw"}, {"conversation", "no-think"}, {"chat-template-file", "raw"}, {"no-think", "raw"},
	}
	for _, set := range excludes {
		var both []string
		for _, name := range set {
			if o.given(name) {
				both = append(both, "--"+name)
			}
		}
		if len(both) > 1 {
			return cli.Usagef("%s and %s exclude each other", both[0], both[1])
		}
	}
	return nil
}
