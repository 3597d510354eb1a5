package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"bmoe/internal/cli"
	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/profile/trace"
	"bmoe/tui/term"
)

// comparison is what two files of token rows came to, held against each other.
type comparison struct {
	A        comparedFile   `json:"a"`
	B        comparedFile   `json:"b"`
	Config   []differs      `json:"config"`    // what is not the same in both
	SameText *bool          `json:"same_text"` // null: a run did not end, or the files have several texts
	Speed    speedChange    `json:"speed"`
	Metrics  []comparedMean `json:"metrics"`
}

// comparedFile is a side of a comparison.
type comparedFile struct {
	File    string `json:"file"`
	Runs    int    `json:"runs"`
	Tokens  int    `json:"tokens"`
	LeftOut int    `json:"left_out"` // runs that are too short to be compared

	runs []trace.TableRun
	// config are the values that each key of the preambles has in the file, in order
	// of appearance.
	config  map[string][]string
	spoiled string
	table   *trace.Table
}

// differs is a line of the preambles that is not the same in both files. A side that
// does not tell has null.
type differs struct {
	Name string  `json:"name"`
	A    *string `json:"a"`
	B    *string `json:"b"`
}

// speedChange is B's change of speed against A, in percent.
type speedChange struct {
	Words   string                 `json:"words"`
	LowPct  profile.Maybe[float64] `json:"low_pct"`
	HighPct profile.Maybe[float64] `json:"high_pct"`
	Tokens  int                    `json:"tokens"` // compared, of each run
}

// comparedMean is a figure a token in both files.
type comparedMean struct {
	Name string   `json:"name"`
	A    meanOver `json:"a"`
	B    meanOver `json:"b"`
}

// meanOver is a mean over tokens with its 95 % interval; null where a file does not
// have the figure.
type meanOver struct {
	Mean profile.Maybe[float64] `json:"mean"`
	Low  profile.Maybe[float64] `json:"low"`
	High profile.Maybe[float64] `json:"high"`
}

const (
	// compareLeast is how many tokens a run must have to be compared: two blocks.
	compareLeast = 2 * compareBlock
	// compareBlock is how many neighbouring tokens are redrawn together: they share
	// what the cache held.
	compareBlock = 8
)

// comparedColumns are the columns of token rows whose means are told, with what a
// value is divided by.
var comparedColumns = []struct {
	name, column string
	unit         float64
}{
	{"wall_ms", "wall_ms", 1}, {"compute_ms", "compute_ms", 1}, {"stall_ms", "stall_ms", 1}, {"mgmt_ms", "mgmt_ms", 1},
	{"other_ms", "other_ms", 1}, {"cpu_ms", "cpu_ms", 1}, {"read_mib", "read_bytes", units.MiB}, {"reads", "reads", 1},
	{"lookups", "lookups", 1}, {"hits", "hits", 1}, {"evictions", "evictions", 1}, {"rereads", "rereads", 1},
	{"majflt", "majflt", 1}, {"dropped", "dropped", 1}, {"substituted", "substituted", 1},
}

// spoiling are the flags of runs whose times are not their own.
var spoiling = []string{"contended", "disturbed_cpu", "throttled"}

// compare holds two files of token rows against each other: what was set otherwise,
// and what came of it.
func compare(o *options, out *cli.Output) error {
	a, err := readCompared(o.compare)
	if err != nil {
		return err
	}
	b, err := readCompared(o.compareWith)
	if err != nil {
		return err
	}
	c := compared(a, b)
	if o.json {
		return out.Line("", c)
	}
	return out.Text(c.text())
}

// readCompared reads a file of token rows.
func readCompared(path string) (*comparedFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	c, err := comparedSide(f)
	if err != nil {
		return nil, fmt.Errorf("compare: %s: %w", path, err)
	}
	c.File = path
	return c, nil
}

