package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bmoe/engine"
	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/host"
	"bmoe/internal/iobench"
	"bmoe/internal/tty"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// What a report asks of the engine unless told otherwise. The prompt is always the
// same, so that rows of two machines are of the same work.
const (
	reportPrompt = "Explain in simple words how a refrigerator keeps food cold, step by step, and why it needs electricity."
	reportTokens = 256
	reportRounds = 3 // the fewest of which an interval is told
)

// reportVariants are the engine's runs of a report: what the finding about mappings is
// about.
var reportVariants = []ab.Variant{
	{Name: "mapping kept", Values: map[string]string{"release-mmap": backend.Off, "no-odirect": backend.Off}},
	{Name: "mapping released", Values: map[string]string{"release-mmap": backend.On, "no-odirect": backend.Off}},
	{Name: "mapping kept, no-odirect", Values: map[string]string{"release-mmap": backend.Off, "no-odirect": backend.On}},
}

// report measures the host, the drive and the engine, shows what came of it, and
// writes it into a folder for somebody else.
func report(ctx context.Context, o *options, out *cli.Output) error {
	gate, err := o.gate()
	if err != nil {
		return err
	}
	path, err := o.modelPath(ctx)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil {
		return err
	} else if info.IsDir() {
		return fmt.Errorf("open %s: is a directory", path)
	}
	undo, err := makeReportFolder(o.report)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer undo()
	r := &reporting{o: o, path: path, secrets: secretsOf(path), status: newStatus(os.Stderr)}
	r.describe()
	err = r.measure(ctx, gate)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if derr := r.deliver(out); derr != nil {
		return derr
	}
	return err
}

// reporting is a report being made.
type reporting struct {
	o       *options
	path    string // of the model
	secrets []string
	status  *status

	row   reportRow
	table *iobench.Table
	cells *ab.Experiment
}

// describe takes what stands still: the machine, and what the model lies on.
func (r *reporting) describe() {
	f := host.ReadFacts()
	d := host.ReadFileFacts(r.path)
	r.row = reportRow{Format: reportFormat, Build: versionText(), Simulated: r.o.cfg.SimulateHost != "", LeftOut: []string{},
		Host: reportHost{System: maybeText(f.System), Kernel: maybeText(f.Kernel), Arch: f.Arch, CPU: maybeText(f.CPU), Threads: f.Threads, Cores: counted(f.Cores), Virtual: maybeText(f.Virtual),
			Memory: sized(f.Memory.Total, f.Memory.Has.All(host.HasTotal)), Limit: sized(f.Memory.Limit, f.Memory.Has.All(host.HasLimit)), Available: sized(f.Memory.Available, f.Memory.Has.All(host.HasAvailable)),
			Page: f.Page, Huge: maybeText(f.Huge)},
		Drive: reportDrive{Name: maybeText(d.Drive), Bus: maybeText(d.Bus), Model: maybeText(d.Model), FileSystem: maybeText(d.FileSystem)},
		Model: reportModel{Name: filepath.Base(r.path)},
	}
	if d.KnowsRotating {
		kind := "solid state"
		if d.Rotating {
			kind = "rotating"
		}
		r.row.Drive.Kind = profile.Some(kind)
	}
	if d.KnowsEncrypted {
		r.row.Drive.Encrypted = profile.Some(d.Encrypted)
	}
}

// tableFlags are added to those of the table: tests are in a hurry.
var tableFlags []string

// measure takes what the drive and the engine give. What cannot be measured is left
// out with the reason; only an interrupt is an error.
func (r *reporting) measure(ctx context.Context, gate func(context.Context) error) error {
	args := slices.Clone(tableFlags)
	if r.row.Simulated {
		args = append(args, "--simulate-host", r.o.cfg.SimulateHost)
	}
	fmt.Fprintln(os.Stderr, "1 of 2: what the drive gives, about a minute; Ctrl+C ends the measuring and keeps what there is")
	var err error
	var watcher io.Writer
	if r.status.on {
		watcher = os.Stderr
	}
	r.table, err = iobench.MeasureTable(ctx, r.path, watcher, args...)
	if ctx.Err() != nil {
		r.leaveOut("interrupted while the drive was measured")
		return ctx.Err()
	}
	if err != nil {
		r.leaveOut("drive: " + err.Error())
	}
	fmt.Fprintln(os.Stderr, "2 of 2: the engine, with the mapping kept, released, and kept under buffered reads, in turns")
	r.cells, err = r.engine(ctx, gate)
	r.status.clear()
	if ctx.Err() != nil {
		r.leaveOut("interrupted while the engine was measured")
		return ctx.Err()
	}
	if err != nil {
		r.leaveOut("engine: " + err.Error())
	}
	return nil
}

func (r *reporting) leaveOut(why string) {
	r.row.LeftOut = append(r.row.LeftOut, r.public(term.CleanLine(r.o.words(why))))
}

