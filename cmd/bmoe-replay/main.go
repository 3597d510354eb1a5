// Command bmoe-replay runs cache policies over a recorded route and tells what each
// would have hit and read at any budget.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"bmoe/internal/cli"
	"bmoe/internal/interrupt"
	"bmoe/internal/units"
	"bmoe/profile/replay"
	"bmoe/profile/trace"

	"github.com/spf13/pflag"
)

func main() {
	cli.EndOnPanic("bmoe-replay")
	cli.IgnoreBrokenPipe()
	ctx, stop := interrupt.Context(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Finish(stderr, "bmoe-replay", replayTrace(ctx, args, cli.NewOutput(stdout)))
}

// options is the command line.
type options struct {
	path     string
	budgets  []int // MiB
	schedule string
	policies []string
	validate int
	analyze  bool
	json     bool
	csv, svg string
	timeline bool
	second   string // the other trace of a timeline
	token    int
}

// defaultPolicies are compared unless others are named.
var defaultPolicies = []string{"belady", "lru", "lfu", "layer", "layerlfu"}

func parse(args []string) (*options, *pflag.FlagSet, error) {
	o := &options{}
	fs := pflag.NewFlagSet("bmoe-replay", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	fs.IntSliceVar(&o.budgets, "budgets", nil, "MiB of the cache, as 500,1000,2000 (default: from half a token cycle to all experts)")
	fs.StringVar(&o.schedule, "budget-schedule", "", "one budget that changes with a decoded token: 4000@0,2909@64")
	fs.StringSliceVar(&o.policies, "policies", defaultPolicies, "what to compare; known: "+strings.Join(replay.Names(), ", "))
	fs.IntVar(&o.validate, "validate", 0, "replay this budget in MiB under the policy that recorded the trace, and compare with what it recorded")
	fs.BoolVar(&o.analyze, "analyze", false, "tell what the routes are like, whatever the cache")
	fs.BoolVar(&o.json, "json", false, "one JSON object on standard output and nothing else")
	fs.StringVar(&o.csv, "csv", "", "write a row for each policy and budget to this file")
	fs.StringVar(&o.svg, "svg", "", "draw the hit rates over the budgets to this file")
	fs.BoolVar(&o.timeline, "timeline", false, "draw what lanes and workers did during a token: name an I/O trace, a compute trace and --svg")
	fs.IntVar(&o.token, "token", 0, "with --timeline: the decoded token, from 1 (default: the one of middle length)")
	if err := fs.Parse(args); err != nil {
		return o, fs, err
	}
	if err := o.checkTimeline(fs); err != nil || o.timeline {
		return o, fs, err
	}
	if fs.NArg() != 1 {
		return o, fs, errors.New("name one route trace")
	}
	o.path = fs.Arg(0)
	for _, p := range o.policies {
		if err := replay.Check(p); err != nil {
			return o, fs, err
		}
	}
	for _, b := range append(slices.Clone(o.budgets), o.validate) {
		if b < 0 || b > 1<<30 || b == 0 && len(o.budgets) > 0 && slices.Contains(o.budgets, 0) {
			return o, fs, fmt.Errorf("%d is no budget in MiB", b)
		}
	}
	if o.schedule != "" && fs.Changed("budgets") {
		return o, fs, errors.New("--budgets and --budget-schedule exclude each other")
	}
	return o, fs, nil
}

func usage(fs *pflag.FlagSet) string {
	return "bmoe-replay runs cache policies over a recorded route.\n\nUsage: bmoe-replay [flags] TRACE.csv\n       bmoe-replay --timeline IO.csv COMPUTE.csv --svg FILE [--token N]\n\nFlags:\n" + fs.FlagUsagesWrapped(100) +
		"\nbmoe --route-trace writes such traces. Exit codes: " + cli.ExitCodes + "\n"
}

// report is what --json prints.
type report struct {
	Trace      string           `json:"trace"`
	Model      string           `json:"model"`
	Layers     int              `json:"layers"`
	Experts    int              `json:"experts"`
	Used       int              `json:"used"`
	TokenCycle float64          `json:"token_cycle_mib"`
	AllExperts float64          `json:"all_experts_mib"`
	Rows       []row            `json:"rows,omitempty"`
	Validation *validation      `json:"validation,omitempty"`
	Analysis   *replay.Analysis `json:"analysis,omitempty"`
}

// row is a policy at a budget.
type row struct {
	Policy     string          `json:"policy"`
	BudgetMiB  float64         `json:"budget_mib"`
	Schedule   string          `json:"schedule,omitempty"`
	BelowCycle bool            `json:"below_token_cycle"`
	HitPct     float64         `json:"hit_pct"` // of the answers
	AllHitPct  float64         `json:"all_hit_pct"`
	ReadMiB    float64         `json:"read_mib"` // of the answers
	Decode     replay.Counters `json:"decode"`
	All        replay.Counters `json:"all"`
}

type validation struct {
	Policy    string  `json:"policy"`
	BudgetMiB int     `json:"budget_mib"`
	Replayed  float64 `json:"replayed_hit_pct"`
	Recorded  float64 `json:"recorded_hit_pct"`
	Agrees    bool    `json:"agrees"`
}

// agree is by how many points two hit rates may differ that are told to one decimal.
const agree = 0.05

func replayTrace(ctx context.Context, args []string, out *cli.Output) error {
	o, fs, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return out.Text(usage(fs))
	}
	if err != nil {
		return cli.UsageError{Err: err}
	}
	if o.timeline {
		return o.drawTimeline(ctx, out)
	}
	open := func() (io.ReadCloser, error) { return openTrace(ctx, o.path) }
	if done, err := o.summed(open, fs, out); done || err != nil {
		return o.named(err)
	}
	head, err := readHead(open)
	if err != nil {
		return o.named(err)
	}
	shape := replay.Shape(head)
	r := &report{Trace: o.path, Model: head.Model, Layers: len(head.Layers), Experts: head.Experts, Used: head.Used,
		TokenCycle: units.InMiB(shape.TokenCycle()), AllExperts: units.InMiB(shape.Total())}
	switch {
	case o.validate > 0:
		if r.Validation, err = o.validated(open); err != nil {
			return o.named(err)
		}
	case o.analyze:
		in, err := open()
		if err != nil {
			return err
		}
		defer in.Close()
		if _, r.Analysis, err = replay.Analyze(in); err != nil {
			return o.named(err)
		}
	default:
		cases, err := o.cases(shape.TokenCycle(), shape.Total())
		if err != nil {
			return err
		}
		_, outcomes, err := replay.Run(open, cases)
		if err != nil {
			return o.named(err)
		}
		for _, c := range outcomes {
			r.Rows = append(r.Rows, row{Policy: c.Policy, BudgetMiB: units.InMiB(c.Budget), Schedule: o.schedule, BelowCycle: c.Budget < shape.TokenCycle(),
				HitPct: c.Decode.HitPct(), AllHitPct: c.All.HitPct(), ReadMiB: units.InMiB(c.Decode.ReadBytes), Decode: c.Decode, All: c.All})
		}
	}
	if err := o.files(r); err != nil {
		return err
	}
	if o.json {
		err = out.Line("", r)
	} else {
		err = out.Text(r.text())
	}
	if err == nil && r.Validation != nil && !r.Validation.Agrees {
		return fmt.Errorf("%s: %s at %d MiB hits %.1f %%, the trace recorded %.1f", o.path, r.Validation.Policy, o.validate, r.Validation.Replayed, r.Validation.Recorded)
	}
	return err
}

// named puts the trace's name before what is wrong with it.
func (o *options) named(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), o.path) {
		return err
	}
	return fmt.Errorf("%s: %w", o.path, err)
}

