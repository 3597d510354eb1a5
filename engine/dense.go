package engine

import (
	"context"
	"fmt"
	"sync"

	"bmoe/engine/model"
	"bmoe/flashio"
)

// densePiece is the most that one read of a dense weight fetches.
const densePiece = 4 << 20

// readDense reads all dense weights with the reader's lanes into one arena and
// binds them to it. Where the reads are direct, the windows are what the drive
// serves and nothing is copied.
func readDense(ctx context.Context, reg *model.Registry, files *flashio.Files, reader flashio.Reader, progress func(done float64)) (*flashio.Arena, error) {
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
	w := &denseWait{reader: reader, total: size, progress: progress}
	var reads []*flashio.Request
	for _, p := range places {
		for o := 0; o < p.w.Length; o += densePiece {
			n := min(densePiece, p.w.Length-o)
			reads = append(reads, &flashio.Request{File: p.r.Shard, Offset: p.w.Offset + int64(o), Buf: arena.Bytes()[p.at+o:][:n],
				Need: max(0, min(n, p.w.Need-o)), Done: w})
		}
	}
	w.pending.Add(len(reads))
	reader.Submit(reads...)
	stop := context.AfterFunc(ctx, func() { w.cancel(reads, ctx.Err()) })
	w.pending.Wait()
	stop()
	if w.err != nil {
		arena.Close() // the error that matters is the read's
		return nil, fmt.Errorf("dense weights: %w", w.err)
	}
	at := map[model.Range][]byte{}
	for _, p := range places {
		at[p.r] = arena.Bytes()[p.at+p.w.Skip:][:p.r.Size]
	}
	return arena, reg.Bind(func(r model.Range) ([]byte, error) { return at[r], nil })
}

// denseWait waits for many reads.
type denseWait struct {
	reader   flashio.Reader
	pending  sync.WaitGroup
	mu       sync.Mutex
	err      error
	done     int
	total    int
	progress func(float64)
}

// cancel takes back the reads that no lane has begun.
func (w *denseWait) cancel(reads []*flashio.Request, reason error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = reason
	}
	w.mu.Unlock()
	for _, r := range reads {
		if w.reader.Cancel(r) {
			w.pending.Done()
		}
	}
}

// ReadDone implements flashio.Completer.
func (w *denseWait) ReadDone(r *flashio.Request) {
	w.mu.Lock()
	if w.err == nil {
		w.err = r.Err
	}
	w.done += len(r.Buf)
	share := float64(w.done) / float64(w.total)
	w.mu.Unlock()
	w.progress(share)
	w.pending.Done()
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
