package iobench

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"bmoe/internal/cli"
	"bmoe/internal/units"
)

// report is one form of the result on standard output.
type report interface {
	begin() error
	measured(*measurement) error // after each measurement
	end(*summary) error
}

// milliseconds formats a latency: small ones with more decimals.
func milliseconds(v float64) string {
	if v < 0.1 {
		return units.Decimals(v, 4)
	}
	return units.Decimals(v, 2)
}

// kib formats a number of bytes in KiB.
func kib(bytes int64) string { return exact(float64(bytes) / units.KiB) }

// exact formats a number with as many decimals as it has.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// textReport writes a table for people. Without repeats each row appears when it
// has been measured; otherwise all appear at the end.
type textReport struct {
	to        *cli.Output
	c         *campaign
	nameWidth int
	streaming bool
	noteOf    map[string]int // footnotes so far
	notes     []string
}

func newTextReport(to *cli.Output, c *campaign) *textReport {
	t := &textReport{to: to, c: c, streaming: c.opt.repeats == 1 && !c.opt.table, noteOf: map[string]int{}}
	t.nameWidth = len("variable")
	for _, one := range c.cells {
		t.nameWidth = max(t.nameWidth, len(one.name()))
	}
	return t
}

func (t *textReport) begin() error {
	s := t.c.subject
	var head strings.Builder
	fmt.Fprintf(&head, "%s, %s MiB, blocks of %d bytes, ", s.name, units.Decimals(units.InMiB(s.size), 1), s.align)
	switch {
	case t.c.opt.simulate:
		head.WriteString("SIMULATED NTFS host")
	case t.c.unwatched != "":
		fmt.Fprintf(&head, "what others read is %s", units.NotMeasured)
	default:
		fmt.Fprintf(&head, "drive %s", t.c.driveName)
	}
	fmt.Fprintf(&head, ", %v a row", t.c.opt.duration)
	if t.c.opt.repeats > 1 {
		fmt.Fprintf(&head, " in each of %d interleaved repeats: medians", t.c.opt.repeats)
	}
	head.WriteString("\n\n")
	fmt.Fprintf(&head, "%-*s %5s %9s %9s", t.nameWidth, "variable", "lanes", "KiB/read", "MiB/s")
	if !t.streaming {
		fmt.Fprintf(&head, " %17s", "least-most")
	}
	if t.c.opt.table {
		fmt.Fprintf(&head, " %8s", "of drive")
	}
	fmt.Fprintf(&head, " %8s %8s %8s %8s %10s  %s\n", "mean ms", "p50 ms", "p99 ms", "reads", "CPUms/GiB", "mode")
	return t.to.Text(head.String())
}

func (t *textReport) measured(m *measurement) error {
	if !t.streaming {
		return nil
	}
	return t.to.Text(t.line(newRow(m.cell, []*measurement{m})))
}

// line formats one row. Its notes become footnotes, one number per text.
func (t *textReport) line(r *row) string {
	var b strings.Builder
	size := units.NotMeasured
	if r.lengthKiB > 0 {
		size = exact(r.lengthKiB)
	}
	fmt.Fprintf(&b, "%-*s %5d %9s %9s", t.nameWidth, r.cell.name(), r.cell.lanes, size, units.Decimals(r.rate, 0))
	if !t.streaming {
		spread := units.NotMeasured
		if len(r.rates) > 0 {
			least, most := extremes(r.rates)
			spread = units.Decimals(least, 0) + "-" + units.Decimals(most, 0)
		}
		fmt.Fprintf(&b, " %17s", spread)
	}
	if t.c.opt.table {
		ratio := ""
		if !math.IsNaN(r.ratio) {
			ratio = units.Decimals(r.ratio, 2) + "x"
		}
		fmt.Fprintf(&b, " %8s", ratio)
	}
	reads, mode := units.NotMeasured, units.NotMeasured
	if r.unavailable == "" {
		reads, mode = strconv.FormatInt(r.reads, 10), r.mode.String()
		if r.engine != "lanes" {
			mode += " " + r.engine
		}
	}
	fmt.Fprintf(&b, " %8s %8s %8s %8s %10s  %s", milliseconds(r.meanMs), milliseconds(r.p50Ms), milliseconds(r.p99Ms), reads, units.Decimals(r.cpuMsPerGiB, 1), mode)
	for _, note := range r.notes {
		if t.noteOf[note] == 0 {
			t.notes = append(t.notes, note)
			t.noteOf[note] = len(t.notes)
		}
		fmt.Fprintf(&b, " [%d]", t.noteOf[note])
	}
	b.WriteByte('\n')
	return b.String()
}

func extremes(values []float64) (least, most float64) {
	least, most = values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	return least, most
}

func (t *textReport) end(s *summary) error {
	var b strings.Builder
	if !t.streaming {
		for _, r := range s.rows {
			b.WriteString(t.line(r))
		}
	}
	b.WriteByte('\n')
	for i, note := range t.notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, note)
	}
	if len(t.notes) > 0 {
		b.WriteByte('\n')
	}
	if !s.complete {
		b.WriteString("incomplete: the run ended early\n")
	}
	if s.contended {
		fmt.Fprintf(&b, "warning: others moved up to %.0f MiB/s on the drive during this run; that can halve every figure. Stop them and measure again.\n", s.foreignMiBs)
	}
	for _, p := range s.peaks {
		fmt.Fprintf(&b, "%s\n", p)
	}
	if best, ok := s.best(); ok {
		fmt.Fprintf(&b, "%s\n", t.c.demand.words(best.rate))
	}
	if tries := s.tries(); tries != nil {
		fmt.Fprintf(&b, "a flat curve does not say how many lanes are enough for the engine: compare bmoe with %s\n", strings.Join(tries, ", "))
	}
	switch {
	case s.verdict != "":
		fmt.Fprintf(&b, "verdict: %s\n", s.verdict)
	case s.silence != "":
		fmt.Fprintf(&b, "no verdict: %s\n", s.silence)
	}
	return t.to.Text(b.String())
}

