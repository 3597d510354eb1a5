package engine

import (
	"context"
	"fmt"

	"bmoe/engine/backend"
	"bmoe/engine/pool"
	"bmoe/internal/host"
	"bmoe/internal/units"
)

// What else can be changed between runs: who computes, in which batches, where the
// dense weights lie and how tokens are chosen.

// MostThreads returns how many compute workers there may be between now and Close.
// It is fixed at open as MostLanes is.
func (s *Session) MostThreads() int { return s.mostThreads }

// applyThreads makes another pool of workers, and the scratch that they have each.
func (s *Session) applyThreads(c Config) (backend.Verdict, string, error) {
	n := c.Threads
	if n > s.mostThreads {
		return backend.Declined, fmt.Sprintf("%d are the most that were provided for when the model was opened; ask for more at the start", s.mostThreads), nil
	}
	s.compute.Pool.Close()
	s.compute.Pool, s.cfg.Threads = pool.New(n), n
	return backend.Applied, "", s.arch.Prepare(s.compute, s.cfg.UBatch, s.cfg.Ctx)
}

const (
	usualUBatch = 256  // where nothing speaks for another
	mostUBatch  = 1024 // of those chosen: a cancelled prompt stops between layers only
	// scratchShare is the part of the memory available that the scratch of a batch which
	// is chosen may take.
	scratchShare = 32
)

// chooseUBatch prepares the scratch for as large a batch as is worth it: a batch reads
// each expert once, so a long prompt in few batches reads less.
func (s *Session) chooseUBatch() error {
	prepare := func(n int) error {
		s.cfg.UBatch = n
		return s.arch.Prepare(s.compute, n, s.cfg.Ctx)
	}
	n := min(usualUBatch, s.cfg.Ctx)
	if err := prepare(n); err != nil {
		return err
	}
	m := host.ReadMemory()
	if !s.cfg.Stream || !m.Has.All(host.HasAvailable) {
		return nil
	}
	one := s.arch.Scratch() / int64(n)
	best := n
	for next := 2 * n; next <= min(s.cfg.Ctx, mostUBatch) && one*int64(next) <= m.Available/scratchShare; next *= 2 {
		best = next
	}
	if best == n {
		return nil
	}
	return prepare(best)
}

// applyUBatch makes the scratch for other batches of a prompt.
func (s *Session) applyUBatch(c Config) (backend.Verdict, string, error) {
	if c.UBatch == 0 {
		return backend.Applied, "", s.chooseUBatch()
	}
	n := min(c.UBatch, s.cfg.Ctx)
	grown := s.arch.Scratch() / int64(s.cfg.UBatch) * int64(n-s.cfg.UBatch)
	if m := host.ReadMemory(); m.Has.All(host.HasAvailable) && grown > m.Available {
		return backend.Declined, fmt.Sprintf("the scratch of a batch of %d takes %d MiB more, and %d are available", n, units.MiBUp(grown), units.MiBDown(m.Available)), nil
	}
	s.cfg.UBatch = n
	return backend.Applied, "", s.arch.Prepare(s.compute, n, s.cfg.Ctx)
}

// applyDense brings the dense weights to another place.
func (s *Session) applyDense(c Config) (backend.Verdict, string, error) {
	if c.Dense == s.cfg.Dense {
		return backend.Applied, "", nil
	}
	if c.Dense != DenseAnon && len(s.mappings) == 0 {
		return backend.Declined, "the file is not mapped: {release-mmap=off} maps it again", nil
	}
	if c.Dense == DenseAnon {
		need := int64(0)
		for _, r := range s.registry.DenseRanges() {
			need += r.Size
		}
		if m := host.ReadMemory(); m.Has.All(host.HasAvailable) && need > m.Available {
			return backend.Declined, fmt.Sprintf("the dense weights take %d MiB, and %d are available", units.MiBUp(need), units.MiBDown(m.Available)), nil
		}
	}
	old := s.dense
	if err := s.bindDense(context.Background(), c.Dense, func(float64) {}); err != nil {
		return backend.Declined, "", err
	}
	s.cfg.Dense = c.Dense
	// What blocks make of weights is made anew, before those that they had are gone.
	err := s.arch.Prepare(s.compute, s.cfg.UBatch, s.cfg.Ctx)
	if err == nil && old != nil {
		if s.dense == old {
			s.dense = nil
		}
		err = old.Close()
	}
	if err == nil {
		_, err = s.observeMapping()
	}
	return backend.Applied, "", err
}

// applySampling changes how tokens are chosen.
func (s *Session) applySampling(c Config) (backend.Verdict, string, error) {
	if err := c.Sampling.Check(); err != nil {
		return backend.Declined, err.Error(), nil
	}
	s.cfg.Sampling = c.Sampling
	s.cfg.Sampling.RepeatLastN = min(c.Sampling.RepeatLastN, s.cfg.Ctx)
	return backend.Applied, "", nil
}

// applyMaxTokens changes how long an answer may be.
func (s *Session) applyMaxTokens(c Config) (backend.Verdict, string, error) {
	s.cfg.MaxTokens = c.MaxTokens
	return backend.Applied, "", nil
}

// limit is how many tokens an answer may have: what is asked for, within what is set;
// 0: until the model ends or the context is full.
func (s *Session) limit(asked int) int {
	if set := s.cfg.MaxTokens; set > 0 && (asked == 0 || set < asked) {
		return set
	}
	return asked
}
