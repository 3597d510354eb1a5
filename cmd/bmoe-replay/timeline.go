package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bmoe/internal/cli"
	"bmoe/internal/units"
	"bmoe/profile/trace"
	"bmoe/tui/term"

	"github.com/spf13/pflag"
)

// drawTimeline draws what lanes and workers did during a token, from an I/O trace and a
// compute trace of one session.
func (o *options) drawTimeline(ctx context.Context, out *cli.Output) error {
	var steps, reads func() (io.ReadCloser, error)
	for _, path := range []string{o.path, o.second} {
		open := func() (io.ReadCloser, error) { return openTrace(ctx, path) }
		kind, err := kindOf(open)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case kind == "io" && reads == nil:
			reads = open
		case kind == "compute" && steps == nil:
			steps = open
		default:
			return fmt.Errorf("%s: --timeline takes an I/O trace and a compute trace, one of each", path)
		}
	}
	t, err := trace.ReadTimeline(steps, reads, o.token)
	if err != nil {
		return err
	}
	if err := writeTo(o.svg, func(w io.Writer) error { return timelineSVG(w, t) }); err != nil {
		return err
	}
	return out.Text(timelineText(t) + "\n")
}

func kindOf(open func() (io.ReadCloser, error)) (string, error) {
	f, err := open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	return trace.Kind(bufio.NewReader(f)), nil
}

// checkTimeline takes what --timeline needs.
func (o *options) checkTimeline(fs *pflag.FlagSet) error {
	switch {
	case !o.timeline && fs.Changed("token"):
		return errors.New("--token does nothing without --timeline")
	case !o.timeline:
		return nil
	case fs.NArg() != 2:
		return errors.New("--timeline takes two traces of one session, those of bmoe --io-trace and --compute-trace")
	case o.svg == "":
		return errors.New("--timeline draws: --svg names the file")
	case o.token < 0:
		return fmt.Errorf("--token %d: want a decoded token, from 1", o.token)
	}
	var idle []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Name != "timeline" && f.Name != "token" && f.Name != "svg" {
			idle = append(idle, "--"+f.Name)
		}
	})
	if len(idle) > 0 {
		return fmt.Errorf("%s does nothing with --timeline", idle[0])
	}
	o.path, o.second = fs.Arg(0), fs.Arg(1)
	return nil
}

// parts are the states of the workers in the order in which they are stacked.
var parts = []struct {
	name, colour string
	of           func(*trace.ComputeRow) int64
}{
	{"compute", "#0072b2", func(r *trace.ComputeRow) int64 { return r.Compute }},
	{"cache work", "#f0e442", func(r *trace.ComputeRow) int64 { return r.Mgmt }},
	{"waiting", "#d55e00", func(r *trace.ComputeRow) int64 { return r.Stall }},
	{"sync", "#999999", func(r *trace.ComputeRow) int64 { return r.Other }},
}

// Colours of reads: asked for, and read ahead.
const (
	demandColour = "#e69f00"
	aheadColour  = "#56b4e9"
)

func timelineText(t *trace.Timeline) string {
	var sums [4]int64
	for i := range t.Steps {
		for p := range parts {
			sums[p] += parts[p].of(&t.Steps[i])
		}
	}
	ahead := 0
	for _, r := range t.Reads {
		if r.Guessed {
			ahead++
		}
	}
	text := fmt.Sprintf("token %d of %d: %s ms", t.Token, t.Tokens, units.Decimals(units.InMs(t.To-t.From), 2))
	for p, n := range sums {
		text += fmt.Sprintf(", %s %s", parts[p].name, units.Decimals(units.InMs(n), 2))
	}
	return text + fmt.Sprintf("; %s in flight, %d of them ahead of demand", units.Plural(int64(len(t.Reads)), "read"), ahead)
}