// String is the peak in words.
func (p peak) String() string {
	return fmt.Sprintf("peak %.0f MiB/s at %s  (%s KiB reads, %s)", p.rate, laneCount(p.lanes), exact(p.lengthKiB), p.engine)
}

func laneCount(n int) string { return units.Plural(int64(n), "lane") }

// jsonReport writes one object at the end.
type jsonReport struct {
	to     *cli.Output
	demand *demand
}

func (*jsonReport) begin() error                { return nil }
func (*jsonReport) measured(*measurement) error { return nil }

// Row is a row of the JSON object. Nil pointers become null: not measured.
type Row struct {
	Cell         string   `json:"cell"`
	Lanes        int      `json:"lanes"`
	SliceKiB     int64    `json:"slice_kb"` // as asked for
	ReadKiB      *float64 `json:"read_kb"`  // of one read, after --scatter and rounding
	Engine       string   `json:"engine"`
	MiBs         *float64 `json:"mib_s"`
	MiBsLeast    *float64 `json:"mib_s_min"`
	MiBsMost     *float64 `json:"mib_s_max"`
	OfDrive      *float64 `json:"of_drive"`
	MeanMs       *float64 `json:"mean_ms"`
	P50Ms        *float64 `json:"p50_ms"`
	P99Ms        *float64 `json:"p99_ms"`
	Reads        *int64   `json:"reads"`
	Repeats      int      `json:"repeats"`
	Mode         *string  `json:"mode"`
	Simulated    bool     `json:"simulated"`
	CPUMsPerGiB  *float64 `json:"cpu_ms_per_gib"`
	ForeignMiBs  *float64 `json:"foreign_mib_s"`
	FromDrivePct *float64 `json:"from_drive_pct"`
	InTurnPct    *float64 `json:"in_turn_pct"` // simulated host only: direct reads that were served one at a time
	Contended    bool     `json:"contended"`
	Notes        []string `json:"notes"`
}

// Peak is the best rate over lanes of one kind of read.
type Peak struct {
	MiBs    float64 `json:"mib_s"`
	Lanes   int     `json:"lanes"`
	ReadKiB float64 `json:"read_kb"`
	Engine  string  `json:"engine"`
}

// Demand says what the peak means for a model.
type Demand struct {
	Model    *string `json:"model"`
	TokenMiB float64 `json:"token_mib"` // of experts
	AtMost   []Speed `json:"at_most"`
}

// Speed is what the peak allows at a hit rate.
type Speed struct {
	HitPct int     `json:"hit_pct"`
	TPS    float64 `json:"tok_s"`
}

// Result is the JSON object.
type Result struct {
	Rows      []Row    `json:"rows"`
	Peak      *Peak    `json:"peak"`  // the best of peaks
	Peaks     []Peak   `json:"peaks"` // one per read size and engine
	Means     *Demand  `json:"means"` // null where no model is known
	Try       []string `json:"try"`   // settings of bmoe that are worth a comparison
	Verdict   *string  `json:"verdict"`
	Simulated bool     `json:"simulated"`
	Contended bool     `json:"contended"`
	Complete  bool     `json:"complete"` // false if the run was interrupted
}

// finite returns a pointer to v, or nil if v was not measured.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func (j *jsonReport) end(s *summary) error {
	text, err := json.MarshalIndent(s.result(j.demand), "", "  ")
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return j.to.Text(string(text) + "\n")
}

// result is the summary as a JSON object; asks may be nil.
func (s *summary) result(asks *demand) Result {
	result := Result{Rows: []Row{}, Peaks: []Peak{}, Try: []string{}, Simulated: s.simulated, Contended: s.contended, Complete: s.complete}
	for _, r := range s.rows {
		one := Row{
			Cell: r.cell.name(), Lanes: r.cell.lanes, SliceKiB: r.cell.sliceKiB, Engine: r.engine, MiBs: finite(r.rate), OfDrive: finite(r.ratio),
			MeanMs: finite(r.meanMs), P50Ms: finite(r.p50Ms), P99Ms: finite(r.p99Ms), Repeats: len(r.rates),
			Simulated: s.simulated, CPUMsPerGiB: finite(r.cpuMsPerGiB), ForeignMiBs: finite(r.foreignMiBs),
			FromDrivePct: finite(r.fromDrivePct), InTurnPct: finite(r.inTurnPct), Contended: r.contended, Notes: append([]string{}, r.notes...),
		}
		if r.unavailable == "" {
			mode := r.mode.String()
			least, most := extremes(r.rates)
			one.ReadKiB, one.Mode, one.Reads = &r.lengthKiB, &mode, &r.reads
			one.MiBsLeast, one.MiBsMost = &least, &most
		}
		result.Rows = append(result.Rows, one)
	}
	for _, p := range s.peaks {
		one := Peak{p.rate, p.lanes, p.lengthKiB, p.engine}
		result.Peaks = append(result.Peaks, one)
		if result.Peak == nil || p.rate > result.Peak.MiBs {
			result.Peak = &one
		}
	}
	if best, ok := s.best(); ok && asks != nil {
		d := &Demand{TokenMiB: units.InMiB(asks.bytes)}
		if asks.of != "" {
			d.Model = &asks.of
		}
		for _, h := range hitRates {
			d.AtMost = append(d.AtMost, Speed{h, asks.atMost(best.rate, h)})
		}
		result.Means = d
	}
	result.Try = append(result.Try, s.tries()...)
	if s.verdict != "" {
		result.Verdict = &s.verdict
	}
	return result
}
