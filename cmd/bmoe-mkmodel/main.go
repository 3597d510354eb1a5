// Command bmoe-mkmodel writes models with random weights: tiny ones for tests,
// gigabytes for benchmarks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"bmoe/engine/gguf"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/cli"
	"bmoe/internal/clock"
	"bmoe/internal/crash"
	"bmoe/internal/interrupt"
	"bmoe/internal/tty"
	"bmoe/internal/units"

	"github.com/spf13/pflag"
)

func main() {
	cli.EndOnPanic("bmoe-mkmodel")
	defer crash.Catch("program")
	cli.IgnoreBrokenPipe()
	ctx, stop := interrupt.Context(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, tty.Is(os.Stderr)))
}

// options is the command line.
type options struct {
	spec   synth.Spec
	preset string
	out    string
	quiet  bool
}

// run is the command; live says whether progress may be shown on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, live bool) int {
	err := makeModel(ctx, args, cli.NewOutput(stdout), stderr, live)
	code := cli.Finish(stderr, "bmoe-mkmodel", err)
	if code == cli.Interrupted {
		fmt.Fprintln(stderr, "bmoe-mkmodel: interrupted; nothing was left behind")
	}
	return code
}

// makeModel writes the model that the command line describes.
func makeModel(ctx context.Context, args []string, out *cli.Output, stderr io.Writer, live bool) error {
	o, fs, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return out.Text(usage(fs))
	}
	if err != nil {
		return cli.UsageError{Err: err}
	}
	m, err := synth.New(o.spec)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	var show *progress
	if live && !o.quiet {
		show = &progress{w: stderr, total: m.Bytes(), start: clock.Now()}
	}
	start := clock.Now()
	err = m.Write(ctx, o.out, show.report)
	show.end()
	if err != nil || o.quiet {
		return err
	}
	took := clock.Since(start)
	paths := gguf.ShardPaths(o.out, max(1, o.spec.Shards))
	return out.Text(fmt.Sprintf("%s: %s of weights in %s s, %s MiB/s\n", strings.Join(paths, ", "), units.Size(m.Bytes()),
		units.Decimals(took.Seconds(), 1), units.Decimals(units.InMiB(m.Bytes())/took.Seconds(), 0)))
}

// parse reads the command line. A preset gives the shape, flags change it.
func parse(args []string) (*options, *pflag.FlagSet, error) {
	o := &options{}
	var set synth.Spec
	fs := pflag.NewFlagSet("bmoe-mkmodel", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {} // run prints it, where it belongs
	fs.StringVarP(&o.out, "out", "o", "", "the file to write; with --split N, NAME-0000K-of-0000N.gguf")
	fs.StringVar(&o.preset, "preset", "tiny", "shape to start from: "+strings.Join(synth.Presets(), ", "))
	for _, x := range set.Sizes() {
		fs.IntVar(x.Value, x.Name, 0, x.Help)
	}
	fs.StringVar(&set.Type, "type", "", "type of the weights: "+strings.Join(synth.Types(), ", "))
	fs.BoolVar(&set.Tied, "tied", false, "no output.weight: the head is the token embedding")
	fs.Float64Var(&set.Yarn, "yarn", 0, "YaRN scaling factor of the positions, over ctx/factor original ones; 0 is none")
	fs.IntVar(&set.Shards, "split", 0, "number of files to split the model over")
	fs.IntVar(&set.Topics, "topics", 0, "the text keeps to one of so many topics for a while, and routing follows it as in trained models; 0: routing is random")
	fs.Uint64Var(&set.Seed, "seed", 0, "seed of the weights; the same seed gives the same bytes on any machine")
	fs.StringVar(&set.Name, "name", "", "the model's name (default: made from its shape)")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	if err := fs.Parse(args); err != nil {
		return nil, fs, err
	}
	switch {
	case o.out == "" && fs.NArg() == 1:
		o.out = fs.Arg(0)
	case fs.NArg() > 0:
		return nil, fs, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.out == "":
		return nil, fs, errors.New("no file to write: give --out FILE.gguf")
	}
	spec, err := synth.Preset(o.preset)
	if err != nil {
		return nil, fs, err
	}
	o.spec = spec
	// Flags that were given override the preset, zero included: it is refused
	// later, with the others that make no sense.
	given := set.Sizes()
	for i, x := range o.spec.Sizes() {
		if fs.Changed(x.Name) {
			*x.Value = *given[i].Value
		}
	}
	if fs.Changed("yarn") {
		o.spec.Yarn = set.Yarn
	}
	if fs.Changed("type") {
		o.spec.Type = strings.ToUpper(set.Type)
	}
	o.spec.Topics, o.spec.Tied, o.spec.Shards, o.spec.Seed, o.spec.Name = set.Topics, o.spec.Tied || set.Tied, set.Shards, set.Seed, set.Name
	return o, fs, nil
}

func usage(fs *pflag.FlagSet) string {
	return `bmoe-mkmodel writes a model with random weights, of one of these families:
` + strings.Join(synth.Families(), ", ") + `.

    bmoe-mkmodel -o tiny.gguf
    bmoe-mkmodel -o big.gguf --preset qwen3-30b-a3b --layers 8
    bmoe-mkmodel -o oss.gguf --preset tiny-gpt-oss
    bmoe-mkmodel -o hybrid.gguf --preset qwen3.6-35b-a3b --layers 4
    bmoe-mkmodel -o real.gguf --preset qwen3-30b-a3b --layers 8 --topics 12

The model says nothing meaningful, but it runs like a real one: its experts are
all used, and its text does not fall into a loop.

` + fs.FlagUsages()
}

// progress shows on one line of a terminal how far the writing is. A nil
// progress shows nothing.
type progress struct {
	w     io.Writer
	total int64
	start int64 // clock.Now

	mu    sync.Mutex
	shown int64 // clock.Now of the last line
}

// report shows the bytes written, but not more often than a reader can follow.
func (p *progress) report(done int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Now()
	if now-p.start < int64(time.Second) || p.shown != 0 && now-p.shown < int64(200*time.Millisecond) {
		return
	}
	p.shown = now
	fmt.Fprintf(p.w, "\r%s of %s, %d%% ", units.Size(done), units.Size(p.total), 100*done/p.total)
}

// end clears the line.
func (p *progress) end() {
	if p != nil && p.shown != 0 {
		fmt.Fprintf(p.w, "\r%40s\r", "")
	}
}
