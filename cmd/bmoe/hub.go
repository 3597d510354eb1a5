package main

import (
	"context"
	"fmt"
	"os"

	"bmoe/internal/host"
	"bmoe/internal/hub"
	"bmoe/internal/units"
)

// hubModel returns the path of the model that --hf names: from the cache, or after it
// has been downloaded into it.
func (o *options) hubModel(ctx context.Context) (string, error) {
	spec, err := hub.ParseSpec(o.hf)
	if err != nil {
		return "", err // checked when the flags were read
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return "", err
	}
	if path, ok := h.Cached(spec); ok {
		return path, nil
	}
	p, err := h.Plan(ctx, spec)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "bmoe: downloading %s\n", planText(p, host.ReadMemory()))
	status := newStatus(os.Stderr)
	defer status.clear()
	path, err := h.Download(ctx, p, func(p hub.Progress) { status.show(downloadText(p)) })
	if ctx.Err() != nil {
		status.clear()
		fmt.Fprintln(os.Stderr, "bmoe: stopped; the same command goes on from here")
	}
	return path, err
}

// planText says before the first byte what a download takes.
func planText(p *hub.Plan, m host.Memory) string {
	text := fmt.Sprintf("%s, %s", p.Set.Name(), units.Size(p.Set.Size()))
	if n := len(p.Set.Files); n > 1 {
		text += fmt.Sprintf(" in %d files", n)
	}
	if p.Left < p.Set.Size() {
		text += fmt.Sprintf(", of which %s are there", units.Size(p.Set.Size()-p.Left))
	}
	text += ", to " + p.Dir
	if m.Has.All(host.HasTotal) {
		text += fmt.Sprintf("; this machine has %s of memory", units.Size(m.Total))
		if p.Set.Size() > m.Total {
			text += ", so a model without experts would not run from it"
		}
	}
	return text
}

// downloadText says how far a download is.
func downloadText(p hub.Progress) string {
	what := "downloading"
	if p.Checking {
		what = "checking what is there of"
	}
	text := fmt.Sprintf("%s %s: %s of %s", what, p.Name, units.Size(p.Done), units.Size(p.Total))
	if p.Rate > 0 {
		text += fmt.Sprintf(", %s, %s left", units.MiBPerSecond(p.Rate), units.About(int64(p.Left)))
	}
	return text
}
