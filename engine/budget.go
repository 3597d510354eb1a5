package engine

import (
	"fmt"
	"slices"

	"bmoe/engine/backend"
	"bmoe/engine/expert/policy"
	"bmoe/internal/host"
	"bmoe/internal/units"
)

// Memory that an automatic budget leaves alone.
const (
	hostReserve  = units.GiB      // to the rest of the host
	leastReserve = 64 * units.MiB // in a container, where it is a tenth; and below a token cycle
)

// demand is the memory that a session will take beside the cache and has not
// taken yet, in bytes.
type demand struct {
	context int64 // positions that have not been reached
	scratch int64
	dense   int64 // weights left in the mapping, which must stay in the page cache
}

func (d demand) total() int64 { return d.context + d.scratch + d.dense }

// demand returns what the session will still take.
func (s *Session) demand() demand {
	var d demand
	if ctx := int64(s.state.Cap()); ctx > 0 {
		d.context = s.state.Bytes() / ctx * (ctx - int64(len(s.ids)))
	}
	if s.ran == 0 {
		d.scratch = s.arch.Scratch() // allocated, not touched
	}
	if s.cfg.Dense != DenseAnon {
		for _, r := range s.registry.DenseRanges() {
			d.dense += r.Size
		}
	}
	return d
}

// memoryForCache returns the memory that slots could take now, with what they
// have; false if the host cannot tell.
func (s *Session) memoryForCache() (int64, bool) {
	m := host.ReadMemory()
	free := m.Available
	if s.streamer != nil {
		free += s.streamer.Stats().ArenaBytes
	}
	return free, m.Has.All(host.HasAvailable)
}

// budget resolves a budget for the cache and refuses one that cannot work.
func (s *Session) budget(b Budget) (Budget, error) {
	if b.Auto {
		b.Bytes = s.automatic(b.Share, host.ReadMemory())
	}
	if b.Bytes == 0 {
		return b, nil
	}
	b.Bytes = min(b.Bytes, units.WholeMiB(s.shape.Total()))
	return b, s.checkBudget(b.Bytes)
}

// automatic is what an automatic budget comes to with so much memory.
func (s *Session) automatic(share float64, m host.Memory) int64 {
	b := autoBudget(s.shape, share, m, s.demand().total())
	if n := s.cfg.CacheCeil; n > 0 {
		b = min(b, units.FromMiB(int64(n)))
	}
	return max(b, units.FromMiB(int64(s.cfg.CacheFloor)))
}

// slotBudget is what a resolved budget gives slots. A budget of 0 is one layer's
// working set: the next layer takes its place, so that nothing is kept.
func (s *Session) slotBudget(b Budget) int64 {
	if b.Bytes == 0 {
		return s.shape.LayerWorkingSet()
	}
	return b.Bytes
}

// autoBudget is the share of all experts' slot bytes that is asked for, if any, or
// what memory allows beside what else the session will take: whole MiB, and not less
// than a token cycle where that fits.
func autoBudget(shape policy.Shape, share float64, m host.Memory, others int64) int64 {
	want := units.WholeMiB(shape.Total())
	switch {
	case share > 0:
		want = units.WholeMiB(int64(float64(shape.Total()) * share))
	case m.Has.All(host.HasAvailable):
		tenth := max(m.Available/10, leastReserve)
		reserve := int64(hostReserve)
		if m.Has.All(host.HasLimit) {
			reserve = tenth
		}
		want = min(want, (m.Available-others-reserve)*3/4)
		if cycle := units.WholeMiB(shape.TokenCycle()); cycle <= m.Available-others-tenth {
			want = max(want, cycle)
		}
	}
	return max(units.FromMiB(units.MiBDown(want)), units.MiB, units.WholeMiB(shape.LayerWorkingSet()))
}

