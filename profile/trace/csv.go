package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
)

// csvMark is how a file of token rows begins.
const csvMark = "# bmoe_metrics v2"

// CSV writes a row for each decoded token: a profile.Observer. The preamble says what
// is open and how; every run adds a line with its settings, and one with its sums.
type CSV struct {
	s        *sink
	settings func() []Pair

	run           int
	lookups, hits int64 // of the run
	budget        profile.Maybe[float64]
	dense         profile.Maybe[float64]
	rss, anon     profile.Maybe[float64]
}

// csvColumn is a column, with what fills it.
type csvColumn struct {
	name string
	fill func(c *CSV, r *profile.Record)
}

// csvColumns are all of them.
var csvColumns = []csvColumn{
	{"step", func(c *CSV, r *profile.Record) { c.s.number(int64(r.Step)) }},
	{"steps", func(c *CSV, r *profile.Record) { c.s.number(int64(r.Steps)) }},
	{"wall_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.Wall)) }},
	{"io_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.IO)) }},
	{"compute_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.Compute)) }},
	{"read_bytes", func(c *CSV, r *profile.Record) { c.s.number(r.ExpertBytes) }},
	{"cache_hit_pct", func(c *CSV, r *profile.Record) { c.s.maybe(profile.Ratio(100*float64(c.hits), float64(c.lookups))) }},
	{"stall_ms", func(c *CSV, r *profile.Record) { c.s.maybe(profile.In(r.Stall, units.Millisecond)) }},
	{"mgmt_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.Mgmt)) }},
	{"majflt", func(c *CSV, r *profile.Record) {
		if r.MajorFaults.OK {
			c.s.number(r.MajorFaults.Value)
		}
	}},
	{"cpu_ms", func(c *CSV, r *profile.Record) { c.s.maybe(profile.In(r.CPU, units.Millisecond)) }},
	{"dense_resident_frac", func(c *CSV, r *profile.Record) { c.s.maybe(c.dense) }},
	{"turn", func(c *CSV, r *profile.Record) { c.s.number(int64(max(r.Turn-1, 0))) }},
	{"cache_budget_mib", func(c *CSV, r *profile.Record) { c.s.maybe(c.budget) }},
	{"rss_mib", func(c *CSV, r *profile.Record) { c.s.maybe(c.rss) }},
	{"rss_anon_mib", func(c *CSV, r *profile.Record) { c.s.maybe(c.anon) }},
	{"run", func(c *CSV, r *profile.Record) { c.s.number(int64(r.Run)) }},
	{"token_id", func(c *CSV, r *profile.Record) { c.s.number(int64(r.Token)) }},
	{"window_bytes", func(c *CSV, r *profile.Record) { c.s.number(r.WindowBytes) }},
	{"reads", func(c *CSV, r *profile.Record) { c.s.number(r.Reads) }},
	{"lookups", func(c *CSV, r *profile.Record) { c.s.number(r.Lookups) }},
	{"hits", func(c *CSV, r *profile.Record) { c.s.number(r.Hits) }},
	{"evictions", func(c *CSV, r *profile.Record) { c.s.number(r.Evictions) }},
	{"rereads", func(c *CSV, r *profile.Record) { c.s.number(r.Rereads) }},
	{"other_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.Other)) }},
	{"stall_union_ms", func(c *CSV, r *profile.Record) { c.s.maybe(profile.In(r.StallUnion, units.Millisecond)) }},
	{"mgmt_serial_ms", func(c *CSV, r *profile.Record) { c.s.float(units.InMs(r.MgmtSerial)) }},
	{"dropped", func(c *CSV, r *profile.Record) { c.s.number(r.Dropped) }},
	{"substituted", func(c *CSV, r *profile.Record) { c.s.number(r.Substituted) }},
}

// CreateCSV makes the file; Begin comes next. failed hears of the write that ended
// the file early. A pipe that nobody reads yet is waited for until ctx ends.
func CreateCSV(ctx context.Context, path string, failed func(error)) (*CSV, error) {
	s, err := create(ctx, "csv", path, failed)
	if err != nil {
		return nil, err
	}
	return &CSV{s: s}, nil
}

// Begin writes the preamble: what does not change while a model is open. settings
// tells, at every run's beginning, what is in force.
func (c *CSV) Begin(fixed []Pair, settings func() []Pair) {
	s := c.s
	c.settings = settings
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text(csvMark + "\n")
	s.pairs("", fixed)
	for i, column := range csvColumns {
		if i > 0 {
			s.text(",")
		}
		s.text(column.name)
	}
	s.text("\n")
	s.flush()
}

// Began implements profile.Observer.
func (c *CSV) Began(s *profile.Start, live *profile.Snapshot) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.run, c.lookups, c.hits = s.Run, 0, 0
	c.dense = live.Mapping.DenseResident
	c.budget = profile.Maybe[float64]{Value: units.InMiB(live.Cache.Budget), OK: live.Cache.Streaming}
	c.rss, c.anon = profile.In(live.Process.RSS, units.MiB), profile.In(live.Process.RSSAnon, units.MiB)
	c.s.pairs(" run="+strconv.Itoa(s.Run), append(c.settings(),
		Pair{"n_prompt", strconv.Itoa(s.Prompt)}, Pair{"n_cached", strconv.Itoa(s.Base)}, Pair{"mapping", string(live.Mapping.State)}))
	c.s.flush()
}

// Token implements profile.Observer.
func (c *CSV) Token(r *profile.Record) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.lookups += r.Lookups
	c.hits += r.Hits
	for i, column := range csvColumns {
		if i > 0 {
			c.s.text(",")
		}
		column.fill(c, r)
	}
	c.s.text("\n")
	c.s.flush()
}

// Ended implements profile.Observer.
func (c *CSV) Ended(r *profile.Result) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	list := []Pair{{"run", strconv.Itoa(c.run)}, {"tokens", strconv.Itoa(r.NGen)}}
	for _, f := range []struct {
		key   string
		value profile.Maybe[float64]
	}{
		{"s/tok", r.PerToken.Wall}, {"tok/s", r.DecodeTPS}, {"read_MiB/tok", r.ReadMiBPerToken}, {"compute_s/tok", r.PerToken.Compute},
		{"stall_s/tok", r.PerToken.Stall}, {"mgmt_s/tok", r.PerToken.Mgmt}, {"other_s/tok", r.PerToken.Other},
		{"cache_hit_pct", r.Cache.HitPct}, {"load_s", r.Load}, {"prefill_s", r.TTFT}, {"prefill_tps", r.PrefillTPS},
		{"cpu_s/tok", r.Process.CPUPerToken}, {"majflt/tok", r.Process.MajFltPerToken}, {"token_demand_MiB", r.Cache.TokenCycleMiB},
	} {
		if f.value.OK {
			list = append(list, Pair{f.key, strconv.FormatFloat(f.value.Value, 'g', 6, 64)})
		}
	}
	list = append(list, Pair{"stop", r.StopReason}, Pair{"flags", strings.Join(r.Flags, "+")}, Pair{"text_sha256", r.TextSHA256})
	c.s.pairs(" summary", list)
	c.s.flush()
}

// Close ends the file.
func (c *CSV) Close() error { return c.s.end() }

// Table is a file of token rows that was read back.
type Table struct {
	Preamble map[string]string // of the file
	Runs     []TableRun
	Columns  []string
}

// TableRun is the rows of a run. Without a run column all rows are one run.
type TableRun struct {
	Run      int
	Settings map[string]string // of its own line; nil where the file has none
	Summary  map[string]string // nil where the run did not end
	Rows     [][]float64       // [rows x columns]; NaN: not measured
}

// maxCSVLine bounds a line, and mostRows what a table holds: it is read whole.
const (
	maxCSVLine = 1 << 16
	mostRows   = 1 << 20
)

// ReadCSV reads a file of token rows, by the names of its columns: more of them and
// fewer are fine. A last row that was cut off, as a killed program leaves it, is left
// out. An error names the line.
func ReadCSV(from io.Reader) (*Table, error) {
	p := csvParser{table: &Table{Preamble: map[string]string{}}, step: -1, runColumn: -1}
	in := lines{in: bufio.NewReaderSize(from, maxCSVLine)}
	for {
		line, err := in.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = p.line(string(line), in.cut)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", in.n, err)
		}
	}
	if p.table.Columns == nil {
		return nil, errors.New("it ends before the line that names the columns")
	}
	return p.table, nil
}

type csvParser struct {
	table           *Table
	began           bool
	step, runColumn int // columns
	last            float64
	rows            int
}

func (p *csvParser) line(s string, cut bool) error {
	switch {
	case !p.began:
		if !strings.HasPrefix(s, "# bmoe_metrics v") {
			return fmt.Errorf("not a file of token rows: it should begin with %s", csvMark)
		}
		p.began = true
	case s == "":
	case strings.HasPrefix(s, "#"):
		return p.comment(strings.HasPrefix(s[1:], " summary"), keyValues(s))
	case p.table.Columns == nil:
		return p.header(strings.Split(s, ","))
	default:
		cells := strings.Split(s, ",")
		if cut { // its last number may lack digits
			return nil
		}
		return p.row(cells)
	}
	return nil
}

// comment reads a line of keys and values: of the file, of a run's beginning, or of
// its end.
func (p *csvParser) comment(summary bool, pairs map[string]string) error {
	t := p.table
	switch {
	case summary && len(t.Runs) > 0:
		t.Runs[len(t.Runs)-1].Summary = pairs
	case summary:
	case pairs["run"] != "":
		n, err := strconv.Atoi(pairs["run"])
		if err != nil {
			return fmt.Errorf("run is %q", pairs["run"])
		}
		t.Runs = append(t.Runs, TableRun{Run: n, Settings: pairs})
		p.last = math.Inf(-1)
	default:
		for k, v := range pairs {
			t.Preamble[k] = v
		}
	}
	return nil
}

func (p *csvParser) header(names []string) error {
	if p.step = slices.Index(names, "step"); p.step < 0 {
		return errors.New("the column step is missing")
	}
	if err := once(names); err != nil {
		return err
	}
	p.runColumn = slices.Index(names, "run")
	p.table.Columns = names
	return nil
}

func (p *csvParser) row(cells []string) error {
	t := p.table
	if len(cells) != len(t.Columns) {
		return fmt.Errorf("%d cells in a row of %d columns", len(cells), len(t.Columns))
	}
	row := make([]float64, len(cells))
	for i, cell := range cells {
		if row[i] = math.NaN(); cell != "" {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
				if !slices.ContainsFunc(csvColumns, func(c csvColumn) bool { return c.name == t.Columns[i] }) {
					continue // of somebody else, who may write what he likes
				}
				return fmt.Errorf("%s is %q, not a number", t.Columns[i], cell)
			}
			row[i] = v
		}
	}
	if p.rows++; p.rows > mostRows {
		return fmt.Errorf("more than %d rows", mostRows)
	}
	run := 0
	if p.runColumn >= 0 {
		run = int(row[p.runColumn])
	}
	if len(t.Runs) == 0 || p.runColumn >= 0 && t.Runs[len(t.Runs)-1].Run != run {
		t.Runs = append(t.Runs, TableRun{Run: run})
		p.last = math.Inf(-1)
	}
	// Without a column for it, a new run is a step that does not rise.
	if step := row[p.step]; step <= p.last {
		if p.runColumn >= 0 {
			return fmt.Errorf("run %d: step %v comes after step %v", run, step, p.last)
		}
		t.Runs = append(t.Runs, TableRun{Run: len(t.Runs)})
	}
	p.last = row[p.step]
	at := &t.Runs[len(t.Runs)-1]
	at.Rows = append(at.Rows, row)
	return nil
}

// Column returns a run's values of a column; false if the file has none such.
func (t *Table) Column(run *TableRun, name string) ([]float64, bool) {
	i := slices.Index(t.Columns, name)
	if i < 0 {
		return nil, false
	}
	out := make([]float64, len(run.Rows))
	for j, row := range run.Rows {
		out[j] = row[i]
	}
	return out, true
}
