package iobench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bmoe/flashio"
	"bmoe/internal/cli"
	"bmoe/internal/units"

	"github.com/spf13/pflag"
)

// options is the command line, checked as far as that goes without the file.
type options struct {
	model    string
	lanes    []int // ascending, no number twice
	sliceKiB []int64
	engines  []string // "lanes", "uring"
	duration time.Duration
	repeats  int
	seed     uint64
	table    bool
	csv      string
	json     bool
	simulate bool

	// What the rate is to be reckoned for: a model, or the MiB of experts that a
	// token takes. With neither it is the file itself, if it is a model.
	reckonFor string
	tokenMiB  float64

	// The variables of a row. In a table the load and the range are only sizes:
	// zero means the table's own.
	buffered   bool
	load       int
	rangeMiB   int64
	fresh      bool
	smallPages bool
	scatter    int
	noRound    bool
	mapping    mapWhen
	hardlink   bool
	reopen     bool
}

// mapWhen says which mapping of the file is alive while the lanes read, and when
// it was made.
type mapWhen string

const (
	mapNone        mapWhen = ""             // no mapping
	mapAfter       mapWhen = "after"        // made after the lanes were opened
	mapBefore      mapWhen = "before"       // made before them
	mapSectionOnly mapWhen = "section-only" // view unmapped, section kept
	mapViewOnly    mapWhen = "view-only"    // section closed, view kept
	mapOldHandle   mapWhen = "old-handle"   // nothing left of it, but the lanes were opened under it
)

var mapWhens = []mapWhen{mapAfter, mapBefore, mapSectionOnly, mapViewOnly, mapOldHandle}

const (
	defaultSliceKiB = 576 // a routed expert projection of Qwen3.6-35B-A3B-Q4_K_M
	maxSliceKiB     = units.GiB / units.KiB
	maxLoad         = 1024
	maxScatter      = 1024
	maxRepeats      = 1000
	maxSeconds      = 3600
	minSeconds      = 0.05
)

// raw is what the flags write into.
type raw struct {
	model, mmapWhen, simulateHost, csv string
	reckonFor                          string
	lanes, slices, engines             []string
	seconds                            float64
	repeats, load, scatter             int
	rangeMiB                           int64
	seed                               uint64
	buffered, fresh, mmap, hardlink    bool
	smallPages                         bool
	reopen, noRound, table, json       bool
}