// checkBudget refuses a budget below a layer's working set or above the memory
// available, unless forced.
func (s *Session) checkBudget(budget int64) error {
	refuse := func(remedy, format string, args ...any) error {
		return &backend.SettingError{Setting: "cache", Value: fmt.Sprint(units.MiBDown(budget)), Problem: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	least, largest := s.shape.LayerWorkingSet(), slices.Max(s.shape.Slots)
	switch {
	case budget < largest:
		return refuse("", "a budget of %d MiB cannot hold one expert of %d MiB", units.MiBDown(budget), units.MiBUp(largest))
	case s.cfg.ForceCache:
		return nil
	case budget < least:
		return refuse("give at least that, or {force-cache=on}", "a budget of %d MiB is below one layer's working set of %d MiB", units.MiBDown(budget), units.MiBUp(least))
	}
	free, known := s.memoryForCache()
	if d := s.demand(); known && budget > free-d.total() {
		return refuse(remedy(budget, d), "%s", tooMuch(budget, free, d, s.cfg.Ctx))
	}
	return nil
}

// fits returns the budget that an automatic one would be now; false where nothing
// is streamed or the host cannot tell.
func (s *Session) fits() (int64, bool) {
	m := host.ReadMemory()
	if s.streamer == nil || !m.Has.All(host.HasAvailable) {
		return 0, false
	}
	m.Available += s.streamer.Stats().ArenaBytes
	return autoBudget(s.shape, 0, m, s.demand().total()), true
}

// tooMuch words that a budget and what else is needed exceed the memory
// available.
func tooMuch(budget, free int64, d demand, ctx int) string {
	text := fmt.Sprintf("a budget of %d MiB", units.MiBDown(budget))
	if d.total() > 0 {
		text += fmt.Sprintf(", with %d MiB for a context of %d", units.MiBUp(d.context), ctx)
		if d.scratch > 0 {
			text += fmt.Sprintf(", %d MiB of scratch", units.MiBUp(d.scratch))
		}
		if d.dense > 0 {
			text += fmt.Sprintf(", %d MiB of dense weights", units.MiBUp(d.dense))
		}
		text += ","
	}
	return text + fmt.Sprintf(" is above the %d MiB of memory available", units.MiBDown(free))
}

// remedy says what helps when a budget and what else is needed are too much.
func remedy(budget int64, d demand) string {
	if d.context > budget {
		return "give less or lower {ctx}, or {force-cache=on}"
	}
	return "give less, or {force-cache=on}"
}

// budgetWarning says when a budget is too small to score any hits, and which
// would do, if there is memory for it.
func (s *Session) budgetWarning(budget int64) string {
	cycle := s.shape.TokenCycle()
	if budget >= cycle || budget == 0 || s.cfg.CachePolicy != "lru" {
		return ""
	}
	text := fmt.Sprintf("the cache budget of %d MiB is below one token cycle of %d MiB: least-recently-used then scores no hits",
		units.MiBDown(budget), units.MiBUp(cycle))
	if free, known := s.memoryForCache(); known && units.WholeMiB(cycle) > free-s.demand().total() {
		return text + "; there is no memory for one"
	}
	return text + fmt.Sprintf("; {cache=%d} would hold a cycle", units.MiBUp(cycle))
}

// warnContext says when a context cannot be filled: its memory is taken as
// positions are reached, so that opening it succeeds. The cache's is taken by
// now.
func (s *Session) warnContext() {
	if m := host.ReadMemory(); m.Has.All(host.HasAvailable) {
		if w := contextWarning(s.cfg.Ctx, s.state.Bytes(), m.Available); w != "" {
			s.warnings = append(s.warnings, w)
		}
	}
}

func contextWarning(ctx int, bytes, available int64) string {
	if bytes <= available {
		return ""
	}
	return fmt.Sprintf("a full context of %d positions takes %d MiB, above the %d MiB of memory available: lower {ctx} or {cache}, or choose a smaller {kv-type}",
		ctx, units.MiBUp(bytes), units.MiBDown(available))
}
