package engine

import (
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
func readDense(reg *model.Registry, files *flashio.Files, reader flashio.Reader, progress func(done float64)) (*flashio.Arena, error) {
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
	w := &denseWait{total: size, progress: progress}
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
	w.pending.Wait()
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
	pending  sync.WaitGroup
	mu       sync.Mutex
	err      error
	done     int
	total    int
	progress func(float64)
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
