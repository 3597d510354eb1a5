package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/units"
	"bmoe/profile"
)

// Settings returns every setting with the value in force.
func (s *Session) Settings() []backend.Setting {
	rows := settings.rows(&s.cfg)
	if r := backend.Find(rows, "no-think"); s.cfg.NoThink && !s.Info().Thinking {
		r.Idle = "the model's chat template opens the reasoning whatever it is asked"
	}
	return rows
}

// Step returns the value dir steps from another one. It reads nothing that
// changes once the model is open.
func (s *Session) Step(name, from string, dir int) string {
	r := settings.find(name)
	if r == nil {
		return from
	}
	if r.step != nil {
		return r.step(s, from, dir)
	}
	switch row := r.row(); row.Kind {
	case backend.Switch:
		if dir%2 != 0 {
			return backend.OnOff(from != backend.On)
		}
	case backend.Word:
		if at := slices.Index(row.Words, from); at >= 0 {
			return row.Words[min(max(at+dir, 0), len(row.Words)-1)]
		}
	}
	return from
}

// Apply changes settings between generations, in the order of the table, and
// says what became of each wish.
func (s *Session) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	for i := range settings {
		if wish, ok := wishes[settings[i].Name]; ok {
			out = append(out, s.applyOne(&settings[i], wish))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		if settings.find(name) == nil {
			out = append(out, backend.Outcome{Setting: name, Verdict: backend.Declined, Reason: "there is no such setting"})
		}
	}
	s.meter.reconfigured(s)
	return out
}

func (s *Session) applyOne(r *setting, wish string) backend.Outcome {
	o := backend.Outcome{Setting: r.Name}
	row := backend.Find(s.Settings(), r.Name)
	var refused *backend.SettingError
	switch err := row.Check(wish); {
	case r.apply == nil:
		o.Verdict, o.Reason = backend.Declined, "it is fixed once the model is open: start with {"+r.Name+"="+wish+"}"
	case errors.As(err, &refused):
		o.Verdict, o.Reason = backend.Declined, refused.Value+": "+refused.Problem
	case row.Idle != "":
		o.Verdict, o.Reason = backend.Ignored, row.Idle
	default:
		wanted := s.cfg
		if err = r.put(&wanted, wish); err == nil {
			o.Verdict, o.Reason, err = r.apply(s, wanted)
		}
		if err != nil {
			// The session goes on with what it has; a generation will say if that
			// is not enough.
			o.Verdict, o.Reason = backend.Declined, strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if o.Verdict == backend.Applied {
			s.cfg.setOrigin(r.Name, backend.FromKey)
		}
	}
	o.Value = backend.Find(s.Settings(), r.Name).Shown()
	return o
}

// foresee puts into effect which experts are guessed. Without overlap nothing is read
// while anything is computed, where the cache holds all experts there is nothing to
// guess, and under a forced route no guess means anything.
func (s *Session) foresee() {
	var f expert.Foresight
	prompts := s.cfg.Overlap && s.shape.Reserve(s.slotBudget(s.cfg.Cache)) > 0
	if prompts && s.forced == nil {
		f = s.cfg.Foresight
	}
	s.compute.Ahead = nil
	if f[expert.ByRouters] > 0 {
		s.compute.Ahead = s.streamer
	}
	s.streamer.SetForesight(f, prompts)
}

func (s *Session) applyForesight(c Config) (backend.Verdict, string, error) {
	s.cfg.Foresight = c.Foresight
	s.foresee()
	return backend.Applied, "", nil
}

// applyPolicy changes which experts are given up; those that are there stay.
func (s *Session) applyPolicy(c Config) (backend.Verdict, string, error) {
	p, err := policy.New(c.CachePolicy, s.shape)
	if err != nil {
		return backend.Declined, "", err
	}
	s.cfg.CachePolicy = c.CachePolicy
	s.streamer.SetPolicy(p)
	return backend.Applied, s.budgetWarning(s.cfg.Cache.Bytes), nil
}

func (s *Session) applyOverlap(c Config) (backend.Verdict, string, error) {
	s.cfg.Overlap = c.Overlap
	s.streamer.SetOverlap(c.Overlap)
	s.foresee()
	return backend.Applied, "", nil
}

// laneSteps are the numbers of lanes that keys walk.
var laneSteps = []int{1, 2, 4, 8}

// stepLanes returns a number of lanes dir steps away.
func (s *Session) stepLanes(from string, dir int) string {
	n, err := strconv.Atoi(from)
	if err != nil {
		return from
	}
	for ; dir > 0; dir-- {
		if at := slices.IndexFunc(laneSteps, func(step int) bool { return step > n }); at >= 0 {
			n = laneSteps[at]
		}
	}
	for ; dir < 0; dir++ {
		for _, step := range slices.Backward(laneSteps) {
			if step < n {
				n = step
				break
			}
		}
	}
	return strconv.Itoa(n)
}

// MostLanes returns how many lanes there may be between now and Close. It is fixed
// at open, because each lane needs a processor of the Go runtime's, whose number
// should not change while the engine is at work.
func (s *Session) MostLanes() int { return s.mostLanes }

// applyLanes opens another number of lanes. Old ones are closed first: an old
// handle could keep a mapping's effect alive.
func (s *Session) applyLanes(c Config) (backend.Verdict, string, error) {
	if c.Lanes > s.mostLanes {
		return backend.Declined, fmt.Sprintf("%d are the most that were provided for when the model was opened; ask for more at the start", s.mostLanes), nil
	}
	old := s.cfg.Lanes
	s.cfg.Lanes = c.Lanes
	if err := s.reopen(nil); err != nil {
		s.cfg.Lanes = old
		if again := s.reopen(nil); again != nil {
			err = fmt.Errorf("%w; and with %d lanes as before: %w", err, old, again)
		}
		return backend.Declined, "", err
	}
	return backend.Applied, "", nil
}

// reopen closes every lane, does something if it is asked to, and opens new lanes.
func (s *Session) reopen(between func() error) error {
	o := flashio.LaneOptions{Lanes: s.cfg.Lanes, NoDirect: s.cfg.NoDirect, GiveUp: s.unwanted}
	if s.streamer != nil && s.reader != nil {
		s.streamer.Recall() // what was guessed would only be waited for
	}
	var err error
	s.reader, s.engineNote, err = flashio.Reopen(s.files, s.reader, s.cfg.IOEngine, o, between)
	if s.streamer != nil {
		s.streamer.SetReader(s.reader)
	}
	if s.rows != nil {
		s.rows.SetReader(s.reader)
	}
	return err
}

// applyCache changes the budget; entries that fit stay.
func (s *Session) applyCache(c Config) (backend.Verdict, string, error) {
	b, err := s.budget(c.Cache)
	var refused *backend.SettingError
	if errors.As(err, &refused) {
		reason := refused.Problem
		if refused.Remedy != "" {
			reason += ": " + refused.Remedy
		}
		return backend.Declined, reason, nil
	}
	if err == nil {
		err = s.streamer.Resize(s.slotBudget(b), s.shape.Reserve(s.slotBudget(b)))
	}
	if err != nil {
		return backend.Declined, "", err
	}
	s.cfg.Cache = b
	s.foresee() // the cache may hold all experts now, or no longer
	return backend.Applied, s.budgetWarning(b.Bytes), nil
}

// budgetSteps is how many steps lead from nothing to a budget for all experts.
const budgetSteps = 8

// stepCache returns a budget in MiB dir steps away, on multiples of an eighth of
// the slots of all experts, at least one MiB away: steps up end where all fit.
func (s *Session) stepCache(from string, dir int) string {
	n, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return from
	}
	return strconv.FormatInt(stepBudget(n, dir, s.shape.Total()), 10)
}