// openTrace opens a regular file: it may have to be read twice.
func openTrace(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &interruptible{f, ctx}, nil
}

// interruptible is a file of which no more is read once its context has ended.
type interruptible struct {
	*os.File
	ctx context.Context
}

func (f *interruptible) Read(b []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func readHead(open func() (io.ReadCloser, error)) (*trace.RouteHead, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	rows, err := trace.NewRouteRows(in)
	if err != nil {
		return nil, err
	}
	return &rows.RouteHead, nil
}

// cases are the policies at the budgets asked for.
func (o *options) cases(cycle, total int64) ([]replay.Case, error) {
	var cases []replay.Case
	if o.schedule != "" {
		first, then, err := parseSchedule(o.schedule)
		if err != nil {
			return nil, cli.UsageError{Err: err}
		}
		for _, p := range o.policies {
			cases = append(cases, replay.Case{Policy: p, Budget: first, Then: then})
		}
		return cases, nil
	}
	budgets := o.budgets
	if len(budgets) == 0 {
		for _, part := range []int64{cycle / 2, cycle * 5 / 4, cycle * 2, cycle * 3, cycle * 5, cycle * 8, total} {
			if b := int(units.MiBUp(min(part, total))); b > 0 && !slices.Contains(budgets, b) {
				budgets = append(budgets, b)
			}
		}
		slices.Sort(budgets)
	}
	for _, p := range o.policies {
		for _, b := range budgets {
			cases = append(cases, replay.Case{Policy: p, Budget: int64(b) * units.MiB})
		}
	}
	return cases, nil
}

// parseSchedule reads 4000@0,2909@64: MiB, and from which decoded token on.
func parseSchedule(s string) (first int64, then []replay.Change, err error) {
	last := -1
	for part := range strings.SplitSeq(s, ",") {
		mib, at, ok := strings.Cut(strings.TrimSpace(part), "@")
		n, err1 := strconv.ParseInt(mib, 10, 32)
		token, err2 := strconv.Atoi(at)
		if !ok || err1 != nil || err2 != nil || n <= 0 || token <= last {
			return 0, nil, fmt.Errorf("--budget-schedule %q: want budgets in MiB and from which token on, as in 4000@0,2909@64", s)
		}
		if last < 0 && token != 0 {
			return 0, nil, fmt.Errorf("--budget-schedule %q: the first budget is that of token 0", s)
		}
		if last < 0 {
			first = n * units.MiB
		} else {
			then = append(then, replay.Change{Token: token, Budget: n * units.MiB})
		}
		last = token
	}
	return first, then, nil
}

func (o *options) validated(open func() (io.ReadCloser, error)) (*validation, error) {
	recorded, policy, ok, err := replay.Recorded(open)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("it does not tell what was hit and missed: there is nothing to validate against")
	}
	_, out, err := replay.Run(open, []replay.Case{{Policy: policy, Budget: int64(o.validate) * units.MiB}})
	if err != nil {
		return nil, err
	}
	v := &validation{BudgetMiB: o.validate, Policy: policy, Replayed: out[0].All.HitPct(), Recorded: recorded}
	v.Agrees = math.Abs(v.Replayed-v.Recorded) <= agree
	return v, nil
}

// files writes what is asked for beside the report.
func (o *options) files(r *report) error {
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{{o.csv, r.csv}, {o.svg, r.svg}} {
		if f.path == "" {
			continue
		}
		if err := writeTo(f.path, f.write); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(strings.Split("policy,budget_mib,below_token_cycle,hit_pct,all_hit_pct,read_mib,lookups,hits,evictions,rereads", ",")); err != nil {
		return err
	}
	for _, c := range r.Rows {
		if err := out.Write([]string{c.Policy, units.Decimals(c.BudgetMiB, 0), strconv.FormatBool(c.BelowCycle), units.Decimals(c.HitPct, 3), units.Decimals(c.AllHitPct, 3),
			units.Decimals(c.ReadMiB, 1), fmt.Sprint(c.Decode.Lookups), fmt.Sprint(c.Decode.Hits), fmt.Sprint(c.Decode.Evictions), fmt.Sprint(c.Decode.Rereads)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
