package model

import (
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/flashio"
)

// kvState is the state of families whose layers all have a plain KV cache.
type kvState struct {
	layers []*kernel.KV
	memory *flashio.Arena // off the Go heap; pages are touched as positions reach them
	n, cap int
}

// newKVState returns an empty state of layers of one shape.
func newKVState(layers int, spec kernel.KVSpec) (*kvState, error) {
	size, err := spec.Bytes()
	if err != nil {
		return nil, err
	}
	s := &kvState{cap: spec.Ctx}
	size = (size + 63) &^ 63
	if s.memory, err = flashio.NewArena(int(size) * layers); err != nil {
		return nil, fmt.Errorf("KV cache for %d positions: %w", spec.Ctx, err)
	}
	for i := range layers {
		kv, err := kernel.NewKV(spec, s.memory.Bytes()[i*int(size):][:size])
		if err != nil {
			s.memory.Close() // the error that matters is the first
			return nil, err
		}
		s.layers = append(s.layers, kv)
	}
	return s, nil
}

func (s *kvState) Len() int { return s.n }
func (s *kvState) Cap() int { return s.cap }

func (s *kvState) Truncate(n int) error {
	if n < 0 || n > s.n {
		return fmt.Errorf("truncate a state of %d positions to %d", s.n, n)
	}
	s.n = n
	for _, l := range s.layers {
		l.Truncate(n)
	}
	return nil
}

// undo cuts off what a forward pass that failed had appended, and returns the
// pass's error.
func (s *kvState) undo(n int, err error) error {
	for _, l := range s.layers {
		l.Truncate(n)
	}
	return err
}

// kvCheckpoint needs only the length: a KV cache is only ever appended to.
type kvCheckpoint struct {
	of *kvState
	n  int
}

func (c kvCheckpoint) Len() int     { return c.n }
func (c kvCheckpoint) Bytes() int64 { return 0 }

func (s *kvState) Checkpoint() (Checkpoint, error) { return kvCheckpoint{s, s.n}, nil }

func (s *kvState) Restore(c Checkpoint) error {
	k, ok := c.(kvCheckpoint)
	if !ok || k.of != s {
		return fmt.Errorf("the checkpoint is of another state")
	}
	if k.n > s.n {
		return fmt.Errorf("the state was truncated to %d positions since its checkpoint at %d", s.n, k.n)
	}
	return s.Truncate(k.n)
}

func (s *kvState) Bytes() int64 { return int64(s.memory.Len()) }
func (s *kvState) Close() error { return s.memory.Close() }
