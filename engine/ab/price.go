package ab

import (
	"context"
	"fmt"
	"slices"

	"bmoe/engine/backend"
	"bmoe/internal/stats"
)

// What an answer may cost for a change of speed to be called an improvement.
const (
	mostNats  = 0.05 // a token more than without losses
	mostFlips = 5.0  // percent of the likeliest tokens that become others
)

// Price is what the losses of a variant cost, on the answer of the first variant that
// has none.
type Price struct {
	Positions int     `json:"positions"`
	NLLMore   float64 `json:"nll_more"` // nats a token
	FlipPct   float64 `json:"flip_pct"`
}

// dear reports whether a change of speed at this price is no improvement.
func (p *Price) dear() bool { return p.NLLMore > mostNats || p.FlipPct > mostFlips }

func (p *Price) String() string {
	return fmt.Sprintf("%+.3f nats a token and %.1f %% other likeliest tokens", p.NLLMore, p.FlipPct)
}

// lossy reports whether the runs of a variant left something out.
func (x *Experiment) lossy(variant int) bool {
	return slices.ContainsFunc(x.Cells, func(c Cell) bool {
		return c.Variant == variant && slices.Contains(c.Run.Result.Flags, "lossy")
	})
}

// exact returns the first variant without losses, or -1.
func (x *Experiment) exact() int {
	for v := range x.Variants {
		if !x.lossy(v) && slices.ContainsFunc(x.Cells, func(c Cell) bool { return c.Variant == v }) {
			return v
		}
	}
	return -1
}

// price scores the answer of the first variant without losses under every variant that
// has some. An engine that cannot score, or that is opened for every run, leaves them
// without a price.
func (r *runner) price(ctx context.Context) error {
	base := r.exact()
	s, can := r.session.(backend.Scorer)
	if base < 0 || !can || !slices.ContainsFunc(r.Cells, func(c Cell) bool { return r.lossy(c.Variant) }) {
		return nil
	}
	if _, err := r.once(ctx, r.Plan.Variants[base]); err != nil {
		return err
	}
	ids := s.Heard()
	nll, top1, err := s.Score(ctx, ids)
	if err != nil {
		return err
	}
	r.Prices = make([]*Price, len(r.Plan.Variants))
	for v := range r.Plan.Variants {
		if !r.lossy(v) {
			continue
		}
		if err := r.set(r.Plan.Variants[v]); err != nil {
			return err
		}
		more, other, err := s.Score(ctx, ids)
		if err != nil {
			return err
		}
		p := &Price{Positions: len(nll)}
		for i := range nll {
			p.NLLMore += float64(more[i]-nll[i]) / float64(len(nll))
			if other[i] != top1[i] {
				p.FlipPct += 100 / float64(len(nll))
			}
		}
		r.Prices[v] = p
	}
	return nil
}

// verdict words a variant's change of speed, with what it costs.
func (x *Experiment) verdict(variant int, d stats.Difference) string {
	text := d.String()
	if !x.lossy(variant) || d.Verdict != stats.Faster {
		return text
	}
	if variant >= len(x.Prices) || x.Prices[variant] == nil {
		return "lossy and not priced, so no improvement is claimed: " + text
	}
	p := x.Prices[variant]
	if p.dear() {
		return fmt.Sprintf("no improvement: %s, but it costs %v", text, p)
	}
	return fmt.Sprintf("%s, at %v", text, p)
}
