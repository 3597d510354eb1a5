package ab

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
)

// figure is a line of an experiment's table.
type figure struct {
	name, unit string // name is the column in CSV and the key in JSON too
	of         func(*profile.Result) profile.Maybe[float64]
	text       func(float64) string
}

// figures are all that is told of a variant, in the order of the table.
var figures = []figure{
	{"decode_tps", "tokens/s", DecodeTPS, units.Fine},
	{"s_per_token", "s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Wall }, seconds},
	{"compute_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute }, seconds},
	{"mgmt_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt }, seconds},
	{"stall_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall }, seconds},
	{"other_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other }, seconds},
	{"ceiling_tps", "tokens/s", func(r *profile.Result) profile.Maybe[float64] { return r.CeilingTPS }, units.Fine},
	{"read_p50_ms", "ms", func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 }, units.Fine},
	{"read_p99_ms", "ms", func(r *profile.Result) profile.Maybe[float64] { return r.IO.P99 }, units.Fine},
	{"read_mib_per_token", "MiB", func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken }, units.Fine},
	{"hit_pct", "%", func(r *profile.Result) profile.Maybe[float64] { return r.Cache.HitPct }, units.Percent},
	{"evictions", "", func(r *profile.Result) profile.Maybe[float64] { return profile.In(r.Cache.Evictions, 1) }, units.Fixed(0)},
	{"rereads", "", func(r *profile.Result) profile.Maybe[float64] { return profile.In(r.Cache.Rereads, 1) }, units.Fixed(0)},
	{"cpu_s_per_token", "s", func(r *profile.Result) profile.Maybe[float64] { return r.Process.CPUPerToken }, seconds},
	{"majflt_per_token", "", func(r *profile.Result) profile.Maybe[float64] { return r.Process.MajFltPerToken }, units.Fine},
	{"prefill_tps", "tokens/s", func(r *profile.Result) profile.Maybe[float64] { return r.PrefillTPS }, units.Fine},
	{"ttft_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.TTFT }, seconds},
}

// load is told of experiments whose every run opens a session.
var load = figure{"load_s", "s", func(r *profile.Result) profile.Maybe[float64] { return r.Load }, seconds}

func seconds(v float64) string { return units.Decimals(v, 4) }

// Summary is what came of a variant. Not measured is null.
type Summary struct {
	Name    string             `json:"name"`
	Values  map[string]string  `json:"settings"`
	Cells   int                `json:"cells"` // that count
	Figures map[string]*Median `json:"figures"`
	// Against the first variant; null for itself.
	Change *Change `json:"change"`
	// What the losses of a variant that has some cost; null: it has none, or they are
	// not known.
	Price *Price `json:"price"`
}

// Median is a figure over the cells of a variant that count.
type Median struct {
	Value profile.Maybe[float64] `json:"median"`
	Low   profile.Maybe[float64] `json:"low"` // 95 % interval, by bootstrap; null for fewer than three cells
	High  profile.Maybe[float64] `json:"high"`
}

// Change is a variant's change of speed against the first.
type Change struct {
	Verdict string                 `json:"verdict"`
	Low     profile.Maybe[float64] `json:"low"` // share of the first one's speed
	High    profile.Maybe[float64] `json:"high"`
	Pairs   int                    `json:"pairs"`
}

// Report is an experiment in figures.
type Report struct {
	Variants []Summary `json:"variants"`
	Rounds   int       `json:"rounds"`
	Excluded int       `json:"excluded"` // cells that something disturbed
	Ended    string    `json:"ended"`
	SameText bool      `json:"same_text"`
	Config   any       `json:"config"` // of the warm-up, whole
	Build    string    `json:"build"`
	Flags    []string  `json:"flags"` // of all cells that count

	figures []figure
}

// Report sums an experiment up. The build is the program's own name for itself.
func (x *Experiment) Report(live bool, build string) *Report {
	r := &Report{Rounds: x.Rounds, Excluded: x.Excluded(), Ended: x.Ended, SameText: x.SameText(), Build: build, figures: figures, Flags: []string{}}
	if !live {
		r.figures = append(append([]figure{}, figures...), load)
	}
	for i := range x.Cells {
		c := &x.Cells[i]
		if r.Config == nil {
			r.Config = c.Run.Result.Config
		}
		for _, f := range c.Run.Result.Flags {
			if c.Excluded == "" && !strings.Contains(" "+strings.Join(r.Flags, " ")+" ", " "+f+" ") {
				r.Flags = append(r.Flags, f)
			}
		}
	}
	for v, variant := range x.Variants {
		s := Summary{Name: variant.Name, Values: variant.Values, Figures: map[string]*Median{}}
		for _, f := range r.figures {
			var values []float64
			s.Cells = 0
			for i := range x.Cells {
				if c := &x.Cells[i]; c.Variant == v && c.Excluded == "" {
					s.Cells++
					if got := f.of(&c.Run.Result); got.OK {
						values = append(values, got.Value)
					}
				}
			}
			s.Figures[f.name] = median(values)
		}
		if v > 0 {
			d, _ := x.Difference(v)
			base, _ := x.pairs(v)
			s.Change = &Change{Verdict: x.verdict(v, d), Pairs: len(base)}
			if d.Verdict != stats.NotComparable {
				s.Change.Low, s.Change.High = profile.Some(d.Low), profile.Some(d.High)
			}
		}
		if v < len(x.Prices) {
			s.Price = x.Prices[v]
		}
		r.Variants = append(r.Variants, s)
	}
	return r
}

// leastBootstrap is of how many values an interval is told.
const leastBootstrap = 3

func median(values []float64) *Median {
	m := &Median{}
	if len(values) == 0 {
		return m
	}
	m.Value = profile.Some(stats.Median(values))
	if len(values) >= leastBootstrap {
		at := stats.Bootstrap{}.Interval(values, stats.Median)
		m.Low, m.High = profile.Some(at.Low), profile.Some(at.High)
	}
	return m
}

// Markdown writes the report as tables: a column a variant.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, rule := []string{""}, []string{"---"}
	for _, v := range r.Variants {
		head, rule = append(head, v.Name), append(rule, "---:")
	}
	row(head...)
	row(rule...)
	cells := []string{"runs that count"}
	for _, v := range r.Variants {
		cells = append(cells, strconv.Itoa(v.Cells))
	}
	row(cells...)
	for _, f := range r.figures {
		cells := []string{strings.TrimSuffix(f.name+", "+f.unit, ", ")}
		for _, v := range r.Variants {
			m := v.Figures[f.name]
			text := m.Value.Text(f.text, "")
			if m.Low.OK && f.text(m.Low.Value) != f.text(m.High.Value) {
				text += " (" + f.text(m.Low.Value) + " to " + f.text(m.High.Value) + ")"
			}
			cells = append(cells, text)
		}
		row(cells...)
	}
	cells = []string{"change of speed"}
	for _, v := range r.Variants {
		if v.Change == nil {
			cells = append(cells, "base")
			continue
		}
		cells = append(cells, fmt.Sprintf("%s (%s)", v.Change.Verdict, units.Plural(int64(v.Change.Pairs), "pair")))
	}
	row(cells...)
	if slices.ContainsFunc(r.Variants, func(s Summary) bool { return s.Price != nil }) {
		cells = []string{"price"}
		for _, v := range r.Variants {
			text := ""
			if v.Price != nil {
				text = v.Price.String()
			}
			cells = append(cells, text)
		}
		row(cells...)
	}
	text := "All runs gave the same text."
	if !r.SameText {
		text = "The runs did NOT all give the same text."
	}
	fmt.Fprintf(&b, "\nMedians, with the 95 %% interval of the median in brackets. %s %s disturbed and left out. %s; %s.\n",
		text, isOrAre(r.Excluded, "run"), capital(r.Ended), r.Build)
	if len(r.Flags) > 0 {
		fmt.Fprintf(&b, "Flags: %s.\n", strings.ToUpper(strings.Join(r.Flags, ", ")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func isOrAre(n int, one string) string {
	if n == 1 {
		return "1 " + one + " was"
	}
	return fmt.Sprintf("%d %ss were", n, one)
}

func capital(s string) string {
	if s == "" {
		return "Stopped early"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// CSV writes every cell, the warm-up and the excluded ones too: a row a run. What
// was not measured is empty.
func (x *Experiment) CSV(w io.Writer, live bool) error {
	all := figures
	if !live {
		all = append(append([]figure{}, figures...), load)
	}
	out := csv.NewWriter(w)
	head := []string{"cell", "round", "variant", "excluded"}
	for _, f := range all {
		head = append(head, f.name)
	}
	if err := out.Write(append(head, "text_sha256", "flags")); err != nil {
		return err
	}
	for i := range x.Cells {
		c := &x.Cells[i]
		row := []string{strconv.Itoa(i), strconv.Itoa(c.Round), x.Variants[c.Variant].Name, c.Excluded}
		for _, f := range all {
			cell := ""
			if v := f.of(&c.Run.Result); v.OK {
				cell = strconv.FormatFloat(v.Value, 'g', 8, 64)
			}
			row = append(row, cell)
		}
		if err := out.Write(append(row, c.Run.Result.TextSHA256, strings.Join(c.Run.Result.Flags, " "))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
