package iobench

import (
	"fmt"
	"strings"

	"bmoe/internal/stats"
)

// The verdict needs gains of this much, with intervals that stay above the second
// figure.
const (
	gainWorthTelling = 1.10
	gainCertain      = 1.05
)

// judge compares the bare drive with a live mapping, and that with a mapping that
// was dropped, at the most lanes. It answers yes or nothing: a probe of a few
// seconds can show that a mapping costs, and not that it does not. (On a host
// where a release gave 24% the probe of BigMoeOnEdge's planner showed
// 2%.)
//
// A yes takes both comparisons. The second one is what --release-mmap does, so
// without it the advice would be wrong; and it is a control: the bare drive
// measured twice, so that a drive which happened to be quick in the first row
// does not make a verdict.
func judge(s *summary) (verdict, silence string) {
	base, mapped, reopened := s.verdictRows()
	const noNo = "this probe can find a cost and cannot rule one out; bmoe --ab 'release-mmap=off,on' measures it in the engine"
	switch {
	case base == nil || mapped == nil || reopened == nil:
		return "", "it takes the bare drive, a mapping, and the lanes reopened without it, at the same two lanes or more"
	case !base.mode.Direct && !base.mode.Simulated:
		return "", "reads are not direct here, and the effect is one of direct reads: " + noNo
	}
	lanes := base.cell.lanes
	gain, low := gainOver(mapped, base)
	regained, regainedLow := gainOver(mapped, reopened)
	if min(gain, regained) < gainWorthTelling || !(min(low, regainedLow) > gainCertain) {
		return "", fmt.Sprintf("at %d lanes the drive gave %.0f MiB/s, %.0f under a live mapping, %.0f after the lanes were reopened without it: %s",
			lanes, base.rate, mapped.rate, reopened.rate, noNo)
	}
	var words strings.Builder
	fmt.Fprintf(&words, "a live mapping costs this host %.1fx at %d lanes: run with --release-mmap (%.0f MiB/s without a mapping, %.0f with one, %.0f after it was dropped and the lanes reopened)",
		gain, lanes, base.rate, mapped.rate, reopened.rate)
	if base.mode.Simulated {
		words.WriteString(" [SIMULATED host]")
	}
	if s.contended {
		words.WriteString(" [others used the drive meanwhile: repeat on a quiet machine]")
	}
	return words.String(), ""
}

// verdictRows returns the three rows that the verdict compares, at the largest
// number of lanes that all have. They are nil where there are none.
func (s *summary) verdictRows() (base, mapped, reopened *row) {
	for _, r := range s.rows {
		c := r.cell
		if c.lanes < 2 || len(r.rates) == 0 || base != nil && (c.lanes < base.cell.lanes || c.engine != base.cell.engine) {
			continue
		}
		switch c.variable {
		case "":
			base, mapped, reopened = r, nil, nil
		case labelMapped:
			mapped = r
		case labelReopened:
			reopened = r
		}
	}
	if base == nil || mapped == nil || reopened == nil || mapped.cell.lanes != base.cell.lanes || reopened.cell.lanes != base.cell.lanes {
		return nil, nil, nil
	}
	return base, mapped, reopened
}

// Labels of the rows that the verdict compares with the bare drive.
var (
	labelMapped   = (&cell{mapping: mapAfter}).label()
	labelReopened = (&cell{mapping: mapAfter, reopen: true}).label()
)

// gainOver returns how many times the rate of from the rate of to is, and the low
// end of that figure's 95% interval.
func gainOver(from, to *row) (gain, low float64) {
	interval := stats.Bootstrap{Seed: 1}.Interval2(from.rates, to.rates, stats.RatioOfMedians)
	return to.rate / from.rate, interval.Low
}
