package profile

import "bmoe/internal/stats"

// MostWhatIfs bounds the budgets of which a snapshot tells what they would give.
const MostWhatIfs = 16

// Lookups is what a budget for the cache would have hit and read in the run's
// decoding so far, with everything else equal and least-recently-used as policy.
type Lookups struct {
	Budget        int64 // slot bytes
	Lookups, Hits int64
	ReadBytes     int64 // logical, of the misses
	Known         bool  // false: of so small a budget nothing can be said
}

// WhatIf is what another budget would give. It is an estimate: the lookups are
// exact for least-recently-used; another policy is taken to save the same part of its
// misses at every budget as it does at the one in force. The speed assumes that waiting
// grows and shrinks with the bytes that are read.
type WhatIf struct {
	Budget     int64 // slot bytes
	InForce    bool
	Hit        Maybe[float64] // percent
	ReadPerTok Maybe[float64] // logical bytes a token
	TPS        Maybe[float64] // tokens a second
}

// whatIf fills the snapshot's estimates from the latest counts.
func (r *Recorder) whatIf(g *Gauges) {
	c := &r.live.Cache
	c.WhatIfs = g.WhatIfs
	var now Lookups
	for _, l := range g.WhatIf[:g.WhatIfs] {
		if l.Budget == c.Budget && l.Known {
			now = l
		}
	}
	n := r.sum.Tokens
	// What the run missed of what least-recently-used would have missed.
	missed, read := Ratio(float64(r.sum.Lookups-r.sum.Hits), float64(now.Lookups-now.Hits)), Ratio(float64(r.sum.ExpertBytes), float64(now.ReadBytes))
	for i, l := range g.WhatIf[:g.WhatIfs] {
		w := WhatIf{Budget: l.Budget, InForce: l.Budget == c.Budget}
		if l.Known {
			if missed.OK && read.OK {
				l.Hits = max(0, l.Lookups-int64(missed.Value*float64(l.Lookups-l.Hits)+0.5))
				l.ReadBytes = int64(read.Value*float64(l.ReadBytes) + 0.5)
			}
			w.Hit = maybe(stats.Percent(l.Hits, l.Lookups))
			w.ReadPerTok = Ratio(float64(l.ReadBytes), float64(n))
			if r.sum.Stall.OK && r.sum.ExpertBytes > 0 {
				stall := float64(r.sum.Stall.Value)
				wall := float64(r.sum.Wall) - stall + stall*float64(l.ReadBytes)/float64(r.sum.ExpertBytes)
				w.TPS = Ratio(float64(n)*1e9, wall)
			}
		}
		c.WhatIf[i] = w
	}
}
