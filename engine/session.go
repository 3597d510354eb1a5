// Package engine composes the parts into a Session: an open model that
// generates, is reconfigured between runs, and tells what each run cost.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/engine/gguf"
	"bmoe/engine/kernel"
	"bmoe/engine/model"
	"bmoe/flashio"
	"bmoe/profile"
)

// UsageError is a setting that cannot work, as opposed to a file that cannot
// be used or a device that fails.
type UsageError struct{ msg string }

func (e *UsageError) Error() string { return e.msg }

func usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Session is an open model. Only Snapshot and History may be called at the same time as
// another method, from any goroutine.
type Session struct {
	cfg      Config
	warnings []string
	text     *Text

	file     *gguf.File
	files    *flashio.Files
	arch     model.Arch
	shape    policy.Shape // of its experts, as the files are read
	registry *model.Registry
	compute  *model.Compute
	state    model.State

	dense       *flashio.Arena // nil unless the dense policy is anon
	mappings    []*flashio.Mapping
	reader      flashio.Reader
	mostLanes   int              // see MostLanes
	mostThreads int              // see MostThreads
	engineNote  string           // why the reader is not what was asked for
	streamer    *expert.Streamer // nil with --moe-stream=false
	rows        *expert.ReadRows // nil unless the model has tables that it gathers from
	aheadBefore expert.Ahead     // what had been read ahead when the run began

	thrift thrift
	forced *forcedRoute // nil unless routes come from a trace

	conversation chat.Conversation
	dropped      int     // turns of the conversation that no longer fitted
	ids          []int32 // what the state has seen
	last         *beginning
	ran          int       // runs so far
	logits       []float32 // [vocab]
	idsRoom      []int32   // of the answer in progress, kept from run to run
	textRoom     []byte

	meter     meter
	observers []profile.Observer
	pass      pass
	tracing   *tracing // nil: nothing is written down of passes

	asking atomic.Pointer[context.Context] // whose end lanes look at; nil between runs
	notify func(string)                    // nil: nobody wants to hear
	hung   hung
	letGo  time.Duration // see the constant of that name; tests have less patience

	closing sync.Once
	closed  error
}

// beginning is where a run started from, so that it can be repeated.
type beginning struct {
	request      backend.Request
	conversation chat.Conversation // before the user's message
	dropped      int               // turns that it had lost by then
	held         int               // positions that the state held before
	base         int               // positions of the state that were kept
	thinking     *bool
}

// A session is all that a face may ask for.
var (
	_ backend.Backend    = (*Session)(nil)
	_ backend.Tunable    = (*Session)(nil)
	_ backend.History    = (*Session)(nil)
	_ backend.Scorer     = (*Session)(nil)
	_ backend.Keeper     = (*Session)(nil)
	_ backend.Residency  = (*Session)(nil)
	_ backend.Observable = (*Session)(nil)
)

// Observe adds somebody who hears of every run from now on. It is called between
// runs.
func (s *Session) Observe(o profile.Observer) { s.observers = append(s.observers, o) }

// Watch has an observer told of forward passes from now on. It is called between runs.
func (s *Session) Watch(o *model.Observer) { s.compute.Watch(o) }

// Info tells what is open.
func (s *Session) Info() backend.Info {
	t := s.text.Template
	return backend.Info{Model: s.modelName(), Arch: s.arch.Info().Arch, Thinking: t == nil || t.Thinks() || !t.Reasons()}
}

// Config returns the configuration in force, automatic values resolved.
func (s *Session) Config() Config { return s.cfg }

// Warnings returns what opening had to say, a line each.
func (s *Session) Warnings() []string { return s.warnings }

// Snapshot copies out all that a screen may know. It may be called at any time
// from any goroutine.
func (s *Session) Snapshot(dst *profile.Snapshot) { s.meter.rec.Snapshot(dst) }

// History copies the records of decoded tokens, see profile.Recorder.History. It
// may be called at any time from any goroutine.
func (s *Session) History(from int64, dst []profile.Record) int {
	return s.meter.rec.History(from, dst)
}

// Chain tells what a decoded token missed, see profile.Recorder.Chain. It may be
// called at any time from any goroutine.
func (s *Session) Chain(record int64, dst []profile.Miss) (int, bool) {
	return s.meter.rec.Chain(record, dst)
}

// Experts tells where the experts are and what the layers cost. It may be called at any
// time from any goroutine.
func (s *Session) Experts(dst *profile.ExpertMap) {
	if s.streamer == nil {
		dst.Reset(s.arch.Info().Layers, 0)
	} else {
		s.streamer.Experts(dst)
	}
	s.meter.costs.read(dst)
	dst.NoStall = s.streamer == nil
}

// NewChat forgets the conversation; the expert cache stays as it is.
func (s *Session) NewChat() {
	s.conversation, s.dropped = chat.Conversation{}, 0
	s.last = nil
	s.meter.rec.Update(func(live *profile.Snapshot) { live.DroppedTurns, live.CtxUsed = 0, 0 })
}

// Close stops the workers and hands everything back. A second call does
// nothing.
func (s *Session) Close() error {
	s.closing.Do(func() {
		var errs []error
		closeIf := func(c interface{ Close() error }, there bool) {
			if there {
				errs = append(errs, c.Close())
			}
		}
		if s.compute != nil {
			s.compute.Pool.Close()
		}
		if s.streamer != nil && s.reader != nil {
			s.streamer.Recall()
		}
		closeIf(s.reader, s.reader != nil)
		closeIf(s.streamer, s.streamer != nil)
		closeIf(s.rows, s.rows != nil)
		closeIf(s.state, s.state != nil)
		closeIf(s.dense, s.dense != nil)
		errs = append(errs, unmapAll(s.mappings), s.meter.close())
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

func unmapAll(ms []*flashio.Mapping) error {
	var errs []error
	for _, m := range ms {
		errs = append(errs, m.Unmap())
	}
	return errors.Join(errs...)
}

// shards returns the views of all shards, or nil if they are not mapped.
func (s *Session) shards() [][]byte {
	var views [][]byte
	for _, m := range s.mappings {
		views = append(views, m.Data)
	}
	return views
}

// numerics parses the setting of that name.
func numerics(name string) (kernel.Numerics, error) {
	switch name {
	case "fast":
		return kernel.Fast, nil
	case "exact":
		return kernel.Exact, nil
	}
	return 0, fmt.Errorf("unknown numerics %q", name)
}
