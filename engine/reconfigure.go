package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bmoe/engine/backend"
	"bmoe/flashio"
	"bmoe/profile"
)

// Reconfigure changes settings between generations and says what became of
// each wish.
func (s *Session) Reconfigure(c Change) []backend.Outcome {
	var out []backend.Outcome
	add := func(knob string, o backend.Outcome, err error) {
		o.Setting = knob
		if err != nil {
			// The session goes on with what it has; a generation will say if that
			// is not enough.
			o.Verdict, o.Reason = backend.Declined, strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		out = append(out, o)
	}
	if c.Overlap != nil {
		add("overlap", s.setOverlap(*c.Overlap), nil)
	}
	if c.Lanes != nil {
		o, err := s.setLanes(*c.Lanes)
		add("lanes", o, err)
	}
	if c.CacheMiB != nil {
		o, err := s.setCache(mib(*c.CacheMiB))
		add("cache", o, err)
	}
	if c.ReleaseMmap != nil {
		o, err := s.setRelease(*c.ReleaseMmap)
		add("release-mmap", o, err)
	}
	s.meter.reconfigured(s)
	return out
}

const notStreaming = "nothing is streamed with --moe-stream=false"

func (s *Session) setOverlap(on bool) backend.Outcome {
	if s.streamer == nil {
		return backend.Outcome{Verdict: backend.Ignored, Value: "off", Reason: notStreaming}
	}
	s.cfg.Overlap = on
	s.streamer.SetOverlap(on)
	return backend.Outcome{Verdict: backend.Applied, Value: onOff(on)}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// setLanes opens another number of lanes. Old ones are closed first: an old
// handle could keep a mapping's effect alive.
func (s *Session) setLanes(n int) (backend.Outcome, error) {
	now := backend.Outcome{Verdict: backend.Declined, Value: fmt.Sprint(s.cfg.Lanes)}
	switch {
	case s.streamer == nil:
		return backend.Outcome{Verdict: backend.Ignored, Value: now.Value, Reason: notStreaming}, nil
	case n < 1 || n > flashio.MaxLanes:
		now.Reason = fmt.Sprintf("%d lanes: want 1 to %d", n, flashio.MaxLanes)
		return now, nil
	}
	old := s.cfg.Lanes
	s.cfg.Lanes = n
	if err := s.reopen(func() error { return nil }); err != nil {
		s.cfg.Lanes = old
		if again := s.reopen(func() error { return nil }); again != nil {
			err = fmt.Errorf("%w; and with %d lanes as before: %w", err, old, again)
		}
		return now, err
	}
	return backend.Outcome{Verdict: backend.Applied, Value: fmt.Sprint(n)}, nil
}

// reopen closes every lane, does something, and opens new lanes.
func (s *Session) reopen(between func() error) error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
		s.reader = nil
	}
	errs = append(errs, between(), s.openReader())
	if s.streamer != nil {
		s.streamer.SetReader(s.reader)
	}
	return errors.Join(errs...)
}

// setCache changes the budget; entries that fit stay.
func (s *Session) setCache(budget int64) (backend.Outcome, error) {
	if s.streamer == nil {
		return backend.Outcome{Verdict: backend.Ignored, Value: "none", Reason: notStreaming}, nil
	}
	now := backend.Outcome{Verdict: backend.Declined, Value: fmt.Sprint(s.cfg.Cache.MiB(), " MiB")}
	budget = min(budget, wholeMiB(s.shape.Total()))
	if err := s.checkBudget(budget); err != nil {
		now.Reason = strings.TrimPrefix(err.Error(), "--cache-mb: ")
		return now, nil
	}
	if err := s.streamer.Resize(budget); err != nil {
		return now, err
	}
	s.cfg.Cache = Budget{Bytes: budget}
	return backend.Outcome{Verdict: backend.Applied, Value: fmt.Sprint(s.cfg.Cache.MiB(), " MiB"), Reason: s.budgetWarning(budget)}, nil
}

// maxNamed is how many weights a declined release names.
const maxNamed = 3