// engine makes the engine's runs.
func (r *reporting) engine(ctx context.Context, gate func(context.Context) error) (*ab.Experiment, error) {
	one := *r.o
	if !r.o.given("n-predict") {
		if err := one.cfg.Set("n-predict", fmt.Sprint(reportTokens), backend.FromFlag); err != nil {
			return nil, err
		}
	}
	rounds := reportRounds
	if r.o.given("cells") {
		rounds = r.o.cells
	}
	left := &timeLeft{runs: 1 + rounds*len(reportVariants), tokens: one.cfg.MaxTokens}
	p := &ab.Plan{Variants: reportVariants, Most: rounds, Forward: r.o.order == "forward", Gate: gate,
		Request: backend.Request{Text: reportPrompt, OnDelta: func(backend.Delta) {
			left.token()
			r.status.show(left.line())
		}}}
	open := one.opener(engineRows(r.o.settings))
	p.Open = func(ctx context.Context, values map[string]string) (backend.Backend, error) {
		left.begin()
		b, err := open(ctx, values)
		if err == nil && r.row.Config == nil {
			r.opened(b)
		}
		return b, err
	}
	p.Each = func(c *ab.Cell) {
		left.end()
		r.status.clear()
		what := reportVariants[c.Variant].Name
		if c.Round == 0 {
			what = "warm-up"
		}
		note := ""
		if c.Round > 0 && c.Excluded != "" {
			note = ", left out: " + c.Excluded
		}
		fmt.Fprintf(os.Stderr, "run %d of %d, %s: %s tokens/s%s; %s\n", left.ended, left.runs, what, c.Run.Result.DecodeTPS.Text(units.Fine, ""), note, left.words())
	}
	x, err := p.Run(ctx)
	if len(x.Cells) < 2 { // nothing but the warm-up
		return nil, err
	}
	return x, err
}

// opened takes what an engine that has opened the model tells of it, and its settings
// but for those that its runs vary.
func (r *reporting) opened(b backend.Backend) {
	var live profile.Snapshot
	b.Snapshot(&live)
	r.row.Model.take(&live)
	r.row.Config = map[string]string{}
	for _, pair := range engine.SettingPairs(b) {
		if pair.Key != "release_mmap" && pair.Key != "no_odirect" {
			r.row.Config[pair.Key] = pair.Value
		}
	}
}

// timeLeft reckons how long runs of one length will still take.
type timeLeft struct {
	runs, tokens int // there are; tokens of a run
	ended, done  int // runs; tokens of the one that is under way
	began        time.Time
	spent        time.Duration // by the runs that have ended
}

func (l *timeLeft) begin() { l.began, l.done = time.Now(), 0 }

func (l *timeLeft) token() { l.done++ }

func (l *timeLeft) end() {
	l.spent += time.Since(l.began)
	l.ended++
	l.done = 0
	l.runs = max(l.runs, l.ended) // disturbed ones are repeated
}

// words tells of the time that is left, once a run has ended.
func (l *timeLeft) words() string {
	if l.ended == 0 {
		return "how long it takes is known after the first run"
	}
	each := l.spent / time.Duration(l.ended)
	left := each * time.Duration(l.runs-l.ended)
	if l.done > 0 && l.ended < l.runs {
		left -= min(time.Since(l.began), each)
	}
	return fmt.Sprintf("about %v left", left.Round(time.Second))
}

func (l *timeLeft) line() string {
	return fmt.Sprintf("engine: run %d of %d, %d of %d tokens; %s", l.ended+1, max(l.runs, l.ended+1), l.done, l.tokens, l.words())
}

// deliver shows what would be written, asks if somebody is there to be asked, and
// writes it.
func (r *reporting) deliver(out *cli.Output) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	if err := out.Text(string(files[0].text)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\nTo be written into %s:\n", term.CleanLine(r.o.report))
	for _, f := range files {
		fmt.Fprintf(os.Stderr, "  %-12s %7d bytes  %s\n", f.name, len(f.text), f.what)
	}
	fmt.Fprintln(os.Stderr, "In them are figures, the host's kind and the model's file name; no path, no name of yours, no text of the model.")
	if !r.o.yes && tty.Is(os.Stdin) && tty.Is(os.Stdout) {
		yes, err := agreed(files)
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(os.Stderr, "Nothing was written.")
			return nil
		}
	}
	for _, f := range files {
		if err := f.write(r.o.report); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "Written. Send the folder %s.\n", term.CleanLine(r.o.report))
	return nil
}

// checkReport refuses what a report varies itself, and what has no part in it.
func (o *options) checkReport() error {
	if !o.given("report") {
		return nil
	}
	if o.report == "" {
		return cli.Usagef("--report takes a folder to write into")
	}
	for _, name := range []string{"release-mmap", "no-odirect"} {
		if o.given(name) {
			return cli.Usagef("--%s and --report exclude each other: it measures with and without", name)
		}
	}
	return nil
}