func flags(r *raw) *pflag.FlagSet {
	f := pflag.NewFlagSet("bmoe-iobench", pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {} // the caller prints
	f.StringVarP(&r.model, "model", "m", "", "the file to read from (any file of some size; the first shard of a split model)")
	f.StringSliceVar(&r.lanes, "lanes", nil, "numbers of reads in flight to measure, 1 to "+strconv.Itoa(flashio.MaxLanes)+" (default 1,2,4,8; with --table 1,4)")
	f.StringSliceVar(&r.slices, "slice-kb", nil, "sizes of one read in KiB, rounded up to the device's block (default "+strconv.Itoa(defaultSliceKiB)+")")
	f.Float64Var(&r.seconds, "seconds", 0, "time measured per row and repeat (default 3; with --table 0.5)")
	f.IntVar(&r.repeats, "repeats", 0, "how often each row is measured, rows interleaved; medians are shown (default 1; with --table 5)")
	f.StringSliceVar(&r.engines, "io-engine", []string{"lanes"}, "lanes (blocking reads) or uring (Linux io_uring), or both")
	f.BoolVar(&r.buffered, "buffered", false, "read through the page cache")
	f.IntVar(&r.load, "compute-load", 0, "threads that keep the CPU busy meanwhile (with --table the size of that row; default all processors)")
	f.Int64Var(&r.rangeMiB, "range-mb", 0, "keep offsets within N MiB in the middle of the file (with --table the size of that row; default 440)")
	f.BoolVar(&r.fresh, "fresh", false, "commit the destination's pages afresh before every read")
	f.BoolVar(&r.smallPages, "small-pages", false, "read into pages of the normal size, not into huge ones (Linux)")
	f.IntVar(&r.scatter, "scatter", 1, "N reads at independent offsets in place of one of the same total size")
	f.BoolVar(&r.noRound, "no-round", false, "do not round reads to multiples of 64 KiB where the host's rule is to (Windows)")
	f.BoolVar(&r.mmap, "mmap", false, "hold a read-only mapping of the file open; nothing is read through it")
	f.StringVar(&r.mmapWhen, "mmap-when", "", "after|before the lanes are opened, section-only, view-only, or old-handle: released, but the lanes opened under it (default after)")
	f.BoolVar(&r.hardlink, "via-hardlink", false, "with --mmap: read through a hard link, made beside the file, while the file itself is mapped")
	f.BoolVar(&r.reopen, "reopen-lanes", false, "with --mmap: drop the mapping and reopen the lanes before reading, as --release-mmap does")
	f.BoolVar(&r.table, "table", false, "the whole table: every variable, rows interleaved and repeated, and a verdict")
	f.StringVar(&r.simulateHost, "simulate-host", "", "ntfs: a simulated host that serialises reads of a mapped file; labelled SIMULATED")
	f.Uint64Var(&r.seed, "seed", 1, "seed of the offsets; lane L walks the same ones whatever the number of lanes")
	f.StringVar(&r.reckonFor, "for", "", "a model (GGUF) or MIB, the experts that a token takes: say what the peak allows it (default: the file, if it is a model)")
	f.StringVar(&r.csv, "csv", "", "also write every measurement to this file")
	f.BoolVar(&r.json, "json", false, "print one JSON object and nothing else")
	return f
}

// Usage is the text of --help.
func Usage() string {
	return "What the drive gives, one variable a row.\n\n" +
		"  bmoe-iobench --model PATH [flags]          sweep lanes and read sizes\n" +
		"  bmoe-iobench --model PATH --table          every variable, and whether a mapping costs this host\n\n" +
		"MiB/s counts the aligned windows that were served. Exit codes: " + cli.ExitCodes + "\n\n" +
		flags(&raw{}).FlagUsagesWrapped(110)
}

// parse reads the command line.
func parse(args []string) (*options, error) {
	var r raw
	f := flags(&r)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() == 1 && r.model == "":
		r.model = f.Arg(0)
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if r.model == "" {
		return nil, fmt.Errorf("--model is missing: which file is to be read?")
	}
	o := &options{
		model: r.model, repeats: r.repeats, seed: r.seed, table: r.table, csv: r.csv, json: r.json,
		buffered: r.buffered, load: r.load, rangeMiB: r.rangeMiB, fresh: r.fresh, smallPages: r.smallPages, scatter: r.scatter,
		noRound: r.noRound, hardlink: r.hardlink, reopen: r.reopen,
	}
	for _, check := range []func(*raw, *pflag.FlagSet) error{o.setSizes, o.setTimes, o.setMapping, o.setTable, o.setDemand} {
		if err := check(&r, f); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// numbers parses a comma-separated flag, refuses what lies outside least..most,
// and drops repetitions.
func numbers(flag string, words []string, least, most int64) ([]int64, error) {
	var out []int64
	for _, w := range words {
		n, err := strconv.ParseInt(strings.TrimSpace(w), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: not a whole number", flag, w)
		}
		if n < least || n > most {
			return nil, fmt.Errorf("--%s %d: %d to %d are possible", flag, n, least, most)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// setSizes takes what is counted: lanes, read sizes, load, range, scatter.
func (o *options) setSizes(r *raw, f *pflag.FlagSet) error {
	if !f.Changed("lanes") {
		r.lanes = []string{"1", "2", "4", "8"}
		if r.table {
			r.lanes = []string{"1", "4"}
		}
	}
	lanes, err := numbers("lanes", r.lanes, 1, flashio.MaxLanes)
	if err != nil {
		return err
	}
	for _, n := range lanes {
		o.lanes = append(o.lanes, int(n))
	}
	slices.Sort(o.lanes)
	if !f.Changed("slice-kb") {
		r.slices = []string{strconv.Itoa(defaultSliceKiB)}
	}
	if o.sliceKiB, err = numbers("slice-kb", r.slices, 1, maxSliceKiB); err != nil {
		return err
	}
	if len(o.lanes) == 0 || len(o.sliceKiB) == 0 {
		return fmt.Errorf("--lanes and --slice-kb need a number each")
	}
	for _, e := range r.engines {
		if e != "lanes" && e != "uring" {
			return fmt.Errorf("--io-engine %q: lanes and uring are known", e)
		}
		if !slices.Contains(o.engines, e) {
			o.engines = append(o.engines, e)
		}
	}
	if len(o.engines) == 0 {
		return fmt.Errorf("--io-engine needs a name: lanes or uring")
	}
	for _, n := range []struct {
		flag        string
		value       int64
		least, most int64
	}{
		{"compute-load", int64(r.load), 0, maxLoad},
		{"scatter", int64(r.scatter), 1, maxScatter},
		{"range-mb", r.rangeMiB, 1, math.MaxInt64 / units.MiB},
	} {
		if f.Changed(n.flag) && (n.value < n.least || n.value > n.most) {
			return fmt.Errorf("--%s %d: %d to %d are possible", n.flag, n.value, n.least, n.most)
		}
	}
	switch r.simulateHost {
	case "":
	case "ntfs":
		o.simulate = true
	default:
		return fmt.Errorf("--simulate-host %q: only ntfs is known", r.simulateHost)
	}
	return nil
}

func (o *options) setTimes(r *raw, f *pflag.FlagSet) error {
	if !f.Changed("seconds") {
		r.seconds = 3
		if r.table {
			r.seconds = 0.5
		}
	}
	if !(r.seconds >= minSeconds && r.seconds <= maxSeconds) {
		return fmt.Errorf("--seconds %v: %v to %v are possible", r.seconds, minSeconds, maxSeconds)
	}
	o.duration = time.Duration(r.seconds * float64(time.Second))
	if !f.Changed("repeats") {
		o.repeats = 1
		if r.table {
			o.repeats = 5
		}
	}
	if o.repeats < 1 || o.repeats > maxRepeats {
		return fmt.Errorf("--repeats %d: 1 to %d are possible", o.repeats, maxRepeats)
	}
	return nil
}

func (o *options) setMapping(r *raw, f *pflag.FlagSet) error {
	switch when := mapWhen(r.mmapWhen); {
	case f.Changed("mmap-when"):
		if !slices.Contains(mapWhens, when) {
			return fmt.Errorf("--mmap-when %q: after, before, section-only, view-only and old-handle are known", r.mmapWhen)
		}
		o.mapping = when
	case r.mmap:
		o.mapping = mapAfter
	}
	switch {
	case o.reopen && o.mapping == mapNone:
		return fmt.Errorf("--reopen-lanes goes with --mmap: without a mapping there is nothing to drop")
	case o.reopen && o.mapping != mapAfter && o.mapping != mapBefore:
		return fmt.Errorf("--reopen-lanes drops the whole mapping: it goes with --mmap-when after or before, not %s", o.mapping)
	case o.hardlink && o.mapping == mapNone:
		return fmt.Errorf("--via-hardlink goes with --mmap: it reads through a link while the file itself is mapped")
	}
	return nil
}

// setTable refuses flags that would set a variable which the table varies itself.
func (o *options) setTable(_ *raw, f *pflag.FlagSet) error {
	if !o.table {
		return nil
	}
	for _, name := range []string{"buffered", "fresh", "small-pages", "scatter", "no-round", "mmap", "mmap-when", "via-hardlink", "reopen-lanes"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s does not go with --table, which has a row for it", name)
		}
	}
	if len(o.sliceKiB) > 1 {
		return fmt.Errorf("--table takes one --slice-kb, not %d", len(o.sliceKiB))
	}
	return nil
}
