package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/host"
	"bmoe/internal/units"
	"bmoe/tui/term"
)

// orders are the orders in which an experiment's variants take turns.
var orders = []string{"both", "forward"}

// experiment answers the prompt under every combination of settings in turns, and
// reports what that came to.
func experiment(ctx context.Context, o *options, out *cli.Output) error {
	rows := o.variable()
	variants, live, err := ab.Variants(o.ab, rows)
	if err != nil {
		var refused *backend.SettingError
		if errors.As(err, &refused) {
			return err
		}
		return cli.Usagef("--ab: %w", err)
	}
	gate, err := o.gate()
	if err != nil {
		return err
	}
	prompt, err := o.readPrompt(ctx)
	if err != nil {
		return err
	}
	if err := creatable(o.csv); err != nil { // a wrong path should cost no runs
		return fmt.Errorf("cells: %w", err)
	}
	p := &ab.Plan{Variants: variants, Live: live, Most: o.cells, Forward: o.order == "forward", Gate: gate,
		Request: backend.Request{Text: prompt}}
	p.Open = o.opener(rows)
	p.Each = func(c *ab.Cell) {
		what := fmt.Sprintf("round %d of at most %d", c.Round, p.Most)
		if c.Round == 0 {
			what = "warm-up"
		}
		note := ""
		if c.Round > 0 && c.Excluded != "" {
			note = ", left out: " + c.Excluded
		}
		fmt.Fprintf(os.Stderr, "%s, %s: %s tokens/s%s\n", what, term.CleanLine(variants[c.Variant].Name), c.Run.Result.DecodeTPS.Text(units.Fine, ""), note)
	}
	x, err := p.Run(ctx)
	if len(x.Cells) < 2 { // nothing but the warm-up
		return err
	}
	report := x.Report(live, versionText())
	if ctx.Err() != nil {
		ctx = context.Background() // what there is is written all the same; only a second Ctrl+C ends that
	}
	return errors.Join(err, o.deliver(ctx, x, report, live, out))
}

// opener returns what opens an engine with the settings of a variant. Warnings are told
// of the first.
func (o *options) opener(rows []backend.Setting) func(context.Context, map[string]string) (backend.Backend, error) {
	warned := false
	return func(ctx context.Context, values map[string]string) (backend.Backend, error) {
		one := *o
		for _, row := range rows {
			if v, ok := values[row.Name]; ok {
				one.both = one.both || row.Name == backend.EngineSetting
				if err := one.vary(row.Name, v); err != nil {
					return nil, err
				}
			}
		}
		s, err := one.open(ctx, nil)
		if err != nil {
			return nil, err
		}
		for _, w := range s.Warnings() {
			if !warned {
				fmt.Fprintf(os.Stderr, "bmoe: warning: %s\n", term.CleanLine(o.words(w)))
			}
		}
		warned = true
		return s, nil
	}
}

// deliver writes an experiment's report, and its cells if a file is named for them.
func (o *options) deliver(ctx context.Context, x *ab.Experiment, report *ab.Report, live bool, out *cli.Output) error {
	if o.csv != "" {
		if err := writeFile(ctx, o.csv, func(w io.Writer) error { return x.CSV(w, live) }); err != nil {
			return fmt.Errorf("cells: %w", err)
		}
	}
	if o.json {
		return out.Line("", report)
	}
	var text lines
	if err := report.Markdown(&text); err != nil {
		return err
	}
	return out.Text(string(text))
}

// creatable refuses a path, if there is one, at which no file can be made. A pipe is
// left for later: it may have nobody yet who reads it.
func creatable(path string) error {
	info, err := os.Stat(path)
	if path == "" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// lines is a text being written.
type lines []byte

func (l *lines) Write(b []byte) (int, error) {
	*l = append(*l, b...)
	return len(b), nil
}

// gate returns what waits until the processor is cool enough; nil if nothing was
// asked for.
func (o *options) gate() (func(context.Context) error, error) {
	if !o.given("thermal-gate") {
		return nil, nil
	}
	thermal := host.OpenThermal()
	if _, _, ok := thermal.Read(); !ok {
		return nil, errors.New("--thermal-gate: this host tells no temperature")
	}
	limit := float64(o.thermalGate)
	return func(ctx context.Context) error {
		for told := false; ; told = true {
			celsius, _, ok := thermal.Read()
			if !ok || celsius <= limit {
				return nil
			}
			if !told {
				fmt.Fprintf(os.Stderr, "waiting until %.0f C have become %.0f\n", celsius, limit)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}, nil
}

// checkExperiment refuses flags that set what an experiment varies.
func (o *options) checkExperiment() error {
	if !o.given("ab") {
		return nil
	}
	rows := o.variable()
	variants, _, err := ab.Variants(o.ab, rows)
	if err != nil {
		return nil // said when it is carried out
	}
	for name := range variants[0].Values {
		if flag := backend.Find(rows, name).Flag; flag != "" && o.given(flag) {
			return cli.Usagef("--%s and --ab both set %s", flag, name)
		}
	}
	return nil
}
