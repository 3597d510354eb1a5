package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"bmoe/engine"
	"bmoe/engine/expert/policy"
	"bmoe/flashio"

	"github.com/spf13/pflag"
)

// options is the command line.
type options struct {
	cfg       engine.Config
	dense     string // cfg.Dense, as a word
	prompt    string
	file      string
	template  string // path
	maxTokens int

	progress, json        bool
	plain, ascii, noMouse bool

	evalTokens   []int32
	evalDecode   bool
	saveLogits   string
	showPrompt   bool
	conversation string
	tokenize     string
	listArchs    bool
	version      bool

	given func(name string) bool // whether a flag is on the command line
}

// maxTokensAsked bounds what may be asked for; the context bounds it in earnest.
const maxTokensAsked = 1 << 30

// section is a group of flags under a heading of the help.
type section struct {
	title string
	*pflag.FlagSet
}

func (s *section) text(name, short string, dst *string, kind, help string) {
	s.VarP(&textValue{dst, kind}, name, short, help)
}

func (s *section) integer(name, short string, v intValue, help string) {
	s.VarP(&v, name, short, help)
}

func (s *section) number(name string, dst *float64, ok func(float64) bool, want, help string) {
	s.Var(&floatValue{dst, ok, want}, name, help)
}

func (s *section) word(name string, dst *string, words []string, help string) {
	s.Var(&wordValue{dst, words}, name, help)
}

// sections builds the flags, by heading, in the order of the help.
func (o *options) sections() []section {
	var all []section
	begin := func(title string) *section {
		f := pflag.NewFlagSet(title, pflag.ContinueOnError)
		f.SortFlags = false
		all = append(all, section{title, f})
		return &all[len(all)-1]
	}
	c := &o.cfg

	s := begin("Model and prompt")
	s.text("model", "m", &c.Model, "PATH", "the model, a GGUF file; the first shard of a split set is enough (default: the demo model)")
	s.text("prompt", "p", &o.prompt, "TEXT", "answer this and end, without the screen")
	s.text("file", "f", &o.file, "PATH", "the same with the prompt in a file, or - for standard input; one line end at its end is dropped")
	s.integer("n-predict", "n", intValue{dst: &o.maxTokens, least: 1, most: maxTokensAsked}, "at most so many tokens in an answer (default: until the model ends or the context is full)")
	s.integer("ctx-size", "c", intValue{dst: &c.Ctx, least: 1, most: engine.MaxCtx}, "context in tokens (default: the model's, at most 4096)")
	s.BoolVar(&c.Raw, "raw", false, "give the model the prompt as it is, without its chat template")
	s.BoolVar(&c.ParseSpecial, "parse-special", false, "take special tokens that a prompt or a message spells out for tokens; otherwise they are text, except with --raw")
	s.BoolVar(&c.NoThink, "no-think", false, "ask the template for an answer without reasoning")
	s.text("chat-template-file", "", &o.template, "PATH", "a Jinja template in place of the model's own")

	s = begin("Compute")
	s.integer("threads", "t", intValue{dst: &c.Threads, least: 1, most: engine.MaxThreads}, "compute workers (default: the physical cores)")
	s.integer("ubatch", "", intValue{dst: &c.UBatch, least: 1, most: engine.MaxUBatch}, "prompt tokens in a batch")
	s.word("numerics", &c.Numerics, []string{"fast", "exact"}, "fast: activations in 8 bits, as llama.cpp has them; exact: all in 32-bit floats, to compare with")
	s.word("kv-type", &c.KVType, []string{"f32", "f16", "q8_0"}, "type of the KV cache (default: f16, and f32 with --numerics exact)")

	s = begin("Streaming")
	s.BoolVar(&c.Stream, "moe-stream", true, "read experts from the drive as they are needed; without it they are computed from the file's mapping")
	s.Var(&budgetValue{&c.Cache}, "cache-mb", "most that the expert cache takes, in MiB, or auto: what memory allows beside the rest, and for the demo model 40 % of its experts' bytes")
	s.BoolVar(&c.ForceCache, "force-cache", false, "take the budget even if it cannot work well")
	s.word("cache-policy", &c.CachePolicy, policy.Names(), "which experts stay")
	s.integer("io-threads", "", intValue{dst: &c.Lanes, least: 1, most: flashio.MaxLanes}, "lanes that read at once, 1 to "+strconv.Itoa(flashio.MaxLanes))
	s.word("io-engine", &c.IOEngine, []string{"lanes", "uring"}, "lanes: blocking reads; uring: Linux io_uring")
	s.BoolVar(&c.NoDirect, "no-odirect", false, "read through the page cache")
	s.BoolVar(&c.Overlap, "overlap", true, "compute the experts that are there while others are read")
	s.word("dense-weights", &o.dense, []string{"mmap", "warm", "anon"}, "weights that every token needs: in the mapping; the same, swept once into the page cache; or read into own memory")
	s.BoolVar(&c.ReleaseMmap, "release-mmap", false, "hand the file's mapping back after loading, and reopen the lanes")
	s.word("simulate-host", &c.SimulateHost, []string{"ntfs"}, "ntfs: reads behave as on a host that serialises those of a mapped file; figures are labelled SIMULATED")

	s = begin("Sampling (defaults: the model's own settings, else greedy)")
	p := &c.Sampling
	s.number("temp", &p.Temp, func(f float64) bool { return f >= 0 }, "0 or more", "temperature; 0 takes the likeliest token")
	s.integer("top-k", "", intValue{dst: &p.TopK, least: 0, most: math.MaxInt32}, "only so many of the likeliest; 0: all")
	s.number("top-p", &p.TopP, func(f float64) bool { return f > 0 && f <= 1 }, "more than 0, up to 1", "only the likeliest that make up this share; 1: all")
	s.number("min-p", &p.MinP, func(f float64) bool { return f >= 0 && f <= 1 }, "0 to 1", "only what is at least this share as likely as the likeliest; 0: all")
	s.number("repeat-penalty", &p.RepeatPenalty, func(f float64) bool { return f > 0 }, "more than 0", "divide the chance of recent tokens by this; 1: no penalty")
	s.Uint64Var(&p.Seed, "seed", p.Seed, "where the random numbers start")

	s = begin("Output")
	s.BoolVar(&o.progress, "progress", false, "BMOE_* lines on standard output, one JSON object each (docs/cli.md)")
	s.BoolVar(&o.json, "json", false, "one JSON object on standard output and nothing else")
	s.BoolVar(&o.plain, "plain", false, "chat line by line: for screen readers, and for terminals that cannot move the cursor")
	s.BoolVar(&o.ascii, "ascii", false, "draw with ASCII characters only")
	s.BoolVar(&o.noMouse, "no-mouse", false, "leave the mouse to the terminal")

	s = begin("Diagnostics")
	s.BoolVar(&o.showPrompt, "show-prompt", false, "print what the model would see of the prompt, and its ids; with --json {prompt, ids}")
	s.text("conversation", "", &o.conversation, "FILE", "with --show-prompt: the template's whole context, a JSON object with messages")
	s.text("tokenize", "", &o.tokenize, "TEXT", "print the ids of a text as a JSON array, special tokens as text unless --parse-special is given")
	s.Var(&idsValue{&o.evalTokens}, "eval-tokens", "run the model over these token ids, in one prefill, and print the likeliest token after each")
	s.BoolVar(&o.evalDecode, "eval-decode", false, "with --eval-tokens: one id at a time")
	s.text("save-logits", "", &o.saveLogits, "FILE", "with --eval-tokens: write the logits of every position, row by row, as little-endian 32-bit floats")
	s.BoolVar(&o.listArchs, "list-archs", false, "print the architectures that can be run")
	s.BoolVar(&o.version, "version", false, "print the version")
	s.BoolP("help", "h", false, "print this text")
	return all
}