// comparedSide makes a side of a file of token rows.
func comparedSide(from io.Reader) (*comparedFile, error) {
	t, err := trace.ReadCSV(from)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.Columns, "wall_ms") {
		return nil, fmt.Errorf("the column wall_ms is missing")
	}
	c := &comparedFile{table: t, config: map[string][]string{}}
	note := func(pairs map[string]string) {
		for k, v := range pairs {
			if k != "run" && !slices.Contains(c.config[k], v) {
				c.config[k] = append(c.config[k], v)
			}
		}
	}
	note(t.Preamble)
	for _, r := range t.Runs {
		if len(r.Rows) < compareLeast {
			c.LeftOut++
			continue
		}
		c.runs = append(c.runs, r)
		c.Tokens += len(r.Rows)
		note(r.Settings)
		for flag := range strings.SplitSeq(r.Summary["flags"], "+") {
			if slices.Contains(spoiling, flag) {
				c.spoiled = fmt.Sprintf("run %d is marked %s", r.Run, flag)
			}
		}
	}
	c.Runs = len(c.runs)
	if c.Runs == 0 {
		return nil, fmt.Errorf("no run of %d decoded tokens or more", compareLeast)
	}
	return c, nil
}

// mixed names what was set in more than one way in a file: its runs are then not
// equal, and their mean is of nothing.
func (c *comparedFile) mixed() []string {
	var names []string
	for k, values := range c.config {
		if len(values) > 1 && k != "n_prompt" && k != "n_cached" && k != "mapping" {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// side is the file as stats.Claim takes it.
func (c *comparedFile) side(name string) stats.Side {
	s := stats.Side{Spoiled: c.spoiled}
	if names := c.mixed(); s.Spoiled == "" && len(names) > 0 {
		s.Spoiled = fmt.Sprintf("the runs of %s differ in %s", name, strings.Join(names, ", "))
	}
	for i := range c.runs {
		wall, _ := c.table.Column(&c.runs[i], "wall_ms")
		times := make([]float32, len(wall))
		for j, v := range wall {
			times[j] = float32(v)
		}
		s.Runs = append(s.Runs, times)
	}
	return s
}

// equal returns the speeds of runs with the same settings, prompt and text.
func (c *comparedFile) equal() [][]float64 {
	groups := map[string][]float64{}
	for i := range c.runs {
		r := &c.runs[i]
		text := r.Summary["text_sha256"]
		wall, _ := c.table.Column(r, "wall_ms")
		if mean := stats.Mean(wall); text != "" && mean > 0 {
			key := text + " " + r.Settings["n_prompt"] + " " + r.Settings["n_cached"]
			groups[key] = append(groups[key], 1/mean)
		}
	}
	keys := make([]string, 0, len(groups))
	for k := range groups {
		keys = append(keys, k)
	}
	slices.Sort(keys) // sums of floats depend on the order
	var out [][]float64
	for _, k := range keys {
		out = append(out, groups[k])
	}
	return out
}

// textOf is the fingerprint of the text of all runs; empty if it is not one, or not
// known.
func (c *comparedFile) textOf() string {
	text := c.runs[0].Summary["text_sha256"]
	for _, r := range c.runs {
		if r.Summary["text_sha256"] != text {
			return ""
		}
	}
	return text
}

// mean is a column's mean over all tokens, with its interval from redrawn blocks.
func (c *comparedFile) mean(column string, unit float64) (m meanOver) {
	var sums, all []float64
	for i := range c.runs {
		values, ok := c.table.Column(&c.runs[i], column)
		if !ok {
			return m
		}
		for block := range slices.Chunk(values, compareBlock) {
			if v := stats.Mean(block) / unit; !math.IsNaN(v) {
				sums = append(sums, v)
			}
		}
		for _, v := range values {
			if !math.IsNaN(v) {
				all = append(all, v/unit)
			}
		}
	}
	if len(sums) < 2 {
		return m
	}
	at := stats.Bootstrap{}.Interval(sums, stats.Mean)
	return meanOver{profile.Some(stats.Mean(all)), profile.Some(at.Low), profile.Some(at.High)}
}

// compared holds b against a.
func compared(a, b *comparedFile) *comparison {
	c := &comparison{A: *a, B: *b, Config: []differs{}}
	var names []string
	for _, config := range []map[string][]string{a.config, b.config} {
		for k := range config {
			if !slices.Contains(names, k) {
				names = append(names, k)
			}
		}
	}
	slices.Sort(names)
	for _, k := range names {
		was, is := joinedValues(a.config[k]), joinedValues(b.config[k])
		if was == nil || is == nil || *was != *is {
			c.Config = append(c.Config, differs{k, was, is})
		}
	}
	if was, is := a.textOf(), b.textOf(); was != "" && is != "" {
		same := was == is
		c.SameText = &same
	}
	d := stats.Claim(a.side("A"), b.side("B"), append(a.equal(), b.equal()...))
	c.Speed = speedChange{Words: d.String(), Tokens: d.Tokens}
	if d.Verdict != stats.NotComparable {
		c.Speed.LowPct, c.Speed.HighPct = profile.Some(100*d.Low), profile.Some(100*d.High)
	}
	for _, column := range comparedColumns {
		was, is := a.mean(column.column, column.unit), b.mean(column.column, column.unit)
		if was.Mean.OK || is.Mean.OK {
			c.Metrics = append(c.Metrics, comparedMean{column.name, was, is})
		}
	}
	return c
}

// joinedValues are the values of a key in a file; nil if there are none.
func joinedValues(values []string) *string {
	if len(values) == 0 {
		return nil
	}
	text := strings.Join(values, " and ")
	return &text
}

// text is the comparison in lines.
func (c *comparison) text() string {
	var b strings.Builder
	for _, side := range []struct {
		name string
		file *comparedFile
	}{{"A", &c.A}, {"B", &c.B}} {
		fmt.Fprintf(&b, "%s  %s: %s, %s", side.name, term.CleanLine(side.file.File), units.Plural(int64(side.file.Runs), "run"), units.Plural(int64(side.file.Tokens), "token"))
		if n := side.file.LeftOut; n > 0 {
			fmt.Fprintf(&b, "; left out: %s of fewer than %d tokens", units.Plural(int64(n), "run"), compareLeast)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	if len(c.Config) == 0 {
		b.WriteString("Everything was set the same.\n")
	} else {
		fmt.Fprintf(&b, "%-22s %24s %24s\n", "what differed", "A", "B")
	}
	for _, d := range c.Config {
		fmt.Fprintf(&b, "%-22s %24s %24s\n", term.CleanLine(d.Name), told(d.A), told(d.B))
	}
	fmt.Fprintf(&b, "\n%-22s %24s %24s\n", "a token", "A", "B")
	for _, m := range c.Metrics {
		fmt.Fprintf(&b, "%-22s %24s %24s\n", m.Name, m.A.text(), m.B.text())
	}
	fmt.Fprintf(&b, "\nB against A: %s\n", c.Speed.Words)
	switch {
	case c.SameText == nil:
		b.WriteString("Whether both gave the same text is not known.\n")
	case *c.SameText:
		b.WriteString("All runs gave the same text.\n")
	default:
		b.WriteString("The texts differ: part of the difference may be theirs.\n")
	}
	b.WriteString("Means over all tokens, with their 95 % intervals in brackets.\n")
	return b.String()
}

func told(v *string) string {
	if v == nil {
		return "n/a"
	}
	return term.CleanLine(*v)
}

func (m meanOver) text() string {
	text := m.Mean.Text(units.Fine, "")
	if m.Low.OK {
		text += " (" + units.Fine(m.Low.Value) + " to " + units.Fine(m.High.Value) + ")"
	}
	return text
}