// timelineSVG draws the workers' steps over the lanes' reads. A step's box is divided
// as its workers' time was; where in the step they waited is not recorded.
func timelineSVG(w io.Writer, t *trace.Timeline) error {
	const width, left, right, top, band, row, gap = 1200, 70, 16, 40, 64, 18, 5
	lanes := 1
	for _, r := range t.Reads {
		lanes = max(lanes, r.Lane+1)
	}
	height := top + band + 2*gap + lanes*(row+gap) + 64
	span := float64(max(t.To-t.From, 1))
	x := func(at int64) float64 {
		return left + float64(min(max(at, t.From), t.To)-t.From)/span*(width-left-right)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="16">%s</text>`+"\n", left, timelineText(t))
	box := func(from, to int64, y, h float64, colour, title string) {
		fmt.Fprintf(&b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"><title>%s</title></rect>`+"\n", x(from), y, max(x(to)-x(from), 0.4), h, colour, title)
	}
	layer, labelled := -1, -100.0
	for i := range t.Steps {
		s := &t.Steps[i]
		title := fmt.Sprintf("%s, %s ms", xmlText(s.Name), units.Decimals(units.InMs(s.Wall), 3))
		all := int64(0)
		for _, p := range parts {
			all += p.of(s)
		}
		y := float64(top)
		for _, p := range parts {
			if h := band * float64(p.of(s)) / float64(max(all, 1)); h > 0 {
				box(s.Start, s.Start+s.Wall, y, h, p.colour, title+", "+p.name+" "+units.Decimals(units.InMs(p.of(s)), 3))
				y += h
			}
		}
		if s.Layer >= 0 && s.Layer != layer {
			layer = s.Layer
			at := x(s.Start)
			fmt.Fprintf(&b, `<line x1="%.2f" x2="%.2f" y1="%d" y2="%d" stroke="#000" stroke-width="0.5"/>`+"\n", at, at, top-4, top+band+2*gap+lanes*(row+gap))
			if at-labelled > 24 {
				fmt.Fprintf(&b, `<text x="%.2f" y="%d" font-size="10">%d</text>`+"\n", at+2, top-5, layer)
				labelled = at
			}
		}
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">layer</text><text x="%d" y="%d" text-anchor="end">workers</text>`+"\n", left-6, top-5, left-6, top+band/2+4)
	under := func(lane int) float64 { return float64(top + band + 2*gap + lane*(row+gap)) }
	for lane := range lanes {
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">lane %d</text>`+"\n", left-6, under(lane)+row-5, lane+1)
	}
	for i := range t.Reads {
		r := &t.Reads[i]
		colour, what := demandColour, "asked for"
		if r.Guessed {
			colour, what = aheadColour, "ahead"
		}
		box(r.Start, r.Start+r.Latency, under(r.Lane), row, colour, fmt.Sprintf("layer %d, expert %d, projection %d, %s: %s KiB in %s ms", r.Layer, r.Expert, r.Projection, what,
			units.Decimals(float64(r.Read)/units.KiB, 0), units.Decimals(units.InMs(r.Latency), 3)))
	}
	foot := under(lanes) + 14
	for i := range 6 {
		at := t.From + int64(span*float64(i)/5)
		anchor := "middle"
		if i == 5 {
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s ms</text>`+"\n", x(at), foot, anchor, units.Decimals(units.InMs(at-t.From), 2))
	}
	at := float64(left)
	for _, l := range [][2]string{{parts[0].name, parts[0].colour}, {parts[1].name, parts[1].colour}, {parts[2].name, parts[2].colour}, {parts[3].name, parts[3].colour},
		{"read that was asked for", demandColour}, {"read ahead", aheadColour}} {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/><text x="%.1f" y="%.1f">%s</text>`+"\n", at, foot+14, l[1], at+17, foot+24, l[0])
		at += 40 + 7*float64(len(l[0]))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// xmlText is a trace's text in a picture.
func xmlText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(term.CleanLine(s))
}

// writeTo makes a file and fills it.
func writeTo(path string, fill func(io.Writer) error) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	err = fill(out)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