// newOptions returns the defaults.
func newOptions() *options {
	o := &options{cfg: engine.DefaultConfig()}
	o.dense = string(o.cfg.Dense)
	return o
}

// errHelp asks for the help.
var errHelp = errors.New("help")

// usageError is a wrong command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// parse reads the command line.
func parse(args []string) (*options, error) {
	o := newOptions()
	f := pflag.NewFlagSet("bmoe", pflag.ContinueOnError)
	f.Usage = func() {} // the caller prints
	for _, s := range o.sections() {
		f.AddFlagSet(s.FlagSet)
	}
	err := f.Parse(args)
	o.given = f.Changed
	if f.Changed("help") {
		return o, errHelp
	}
	if err != nil {
		return o, usageError{err}
	}
	if err := o.takeArgs(f.Args()); err != nil {
		return o, err
	}
	o.cfg.Dense = engine.DensePolicy(o.dense)
	o.cfg.SamplingSet = map[string]bool{}
	for _, name := range []string{"temp", "top-k", "top-p", "min-p", "repeat-penalty", "seed"} {
		o.cfg.SamplingSet[name] = f.Changed(name)
	}
	return o, o.check()
}

// takeArgs takes the model, the one argument that is not a flag.
func (o *options) takeArgs(args []string) error {
	for _, a := range args {
		if slices.Contains([]string{"true", "false", "on", "off"}, a) {
			return usagef("%q stands alone: a switch takes its value behind an equals sign, as in --moe-stream=false", a)
		}
	}
	switch {
	case len(args) > 1:
		return usagef("unexpected argument %q: one model at most", args[1])
	case len(args) == 1 && o.given("model"):
		return usagef("two models: %q and %q", o.cfg.Model, args[0])
	case len(args) == 1:
		o.cfg.Model = args[0]
	}
	if o.cfg.Model == "" && (o.given("model") || len(args) == 1) {
		return usagef("the model's path is empty")
	}
	return nil
}

// check refuses what contradicts itself or would do nothing.
func (o *options) check() error {
	needs := [][2]string{
		{"conversation", "show-prompt"}, {"eval-decode", "eval-tokens"}, {"save-logits", "eval-tokens"},
	}
	for _, n := range needs {
		if o.given(n[0]) && !o.given(n[1]) {
			return usagef("--%s does nothing without --%s", n[0], n[1])
		}
	}
	excludes := [][]string{
		{"prompt", "file", "conversation"}, {"json", "progress"}, {"show-prompt", "tokenize", "eval-tokens"}, {"prompt", "tokenize"}, {"prompt", "eval-tokens"}, {"file", "tokenize"}, {"file", "eval-tokens"},
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
			return usagef("%s and %s exclude each other", both[0], both[1])
		}
	}
	return nil
}

// idle names the given flags that change nothing in this run.
func (o *options) idle() []string {
	var out []string
	if !o.cfg.Stream {
		for _, name := range []string{"cache-mb", "cache-policy", "force-cache", "overlap"} {
			if o.given(name) {
				out = append(out, "--"+name+" does nothing with --moe-stream=false")
			}
		}
	}
	return out
}
