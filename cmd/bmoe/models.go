package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"bmoe/engine/library"
	"bmoe/internal/cli"
	"bmoe/internal/hub"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// foundModel is a model as --models --json tells of it.
type foundModel struct {
	Path          string                 `json:"path"`
	Name          string                 `json:"name"`
	Place         string                 `json:"place"`
	Arch          string                 `json:"arch"`
	Quant         string                 `json:"quant"`
	Bytes         int64                  `json:"bytes"`
	MoE           bool                   `json:"moe"`
	Experts       int                    `json:"experts"`
	ExpertsUsed   int                    `json:"experts_used"`
	BytesPerToken int64                  `json:"bytes_per_token"`
	LeastTPS      profile.Maybe[float64] `json:"least_tps"`
	MostTPS       profile.Maybe[float64] `json:"most_tps"`
	Problem       string                 `json:"problem,omitempty"`
}

// listModels prints the models that there are, and how fast each may be here.
func listModels(ctx context.Context, o *options, out *cli.Output) error {
	cache, err := hub.CacheDir()
	if err != nil {
		cache = "" // a user without a home: the other places remain
	}
	found, notes, err := library.Scan(ctx, library.Places(o.modelFolders, cache))
	if err != nil {
		return err
	}
	for _, n := range notes {
		warnOf(n)
	}
	machine, err := library.Measure(ctx, found)
	if err != nil {
		return err
	}
	if o.json {
		all := []foundModel{}
		for i := range found {
			m := &found[i]
			f := foundModel{Path: m.Path, Name: m.Name, Place: m.Place, Arch: m.Arch, Quant: m.Quant, Bytes: m.Size, MoE: m.MoE(), Experts: m.Experts, ExpertsUsed: m.Used,
				BytesPerToken: m.Active(), Problem: m.Problem}
			if s, ok := machine.Speed(m); ok {
				f.LeastTPS, f.MostTPS = profile.Some(s.Least), profile.Some(s.Most)
			}
			all = append(all, f)
		}
		return out.Line("", all)
	}
	if len(found) == 0 {
		return out.Text("no models found here, nor in the caches of the Hugging Face Hub, LM Studio and Ollama; --hf OWNER/REPO downloads one\n")
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tarchitecture\tsize\ta token reads\tspeed here\tfound in\tpath")
	for i := range found {
		m := &found[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", term.CleanLine(m.Name), term.CleanLine(strings.TrimSpace(m.Arch+" "+m.Quant)), units.Size(m.Size), m.Needs(), machine.Words(m), term.CleanLine(m.Place), term.CleanLine(m.Path))
	}
	w.Flush() // into memory
	b.WriteString("\n" + machine.String() + "\n")
	return out.Text(b.String())
}
