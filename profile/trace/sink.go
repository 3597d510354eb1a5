// Package trace writes down what runs did, and reads it back: each format's writer
// and reader side by side. The formats are BigMoeOnEdge's (its docs/telemetry.md),
// with columns of ours appended; readers find columns by name.
package trace

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"bmoe/internal/crash"
	"bmoe/profile"
)

// sink is a file that rows are added to, each with one write, so that it is whole
// up to the last row whatever ends the program. A write that fails ends the sink and
// not the run: whoever made the sink is told once.
type sink struct {
	mu     sync.Mutex
	what   string
	w      io.WriteCloser
	line   []byte
	failed func(error)
}

// create makes a sink of a file, or a pipe. An old file of the name is replaced. A
// pipe that nobody reads yet is waited for until ctx ends.
func create(ctx context.Context, what, path string, failed func(error)) (*sink, error) {
	var f *os.File
	var err error
	done := make(chan struct{})
	go func() {
		defer crash.Catch(what)
		defer close(done)
		// For writing alone: who could read the pipe too would be its own reader, never
		// wait for another, and never hear that the other left.
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-done:
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return &sink{what: what, w: f, failed: failed}, nil
}

// flush writes what has been gathered. The lock is held.
func (s *sink) flush() {
	if s.w == nil {
		s.line = s.line[:0]
		return
	}
	_, err := s.w.Write(s.line)
	s.line = s.line[:0]
	if err != nil {
		s.w.Close() // the write's error is the one that matters
		s.w = nil
		s.failed(fmt.Errorf("%s: %w: nothing more is written to it", s.what, err))
	}
}

// close ends the sink. The lock is held.
func (s *sink) close() error {
	if s.w == nil {
		return nil
	}
	err := s.w.Close()
	s.w = nil
	if err != nil {
		return fmt.Errorf("%s: %w", s.what, err)
	}
	return nil
}

// flushNow is flush for who does not hold the lock.
func (s *sink) flushNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		s.flush()
	}
}

// end is close for who does not hold the lock.
func (s *sink) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) > 0 {
		s.flush()
	}
	return s.close()
}

// head writes how a file begins: its mark, keys and values, and its columns.
func (s *sink) head(mark string, about []Pair, columns []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text(mark + "\n")
	s.pairs("", about)
	s.text(strings.Join(columns, ",") + "\n")
	s.flush()
}

// Pair is a key and its value in a preamble. Neither holds a space.
type Pair struct{ Key, Value string }

// pairs adds a line of keys and values.
func (s *sink) pairs(head string, list []Pair) {
	s.text("#" + head)
	for _, p := range list {
		s.text(" " + p.Key + "=" + noSpace.Replace(p.Value))
	}
	s.text("\n")
}

// noSpace keeps a value one word.
var noSpace = strings.NewReplacer(" ", "_", "\t", "_", "\n", "_", "\r", "_")

func (s *sink) text(v string)   { s.line = append(s.line, v...) }
func (s *sink) number(v int64)  { s.line = strconv.AppendInt(s.line, v, 10) }
func (s *sink) float(v float64) { s.line = strconv.AppendFloat(s.line, v, 'f', 3, 64) }

// numbers adds cells, each with the comma behind it.
func (s *sink) numbers(vs ...int) {
	for _, v := range vs {
		s.number(int64(v))
		s.text(",")
	}
}

// known adds a number, or nothing where it is below 0.
func (s *sink) known(v int) {
	if v >= 0 {
		s.number(int64(v))
	}
}

// maybe writes a figure, or nothing where it was not measured.
func (s *sink) maybe(v profile.Maybe[float64]) {
	if v.OK {
		s.float(v.Value)
	}
}
