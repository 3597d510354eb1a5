package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/profile/trace"
)

// sinks are the files that runs are written down in, as they go.
type sinks struct {
	csv    *trace.CSV // nil: not asked for
	traces engine.Traces
	open   []io.Closer
}

// createSinks makes the files that the command line names, before a model is opened
// for nothing. told hears of one that could not be written to its end.
func (o *options) createSinks(ctx context.Context, told func(error)) (*sinks, error) {
	s := &sinks{}
	err := errors.Join(
		createSink(s, &s.csv, o.csv, ctx, told, trace.CreateCSV),
		createSink(s, &s.traces.Route, o.routeTrace, ctx, told, trace.CreateRoute),
		createSink(s, &s.traces.IO, o.ioTrace, ctx, told, trace.CreateIO),
		createSink(s, &s.traces.Compute, o.computeTrace, ctx, told, trace.CreateCompute),
	)
	if err != nil {
		return nil, s.joined(err)
	}
	return s, nil
}

// createSink makes one of the files, if it has a name.
func createSink[T io.Closer](s *sinks, dst *T, path string, ctx context.Context, told func(error), create func(context.Context, string, func(error)) (T, error)) error {
	if path == "" {
		return nil
	}
	f, err := create(ctx, path, told)
	if err != nil {
		return err
	}
	*dst = f
	s.open = append(s.open, f)
	return nil
}

// traceable is an engine whose passes can be written down in detail.
type traceable interface{ Trace(engine.Traces) }

// observe has the runs of a backend written down, as far as it can be looked into.
func (s *sinks) observe(b backend.Backend) {
	if t, ok := b.(traceable); ok {
		t.Trace(s.traces)
	}
	o, ok := b.(backend.Observable)
	if s.csv == nil || !ok {
		return
	}
	var live profile.Snapshot
	b.Snapshot(&live)
	m := &live.Model
	s.csv.Begin([]trace.Pair{
		{Key: "engine", Value: versionText()}, {Key: "model", Value: m.Name}, {Key: "arch", Value: m.Arch},
		{Key: "n_layer", Value: strconv.Itoa(m.Layers)}, {Key: "n_expert", Value: strconv.Itoa(m.Experts)}, {Key: "n_expert_used", Value: strconv.Itoa(m.ExpertsUsed)},
		{Key: "compute", Value: "measured"}, {Key: "simulated", Value: bit(live.Simulated)}, {Key: "traced", Value: bit(live.Traced)},
	}, func() []trace.Pair { return engine.SettingPairs(b) })
	o.Observe(s.csv)
}

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// joined closes the files and keeps the error that came first.
func (s *sinks) joined(err error) error {
	for _, f := range s.open {
		err = errors.Join(err, f.Close())
	}
	return err
}
