package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"bmoe/engine/model"
	"bmoe/flashio"
	"bmoe/internal/units"
)

// densePiece is the most that one read of a dense weight fetches.
const densePiece = 4 * units.MiB

// readDense reads all dense weights with the reader's lanes into one arena and
// binds them to it. Where the reads are direct, the windows are what the drive
// serves and nothing is copied.
func readDense(ctx context.Context, reg *model.Registry, files *flashio.Files, reader flashio.Reader, patience time.Duration, progress func(done float64)) (*flashio.Arena, error) {
	type place struct {
		r  model.Range
		w  flashio.Window
		at int
	}
	var places []place
	size := 0
	for _, r := range reg.DenseRanges() {
		w, err := files.Window(r.Shard, r.Offset, r.Size)
		if err != nil {
			return nil, err
		}
		places = append(places, place{r, w, size})
		size += w.Length
	}
	arena, err := flashio.NewArena(size)
	if err != nil {
		return nil, fmt.Errorf("dense weights: %w", err)
	}
	w := &denseReads{total: int64(size), progress: progress}
	var reads []*flashio.Request
	for _, p := range places {
		for o := 0; o < p.w.Length; o += densePiece {
			n := min(densePiece, p.w.Length-o)
			reads = append(reads, &flashio.Request{File: p.r.Shard, Offset: p.w.Offset + int64(o), Buf: arena.Bytes()[p.at+o:][:n],
				Need: max(0, min(n, p.w.Need-o)), Done: w})
		}
	}
	w.Add(len(reads))
	reader.Submit(reads...)
	stop := context.AfterFunc(ctx, func() {
		for _, r := range reads {
			if reader.Cancel(r) { // no lane has begun it
				r.Err = ctx.Err()
				w.Group.ReadDone(r)
			}
		}
	})
	over, err := w.waitUnless(ctx, patience)
	stop()
	if !over { // its memory stays the system's
		for _, r := range reads {
			reader.Leave(r)
		}
		return nil, fmt.Errorf("dense weights: a read does not return: %w", err)
	}
	if err != nil {
		arena.Close() // the error that matters is the read's
		return nil, fmt.Errorf("dense weights: %w", err)
	}
	at := map[model.Range][]byte{}
	for _, p := range places {
		at[p.r] = arena.Bytes()[p.at+p.w.Skip:][:p.r.Size]
	}
	return arena, reg.Bind(func(r model.Range) ([]byte, error) { return at[r], nil })
}

// denseReads waits for the reads of all dense weights and tells how many bytes
// are done.
type denseReads struct {
	flashio.Group
	done     atomic.Int64
	givenUp  atomic.Bool
	total    int64
	progress func(float64)
}

// waitUnless waits for all reads, and once ctx has ended for little longer (patience): over is
// false if some have not returned by then.
func (w *denseReads) waitUnless(ctx context.Context, patience time.Duration) (over bool, err error) {
	all := make(chan error, 1)
	go func() { all <- w.Wait() }()
	select {
	case err := <-all:
		return true, err
	case <-ctx.Done():
	}
	select {
	case err := <-all:
		return true, err
	case <-time.After(patience):
		w.givenUp.Store(true)
		return false, ctx.Err()
	}
}

// ReadDone implements flashio.Completer.
func (w *denseReads) ReadDone(r *flashio.Request) {
	if w.givenUp.Load() {
		w.Group.ReadDone(r)
		return
	}
	w.progress(float64(w.done.Add(int64(len(r.Buf)))) / float64(w.total))
	w.Group.ReadDone(r)
}

// denseResident returns which share of the dense weights' pages is in memory,
// where they lie in the mapping. What lies in our own memory is in memory unless
// the host swaps, which is not asked.
func (s *Session) denseResident() (share float64, ok bool) {
	if s.cfg.Dense == DenseAnon || len(s.mappings) == 0 {
		return 0, false
	}
	var resident, all int
	for _, r := range s.registry.DenseRanges() {
		in, pages, err := s.mappings[r.Shard].Resident(int(r.Offset), int(r.Size))
		if err != nil {
			return 0, false // this host does not say
		}
		resident += in
		all += pages
	}
	return float64(resident) / float64(max(all, 1)), true
}