// observeMapping asks the OS which weights lie inside a mapping of the model's
// files, and notes the answer for the screen.
func (s *Session) observeMapping() (names []string, err error) {
	var ptrs []uintptr
	var owner []string
	for _, w := range s.registry.Weights {
		if p := w.Pointer(); p != 0 {
			ptrs, owner = append(ptrs, p), append(owner, w.Name)
		}
	}
	inside, err := flashio.InsideMapping(s.files, ptrs)
	for _, i := range inside {
		names = append(names, owner[i])
	}
	s.meter.rec.Update(func(live *profile.Snapshot) {
		m := &live.Mapping
		m.WeightsChecked, m.WeightsInside, m.Inside = profile.Maybe[int64]{}, profile.Maybe[int64]{}, ""
		if err == nil {
			m.WeightsChecked, m.WeightsInside = profile.Some(int64(len(ptrs))), profile.Some(int64(len(names)))
			m.Inside = someNames(names)
		}
	})
	return names, err
}

// someNames lists the first few of the names. Weights over one range, as a tied
// head, share a name.
func someNames(names []string) string {
	var distinct []string
	for _, n := range names {
		if slices.Contains(distinct, n) {
			continue
		}
		if len(distinct) == maxNamed {
			return strings.Join(distinct, ", ") + ", ..."
		}
		distinct = append(distinct, n)
	}
	return strings.Join(distinct, ", ")
}

// setRelease hands the mapping back, or maps the file again.
func (s *Session) setRelease(on bool) (backend.Outcome, error) {
	if !on {
		return s.restoreMapping()
	}
	if len(s.mappings) == 0 {
		return backend.Outcome{Verdict: backend.Applied, Value: "on", Reason: "already released"}, nil
	}
	names, err := s.observeMapping()
	if err != nil {
		return s.declineRelease(fmt.Sprintf("the system cannot say which weights lie inside the mapping: %v", err)), nil
	}
	if n := len(names); n > 0 {
		return s.declineRelease(fmt.Sprintf("%d weights still lie inside the mapping (%s)", n, someNames(names))), nil
	}
	s.compute.Pool.Park() // no worker runs while the views go
	// Closing lanes comes first and opening them last: on the host where this
	// matters, a handle opened under the mapping stays slow (docs/windows.md).
	err = s.reopen(func() error {
		err := unmapAll(s.mappings)
		s.mappings = nil
		return err
	})
	// Even where no lane could be opened, the file is no longer mapped.
	s.cfg.ReleaseMmap = true
	s.setMapping(profile.MappingReleased, "", err == nil)
	if err == nil {
		_, err = s.observeMapping()
	}
	return backend.Outcome{Verdict: backend.Applied, Value: "on"}, err
}

func (s *Session) declineRelease(reason string) backend.Outcome {
	s.cfg.ReleaseMmap = false
	s.setMapping(profile.MappingDeclined, reason, false)
	return backend.Outcome{Verdict: backend.Declined, Value: "off", Reason: reason}
}

// restoreMapping maps the file again, as at load, and opens the lanes anew
// under it.
func (s *Session) restoreMapping() (backend.Outcome, error) {
	if len(s.mappings) > 0 {
		s.cfg.ReleaseMmap = false
		s.setMapping(profile.MappingMapped, "", false)
		return backend.Outcome{Verdict: backend.Applied, Value: "off", Reason: "the file is mapped"}, nil
	}
	err := s.reopen(func() error {
		err := s.openMapping(context.Background(), nil)
		if err != nil { // some of the shards are not a mapping of the model
			err = errors.Join(err, unmapAll(s.mappings))
			s.mappings = nil
		}
		return err
	})
	if len(s.mappings) == 0 {
		return backend.Outcome{Value: "on"}, err
	}
	s.cfg.ReleaseMmap = false
	s.setMapping(profile.MappingMapped, "", false)
	if err == nil {
		_, err = s.observeMapping()
	}
	return backend.Outcome{Verdict: backend.Applied, Value: "off"}, err
}

func (s *Session) setMapping(state profile.MappingState, reason string, reopened bool) {
	s.meter.rec.Update(func(live *profile.Snapshot) {
		live.Mapping.State, live.Mapping.Reason, live.Mapping.LanesReopened = state, reason, reopened
	})
}