// stepBudget walks dir steps from a budget of n MiB where the slots of all
// experts take so many bytes.
func stepBudget(n int64, dir int, all int64) int64 {
	step := all / budgetSteps
	if step == 0 {
		return n
	}
	for ; dir > 0; dir-- {
		k := step
		for units.MiBUp(k) <= n && k < all {
			k = min(k+step, all)
		}
		n = max(n, units.MiBUp(k))
	}
	for ; dir < 0; dir++ {
		k := (units.FromMiB(n) - 1) / step * step
		for k > 0 && units.MiBUp(k) >= n {
			k -= step
		}
		if k > 0 {
			n = units.MiBUp(k)
		}
	}
	return n
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

func (s *Session) applyRelease(c Config) (backend.Verdict, string, error) {
	return s.setRelease(c.ReleaseMmap)
}

// setRelease hands the mapping back, or maps the file again.
func (s *Session) setRelease(on bool) (backend.Verdict, string, error) {
	if !on {
		return s.restoreMapping()
	}
	if len(s.mappings) == 0 {
		return backend.Applied, "already released", nil
	}
	names, err := s.observeMapping()
	if err != nil {
		return s.declineRelease("the system cannot say which weights lie inside the mapping: %v", err)
	}
	if n := len(names); n > 0 {
		return s.declineRelease("%d weights still lie inside the mapping (%s)", n, someNames(names))
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
	return backend.Applied, "", err
}

func (s *Session) declineRelease(format string, args ...any) (backend.Verdict, string, error) {
	reason := fmt.Sprintf(format, args...)
	s.cfg.ReleaseMmap = false
	s.setMapping(profile.MappingDeclined, reason, false)
	return backend.Declined, reason, nil
}

// restoreMapping maps the file again, as at load, and opens the lanes anew
// under it.
func (s *Session) restoreMapping() (backend.Verdict, string, error) {
	if len(s.mappings) > 0 {
		s.cfg.ReleaseMmap = false
		s.setMapping(profile.MappingMapped, "", false)
		return backend.Applied, "the file is mapped", nil
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
		return backend.Declined, "", err
	}
	s.cfg.ReleaseMmap = false
	s.setMapping(profile.MappingMapped, "", false)
	if err == nil {
		_, err = s.observeMapping()
	}
	return backend.Applied, "", err
}

func (s *Session) setMapping(state profile.MappingState, reason string, reopened bool) {
	s.meter.rec.Update(func(live *profile.Snapshot) {
		live.Mapping.State, live.Mapping.Reason, live.Mapping.LanesReopened = state, reason, reopened
	})
}
