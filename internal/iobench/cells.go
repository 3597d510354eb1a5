package iobench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"bmoe/flashio"
	"bmoe/internal/cli"
	"bmoe/internal/host"
	"bmoe/internal/units"
)

// subject is the file that is read, and what the system says of it.
type subject struct {
	path  string
	name  string // base name: results carry no paths
	size  int64
	align int

	memory host.Memory
}

// inspect asks about the file.
func inspect(o *options) (*subject, error) {
	set, err := flashio.OpenFiles([]string{o.model}, flashio.FileOptions{})
	if err != nil {
		return nil, err
	}
	return &subject{path: o.model, name: filepath.Base(o.model), size: set.Size(), align: set.Align(), memory: host.ReadMemory()}, nil
}

// is says whether path names the subject.
func (s *subject) is(path string) bool {
	own, err := os.Stat(s.path)
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(own, other)
}

// cell is one row of the result: what is alike in all its repeats.
type cell struct {
	variable string // the flags that make it, "" for the bare drive
	lanes    int
	sliceKiB int64 // as asked for, before rounding
	engine   string

	buffered   bool
	load       int   // threads
	rangeMiB   int64 // 0 for the whole file
	fresh      bool
	smallPages bool
	scatter    int
	noRound    bool
	mapping    mapWhen
	hardlink   bool
	reopen     bool
}

// name is the row's label.
func (c *cell) name() string {
	if c.variable == "" {
		return "nothing (the drive)"
	}
	return c.variable
}

// label writes the flags that set this cell's variables, so that a row can be
// repeated by pasting its name.
func (c *cell) label() string {
	var words []string
	add := func(set bool, format string, args ...any) {
		if set {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(c.rangeMiB > 0, "--range-mb %d", c.rangeMiB)
	add(c.load > 0, "--compute-load %d", c.load)
	add(c.fresh, "--fresh")
	add(c.smallPages, "--small-pages")
	add(c.scatter > 1, "--scatter %d", c.scatter)
	add(c.noRound, "--slice-kb %d --no-round", c.sliceKiB)
	add(c.buffered, "--buffered")
	add(c.mapping != mapNone, "--mmap")
	add(c.mapping != mapAfter && c.mapping != mapNone, "--mmap-when %s", c.mapping)
	add(c.hardlink, "--via-hardlink")
	add(c.reopen, "--reopen-lanes")
	return strings.Join(words, " ")
}

// plan lists the cells that the options ask for, in the order of the result.
func plan(o *options, s *subject) ([]*cell, error) {
	var cells []*cell
	if o.table {
		cells = tableCells(o, s)
	} else {
		cells = sweepCells(o)
	}
	for _, c := range cells {
		c.variable = c.label()
		if err := c.check(s); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// sweepCells crosses engines, read sizes and lanes under one set of variables.
func sweepCells(o *options) []*cell {
	var cells []*cell
	for _, engine := range o.engines {
		for _, kib := range o.sliceKiB {
			for _, lanes := range o.lanes {
				cells = append(cells, &cell{
					lanes: lanes, sliceKiB: kib, engine: engine,
					buffered: o.buffered, load: o.load, rangeMiB: o.rangeMiB, fresh: o.fresh, smallPages: o.smallPages, scatter: o.scatter,
					noRound: o.noRound, mapping: o.mapping, hardlink: o.hardlink, reopen: o.reopen,
				})
			}
		}
	}
	return cells
}

// tableRangeMiB is the size of the region in the first such table: one layer's
// experts lie about so close together.
const tableRangeMiB = 440

// tableCells is the whole table (docs/windows.md): each variable alone against the bare drive,
// at the largest number of lanes, and at the smallest too where that tells
// something.
func tableCells(o *options, s *subject) []*cell {
	few, many := o.lanes[0], o.lanes[len(o.lanes)-1]
	kib := o.sliceKiB[0]
	load, rangeMiB := o.load, o.rangeMiB
	if load == 0 {
		load = runtime.NumCPU()
	}
	if rangeMiB == 0 {
		// In a small file a smaller region, or the row would not differ.
		rangeMiB = max(min(tableRangeMiB, units.MiBDown(s.size)/4), 1)
	}
	var cells []*cell
	for _, engine := range o.engines {
		add := func(c cell, lanes ...int) {
			for _, n := range lanes {
				one := c
				one.lanes, one.engine, one.scatter = n, engine, max(c.scatter, 1)
				if one.sliceKiB == 0 {
					one.sliceKiB = kib
				}
				cells = append(cells, &one)
			}
		}
		ends := []int{few, many}
		if few == many {
			ends = ends[:1]
		}
		add(cell{}, o.lanes...)
		add(cell{rangeMiB: rangeMiB}, ends...)
		add(cell{load: load}, many)
		add(cell{fresh: true}, ends...)
		add(cell{smallPages: true}, ends...)
		add(cell{scatter: 3}, many)
		// The largest size below the read's own that is no multiple of 64 KiB.
		if odd := oddSlice(kib, s.align); odd > 0 {
			add(cell{sliceKiB: odd, noRound: true}, many)
		}
		add(cell{mapping: mapAfter}, ends...)
		add(cell{mapping: mapBefore}, many)
		add(cell{mapping: mapAfter, hardlink: true}, many)
		add(cell{mapping: mapSectionOnly}, many)
		add(cell{mapping: mapViewOnly}, many)
		add(cell{mapping: mapOldHandle}, many)
		add(cell{mapping: mapAfter, reopen: true}, many)
		add(cell{buffered: true}, many)
		add(cell{buffered: true, mapping: mapAfter}, many)
	}
	return cells
}

// oddSlice returns a size in KiB a little below kib that is a multiple of the
// block but not of 64 KiB, or 0 if there is none.
func oddSlice(kib int64, align int) int64 {
	block := max(int64(align)>>10, 1)
	for odd := kib - block; odd > 0; odd -= block {
		if odd%block == 0 && odd%64 != 0 {
			return odd
		}
	}
	return 0
}

// check refuses a cell that the file cannot serve.
func (c *cell) check(s *subject) error {
	window := c.pieceBytes(s.align)
	if s.size < window {
		return fmt.Errorf("%s has %d bytes, one read of --slice-kb %d takes %d: use a larger file or a smaller read", s.path, s.size, c.sliceKiB, window)
	}
	if m := s.memory; m.Has.All(host.HasAvailable) && int64(c.lanes)*window > m.Available/2 {
		return fmt.Errorf("%s of %d KiB take more than half of the %d MiB of memory that are free: use fewer or smaller reads",
			laneCount(c.lanes), window/units.KiB, units.MiBDown(m.Available))
	}
	if c.rangeMiB > 0 {
		switch {
		case units.FromMiB(c.rangeMiB) > s.size:
			return cli.Usagef("--range-mb %d: %s has only %d MiB", c.rangeMiB, s.path, units.MiBDown(s.size))
		case units.FromMiB(c.rangeMiB) < window:
			return cli.Usagef("--range-mb %d: one read takes %d bytes", c.rangeMiB, window)
		}
	}
	return nil
}

// pieceBytes is the length of one read: the slice, or its part under --scatter,
// rounded up to the block.
func (c *cell) pieceBytes(align int) int64 {
	pieces := int64(max(c.scatter, 1))
	a := int64(align)
	return (c.sliceKiB<<10/pieces + a - 1) / a * a
}
