package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"bmoe/internal/cli"
	"bmoe/internal/units"
	"bmoe/profile/trace"
	"bmoe/tui/term"

	"github.com/spf13/pflag"
)

// summed adds up a trace of reads or of computing, in which there is nothing to
// replay, and reports whether it is one.
func (o *options) summed(open func() (io.ReadCloser, error), fs *pflag.FlagSet, out *cli.Output) (done bool, err error) {
	f, err := open()
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	kind := trace.Kind(in)
	if kind != "io" && kind != "compute" {
		return false, nil
	}
	var idle []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Name != "json" {
			idle = append(idle, "--"+f.Name)
		}
	})
	if len(idle) > 0 {
		return true, cli.Usagef("%s is for route traces, and this one is of another kind", idle[0])
	}
	r := &sums{Trace: o.path}
	if kind == "io" {
		r.Reads, err = trace.SumIO(in)
	} else {
		r.Steps, r.Tokens, err = trace.SumCompute(in)
	}
	if err != nil {
		return true, err
	}
	if o.json {
		return true, out.Line("", r)
	}
	return true, out.Text(r.text())
}

// sums is the report of a trace of reads or of computing.
type sums struct {
	Trace  string         `json:"trace"`
	Reads  []*trace.Reads `json:"reads,omitempty"`
	Steps  []trace.Step   `json:"steps,omitempty"`
	Tokens int64          `json:"tokens,omitempty"`
}

func (r *sums) text() string {
	var b strings.Builder
	thousandths := func(ms float64) string { return units.Decimals(ms, 3) }
	if r.Reads != nil {
		fmt.Fprintf(&b, "%-6s %10s %10s %10s %10s %10s\n", "lane", "reads", "MiB", "ahead", "p50 ms", "p99 ms")
		for _, s := range r.Reads {
			lane := "all"
			if s.Lane >= 0 {
				lane = strconv.Itoa(s.Lane + 1)
			}
			fmt.Fprintf(&b, "%-6s %10d %10s %10d %10s %10s\n", lane, s.Reads, units.Decimals(units.InMiB(s.Bytes), 1), s.Guessed,
				s.P50.Text(thousandths, ""), s.P99.Text(thousandths, ""))
		}
		return b.String()
	}
	if r.Tokens == 0 {
		return "no token of an answer was traced\n"
	}
	fmt.Fprintf(&b, "%-12s %10s %12s %8s %8s\n", "step", "a token", "ms a token", "%", "majflt")
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%-12s %10s %12s %8s %8d\n", term.CleanLine(s.Op), units.Decimals(float64(s.Count)/float64(r.Tokens), 1), units.Decimals(s.Ms/float64(r.Tokens), 3),
			units.Decimals(100*s.Share, 1), s.MajorFaults)
	}
	return b.String()
}
