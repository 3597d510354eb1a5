package trace

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
)

// At is where in a session a row belongs.
type At struct {
	Turn, Phase int // Turn is the number of the run, from 0; phase 0 is the prompt, 1 the answer
	Step        int // position of the pass's first token
}

// IORow is one read of a window of an expert.
type IORow struct {
	At
	Layer, Expert, Projection, Lane int
	Guessed                         bool  // not demanded by then
	Offset                          int64 // in the file
	Requested, Read                 int64 // bytes: the window, and what arrived
	Latency                         int64 // ns inside the system call
	Start                           int64 // when that began, ns by the clock of the program; -1: not recorded
}

const ioMark = "# io_trace v1"

// ioColumns are the columns, with what a row has for them.
var ioColumns = []string{"turn", "phase", "step", "layer", "expert", "proj", "lane", "spec", "offset", "req_bytes", "read_bytes", "latency_ns"}

// ioLater are those that came later.
var ioLater = []string{"start_ns"}

// IOSink writes a row for every read: the file that ReadIO reads. Rows are gathered
// by lanes, which must not wait for a file, and written by Flush.
type IOSink struct {
	s *sink

	mu   sync.Mutex
	at   At
	rows sink // gathered; it has no file
}

// CreateIO makes the file; see CreateCSV.
func CreateIO(ctx context.Context, path string, failed func(error)) (*IOSink, error) {
	s, err := create(ctx, "I/O trace", path, failed)
	if err != nil {
		return nil, err
	}
	return &IOSink{s: s}, nil
}

// Begin writes the preamble.
func (w *IOSink) Begin(about []Pair) { w.s.head(ioMark, about, slices.Concat(ioColumns, ioLater)) }

// Pass says where the rows from now on belong.
func (w *IOSink) Pass(at At) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
}

// Row gathers a row; its At is that of the pass. It may be called by many at once.
func (w *IOSink) Row(r *IORow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.rows
	s.numbers(w.at.Turn, w.at.Phase, w.at.Step, r.Layer, r.Expert, r.Projection, r.Lane)
	s.text(bit(r.Guessed) + ",")
	for _, v := range []int64{r.Offset, r.Requested, r.Read} {
		s.number(v)
		s.text(",")
	}
	s.number(r.Latency)
	s.text(",")
	s.known(int(r.Start))
	s.text("\n")
}

// Flush writes what has been gathered.
func (w *IOSink) Flush() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.mu.Lock()
	w.s.line, w.rows.line = w.rows.line, w.s.line[:0]
	w.mu.Unlock()
	if len(w.s.line) > 0 {
		w.s.flush()
	}
}

// Close ends the file.
func (w *IOSink) Close() error {
	w.Flush()
	return w.s.end()
}

// ReadIO reads an I/O trace and tells of every row, which is valid during the call
// only. An error of tell ends it.
func ReadIO(from io.Reader, tell func(*IORow) error) error {
	c, err := openCells(from, "an I/O trace", ioMark, ioColumns, ioLater)
	if err != nil {
		return err
	}
	var r IORow
	var start optional
	last := before
	type read struct {
		layer, expert, projection, lane int
		offset, latency                 int64
	}
	seen := map[read]bool{} // in the pass
	return c.each([]any{&r.Turn, &r.Phase, &r.Step, &r.Layer, &r.Expert, &r.Projection, &r.Lane, &r.Guessed, &r.Offset, &r.Requested, &r.Read, &r.Latency, &start}, func() error {
		first, err := last.follows(r.Turn, r.Phase, r.Step)
		if err != nil {
			return err
		}
		if first {
			clear(seen)
		}
		one := read{r.Layer, r.Expert, r.Projection, r.Lane, r.Offset, r.Latency}
		if seen[one] {
			return fmt.Errorf("layer %d, expert %d, proj %d comes twice, to the nanosecond", r.Layer, r.Expert, r.Projection)
		}
		seen[one] = true
		r.Start = int64(start)
		return tell(&r)
	})
}
