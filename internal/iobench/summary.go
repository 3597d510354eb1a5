package iobench

import (
	"fmt"
	"math"

	"bmoe/flashio"
	"bmoe/internal/stats"
	"bmoe/internal/units"
)

// row is a cell with the medians of its repeats. Figures that were not measured
// are NaN.
type row struct {
	cell        *cell
	unavailable string
	mode        flashio.Mode
	engine      string
	lengthKiB   float64 // of one read

	rates        []float64 // MiB/s of each repeat
	rate         float64   // MiB/s, their median
	meanMs       float64
	p50Ms, p99Ms float64
	reads        int64   // of all repeats
	cpuMsPerGiB  float64 // CPU time of this process
	foreignMiBs  float64 // what others moved on the drive, MiB/s: the largest of the repeats
	fromDrivePct float64 // share of what was read that the drive served
	inTurnPct    float64 // share of direct reads that the simulated host served one at a time
	ratio        float64 // to the bare drive at the same lanes, read size and engine, in a table
	notes        []string
	contended    bool
}

// summary is the result of a campaign.
type summary struct {
	rows        []*row
	peaks       []peak
	verdict     string // in words; empty if the figures do not support one
	silence     string // why there is none, in a table
	contended   bool
	foreignMiBs float64 // the most that others moved on the drive in a row, MiB/s
	simulated   bool
	complete    bool // neither interrupted nor failed
}

// peak is the best rate over lanes of one kind of read.
type peak struct {
	engine    string
	lengthKiB float64
	rate      float64 // MiB/s
	lanes     int
}

const (
	// Others on the drive are worth a warning from this share of what was read,
	// and this rate: an idle system's log lines are neither.
	foreignShare  = 0.05
	foreignMinMiB = 4.0

	// cachedShare is what the drive must have served of reads that went past the
	// cache; less means that something below, or a hole in the file, served them.
	cachedShare = 0.95
)

// summarise turns the measurements so far into the result.
func (c *campaign) summarise() *summary {
	s := &summary{simulated: c.opt.simulate}
	for _, one := range c.cells {
		var own []*measurement
		for _, m := range c.measurements {
			if m.cell == one {
				own = append(own, m)
			}
		}
		if len(own) > 0 {
			s.rows = append(s.rows, newRow(one, own))
		}
	}
	for _, r := range s.rows {
		r.ratio = math.NaN()
		if base := s.baseline(r.cell); base != nil && c.opt.table && base != r {
			r.ratio = r.rate / base.rate
		}
		s.contended = s.contended || r.contended
		if r.foreignMiBs > s.foreignMiBs { // false for NaN
			s.foreignMiBs = r.foreignMiBs
		}
	}
	s.peaks = findPeaks(s.rows, c.opt.table)
	if c.opt.table {
		s.verdict, s.silence = judge(s)
	}
	return s
}

// newRow takes the medians of a cell's repeats.
func newRow(c *cell, repeats []*measurement) *row {
	last := repeats[len(repeats)-1]
	r := &row{cell: c, unavailable: last.unavailable, mode: last.mode, engine: last.engine, lengthKiB: float64(last.length) / units.KiB}
	var means, p50s, p99s, cpus, foreigns, shares, inTurns []float64
	for _, m := range repeats {
		if m.unavailable != "" {
			continue
		}
		r.rates = append(r.rates, m.mibPerSecond())
		r.reads += m.latency.Count()
		if mean, ok := m.latency.Mean(); ok {
			p50, _ := m.latency.Quantile(0.5)
			p99, _ := m.latency.Quantile(0.99)
			means, p50s, p99s = append(means, mean/units.Millisecond), append(p50s, units.InMs(p50)), append(p99s, units.InMs(p99))
		}
		if m.cpu != nil && m.bytes > 0 {
			cpus = append(cpus, m.cpu.Seconds()*1e3/(m.bytes/units.GiB))
		}
		if m.foreign != nil {
			rate := units.InMiB(*m.foreign) / m.seconds
			foreigns = append(foreigns, rate)
			if rate >= foreignMinMiB && rate >= foreignShare*m.mibPerSecond() {
				r.contended = true
			}
		}
		if !math.IsNaN(m.inTurn) {
			inTurns = append(inTurns, m.inTurn)
		}
		if m.fromDrive != nil && m.bytes > 0 {
			shares = append(shares, min(100*float64(*m.fromDrive)/m.bytes, 100))
		}
	}
	r.rate, r.meanMs, r.p50Ms, r.p99Ms = stats.Median(r.rates), stats.Median(means), stats.Median(p50s), stats.Median(p99s)
	r.cpuMsPerGiB, r.fromDrivePct = stats.Median(cpus), stats.Median(shares)
	r.inTurnPct = stats.Median(inTurns)
	r.foreignMiBs = stats.Quantile(foreigns, 1)
	r.notes = append(last.notes, r.caveats()...)
	return r
}

// caveats says what a reader of the row must know.
func (r *row) caveats() []string {
	var notes []string
	c := r.cell
	if r.unavailable != "" {
		return append(notes, r.unavailable)
	}
	if !r.mode.Direct && !r.mode.Simulated && !c.buffered && r.mode.Reason != "" {
		notes = append(notes, fmt.Sprintf("reads fell back to %s: %s", r.mode, r.mode.Reason))
	}
	if c.fresh && !c.smallPages {
		notes = append(notes, "fresh pages are of the normal size: where --small-pages differs from the drive's row, compare with that")
	}
	share := ""
	if !math.IsNaN(r.fromDrivePct) {
		share = fmt.Sprintf(" (the drive served %.0f%% of this row)", r.fromDrivePct)
	}
	switch {
	case c.buffered && c.mapping != mapNone:
		notes = append(notes, "the page cache, which a mapping fills, serves such reads: this prices neither buffered reads nor the mapping"+share)
	case c.buffered:
		notes = append(notes, "the page cache serves what it holds: this is not the drive's rate"+share)
	case r.mode.Direct && !r.mode.Simulated && r.fromDrivePct < 100*cachedShare:
		notes = append(notes, fmt.Sprintf("the drive served only %.0f%% of it: the file has holes, or something below caches it", r.fromDrivePct))
	}
	if r.contended {
		notes = append(notes, "CONTENDED: others used the drive meanwhile")
	}
	return notes
}

// baseline returns the bare drive's row for a cell's lanes, read size and engine,
// or nil. A row with an odd read size is compared with the table's size.
func (s *summary) baseline(c *cell) *row {
	for _, r := range s.rows {
		if r.cell.variable == "" && r.cell.lanes == c.lanes && r.cell.engine == c.engine && (c.noRound || r.cell.sliceKiB == c.sliceKiB) {
			return r
		}
	}
	return nil
}

// findPeaks finds the peak of each engine and read size. In a table only the bare
// drive's rows count.
func findPeaks(rows []*row, table bool) []peak {
	var peaks []peak
	for _, r := range rows {
		if table && r.cell.variable != "" || math.IsNaN(r.rate) {
			continue
		}
		i := 0
		for i < len(peaks) && (peaks[i].engine != r.engine || peaks[i].lengthKiB != r.lengthKiB) {
			i++
		}
		if i == len(peaks) {
			peaks = append(peaks, peak{engine: r.engine, lengthKiB: r.lengthKiB})
		}
		if r.rate > peaks[i].rate {
			peaks[i].rate, peaks[i].lanes = r.rate, r.cell.lanes
		}
	}
	return peaks
}
