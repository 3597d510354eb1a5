package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/profile/trace"
)

// sinks are the files that runs are written down in, as they go.
type sinks struct {
	csv *trace.CSV // nil: not asked for
}

// createSinks makes the files that the command line names, before a model is opened
// for nothing. told hears of one that could not be written to its end.
func (o *options) createSinks(ctx context.Context, told func(error)) (*sinks, error) {
	s := &sinks{}
	if o.csv != "" {
		var err error
		if s.csv, err = trace.CreateCSV(ctx, o.csv, told); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// observe has a session's runs written down.
func (s *sinks) observe(e *engine.Session) {
	if s.csv == nil {
		return
	}
	var live profile.Snapshot
	e.Snapshot(&live)
	m := &live.Model
	s.csv.Begin([]trace.Pair{
		{Key: "engine", Value: versionText()}, {Key: "model", Value: m.Name}, {Key: "arch", Value: m.Arch},
		{Key: "n_layer", Value: strconv.Itoa(m.Layers)}, {Key: "n_expert", Value: strconv.Itoa(m.Experts)}, {Key: "n_expert_used", Value: strconv.Itoa(m.ExpertsUsed)},
		{Key: "compute", Value: "measured"}, {Key: "simulated", Value: bit(live.Simulated)},
	}, func() []trace.Pair { return settingPairs(e) })
	e.Observe(s.csv)
}

// close ends the files.
func (s *sinks) close() error {
	if s.csv == nil {
		return nil
	}
	return s.csv.Close()
}

// settingPairs are the settings in force as a preamble has them: by their flags,
// with underscores, switches as 0 and 1.
func settingPairs(t backend.Tunable) []trace.Pair {
	var out []trace.Pair
	for _, r := range t.Settings() {
		if r.Kind == backend.Text || r.Flag == "" {
			continue // paths are nobody else's business
		}
		v := r.Value
		if r.Kind == backend.Switch {
			v = bit(v == backend.On)
		}
		out = append(out, trace.Pair{Key: strings.ReplaceAll(r.Flag, "-", "_"), Value: v})
	}
	return out
}

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// joined closes what was opened for a command and keeps the error that came first.
func (s *sinks) joined(err error) error {
	if cerr := s.close(); cerr != nil {
		return errors.Join(err, cerr)
	}
	return err
}
