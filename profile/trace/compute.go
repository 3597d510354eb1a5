package trace

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// ComputeRow is one step of a pass.
type ComputeRow struct {
	At
	Seq         int // number of the step in its pass, from 0
	Layer       int // -1 for what is of no layer
	Op          string
	Name        string // made of layer and op when it is written
	Wall        int64  // ns
	MajorFaults int64  // of the whole process meanwhile; -1: not measured
	Start       int64  // when the step began, ns by the clock of the program; -1: not recorded
	// Of each state the workers' time in the step divided by their number; -1: likewise.
	Compute, Mgmt, Stall, Other int64
}

const computeMark = "# compute_trace v1"

var computeColumns = []string{"turn", "phase", "step", "seq", "layer", "op", "name", "wall_ns", "majflt"}

// computeLater are those that came later.
var computeLater = []string{"start_ns", "compute_ns", "mgmt_ns", "stall_ns", "other_ns"}

// ComputeSink writes a row for every step of every pass: the file that ReadCompute
// reads.
type ComputeSink struct{ s *sink }

// CreateCompute makes the file; see CreateCSV.
func CreateCompute(ctx context.Context, path string, failed func(error)) (*ComputeSink, error) {
	s, err := create(ctx, "compute trace", path, failed)
	if err != nil {
		return nil, err
	}
	return &ComputeSink{s}, nil
}

// Begin writes the preamble.
func (w *ComputeSink) Begin(about []Pair) {
	w.s.head(computeMark, about, slices.Concat(computeColumns, computeLater))
}

// Row writes a step.
func (w *ComputeSink) Row(r *ComputeRow) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers(r.Turn, r.Phase, r.Step, r.Seq)
	s.known(r.Layer)
	s.text(",")
	s.text(r.Op)
	s.text(",")
	if r.Layer >= 0 {
		s.text("blk.")
		s.number(int64(r.Layer))
		s.text(".")
	}
	s.text(r.Op)
	s.text(",")
	s.number(r.Wall)
	s.text(",")
	s.known(int(r.MajorFaults))
	for _, v := range [...]int64{r.Start, r.Compute, r.Mgmt, r.Stall, r.Other} {
		s.text(",")
		s.known(int(v))
	}
	s.text("\n")
	if len(s.line) >= chunk {
		s.flush()
	}
}

// Flush writes what has been gathered.
func (w *ComputeSink) Flush() { w.s.flushNow() }

// Close ends the file.
func (w *ComputeSink) Close() error { return w.s.end() }

// ReadCompute reads a compute trace and tells of every row, which is valid during the
// call only. An error of tell ends it.
func ReadCompute(from io.Reader, tell func(*ComputeRow) error) error {
	c, err := openCells(from, "a compute trace", computeMark, computeColumns, computeLater)
	if err != nil {
		return err
	}
	var r ComputeRow
	var layer, faults, start, compute, mgmt, stall, other optional
	last, seq := before, -1
	return c.each([]any{&r.Turn, &r.Phase, &r.Step, &r.Seq, &layer, &r.Op, &r.Name, &r.Wall, &faults, &start, &compute, &mgmt, &stall, &other}, func() error {
		first, err := last.follows(r.Turn, r.Phase, r.Step)
		if err != nil {
			return err
		}
		if !first && r.Seq <= seq {
			return fmt.Errorf("seq %d comes after seq %d: twice, or out of order", r.Seq, seq)
		}
		seq = r.Seq
		r.Layer, r.MajorFaults, r.Start = int(layer), int64(faults), int64(start)
		r.Compute, r.Mgmt, r.Stall, r.Other = int64(compute), int64(mgmt), int64(stall), int64(other)
		return tell(&r)
	})
}
