package expert

import (
	"errors"
	"fmt"
	"sync"

	"bmoe/flashio"
)

// Rows reads rows of tables that are too large to be kept in memory.
type Rows interface {
	// Gather fills dst with the rows of the given numbers, each of size bytes, one
	// after the other, from a table that begins at offset of a file.
	Gather(dst []byte, file int, offset int64, size int, rows []int64) error
}

// rowsInFlight is how many reads are queued at once: enough for any number of lanes.
const rowsInFlight = 4 * flashio.MaxLanes

// ReadRows gathers through the lanes, as aligned windows. It is used by one goroutine,
// but for GiveUp.
type ReadRows struct {
	files  *flashio.Files
	reader flashio.Reader
	window int // bytes of memory for a read

	mu    sync.Mutex // guards reads, for GiveUp
	reads *rowReads
	lost  int64 // bytes of memory that reads which do not return may still write to
}

// rowReads are the reads of a gathering, and their memory.
type rowReads struct {
	memory *flashio.Arena
	slots  []rowRead
	queue  []*flashio.Request

	mu      sync.Mutex
	news    sync.Cond
	left    int // reads that are not over
	givenUp error
}

// rowRead is one read in flight.
type rowRead struct {
	flashio.Request
	of   *rowReads
	over bool
	skip int
}

// ReadDone implements flashio.Completer.
func (r *rowRead) ReadDone(*flashio.Request) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.over = true
	r.of.left--
	r.of.news.Broadcast()
}

func newRowReads(window int) (*rowReads, error) {
	memory, err := flashio.NewArena(rowsInFlight * window)
	if err != nil {
		return nil, fmt.Errorf("memory to gather rows of a table in: %w", err)
	}
	r := &rowReads{memory: memory, slots: make([]rowRead, rowsInFlight)}
	r.news.L = &r.mu
	for i := range r.slots {
		r.slots[i].of = r
		r.slots[i].Done = &r.slots[i]
		r.queue = append(r.queue, &r.slots[i].Request)
	}
	return r, nil
}

// wait waits for n reads that were submitted, unless they are given up.
func (r *rowReads) wait() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.left > 0 && r.givenUp == nil {
		r.news.Wait()
	}
	return r.givenUp
}

// NewReadRows returns a source whose rows have size bytes at most. It needs a reader
// (SetReader) before the first use, and does not own it.
func NewReadRows(files *flashio.Files, size int) (*ReadRows, error) {
	r := &ReadRows{files: files, window: files.MostWindow(size)}
	var err error
	r.reads, err = newRowReads(r.window)
	return r, err
}

// GiveUp ends the wait of a Gather, if there is one: it fails with the cause. It may be
// called on any goroutine.
func (r *ReadRows) GiveUp(cause error) {
	r.mu.Lock()
	reads := r.reads
	r.mu.Unlock()
	reads.mu.Lock()
	defer reads.mu.Unlock()
	if reads.left > 0 {
		reads.givenUp = cause
		reads.news.Broadcast()
	}
}

// leave gives up the reads of the n first slots, with their memory, into which lanes may
// still read, and goes on with others.
func (r *ReadRows) leave(n int) error {
	old := r.reads
	for i := range n {
		s := &old.slots[i]
		if r.reader.Cancel(&s.Request) {
			continue
		}
		old.mu.Lock()
		over := s.over
		old.mu.Unlock()
		if !over {
			r.reader.Leave(&s.Request)
		}
	}
	fresh, err := newRowReads(r.window)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.reads, r.lost = fresh, r.lost+int64(old.memory.Len())
	r.mu.Unlock()
	return nil
}

// SetReader gives the source the reader to use from now on.
func (r *ReadRows) SetReader(reader flashio.Reader) { r.reader = reader }

// Bytes returns the memory that windows are read into.
func (r *ReadRows) Bytes() int64 { return r.lost + int64(r.reads.memory.Len()) }

// Close gives the memory back, but for what reads that were given up may still write
// to. No Gather may be running.
func (r *ReadRows) Close() error { return r.reads.memory.Close() }

// Gather implements Rows.
func (r *ReadRows) Gather(dst []byte, file int, offset int64, size int, rows []int64) error {
	for len(rows) > 0 {
		reads := r.reads
		n := min(len(rows), len(reads.slots))
		for i, row := range rows[:n] {
			w, err := r.files.Window(file, offset+row*int64(size), int64(size))
			if err != nil {
				return fmt.Errorf("row %d of a table at %d: %w", row, offset, err)
			}
			s := &reads.slots[i]
			if w.Length > r.window {
				return fmt.Errorf("row %d of a table at %d takes %d bytes of memory, more than the %d for it", row, offset, w.Length, r.window)
			}
			s.File, s.Offset, s.Need, s.skip = file, w.Offset, w.Need, w.Skip
			s.over = false
			s.Buf = reads.memory.Bytes()[i*r.window:][:w.Length:w.Length]
		}
		reads.mu.Lock()
		reads.left = n
		reads.mu.Unlock()
		r.reader.Submit(reads.queue[:n]...)
		if cause := reads.wait(); cause != nil {
			return errors.Join(fmt.Errorf("rows of a table at %d: reads given up: %w", offset, cause), r.leave(n))
		}
		var errs []error
		for i := range n {
			s := &reads.slots[i]
			if s.Err != nil {
				errs = append(errs, s.Err)
			}
			copy(dst[i*size:][:size], s.Buf[s.skip:])
		}
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
		dst, rows = dst[n*size:], rows[n:]
	}
	return nil
}
