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

// ReadRows gathers through the lanes, as aligned windows. It is used by one goroutine.
type ReadRows struct {
	files  *flashio.Files
	reader flashio.Reader
	memory *flashio.Arena
	window int // bytes of memory for a read
	slots  []rowRead
	queue  []*flashio.Request
	wg     sync.WaitGroup
}

// rowRead is one read in flight.
type rowRead struct {
	flashio.Request
	wait *sync.WaitGroup
	skip int
}

// ReadDone implements flashio.Completer.
func (r *rowRead) ReadDone(*flashio.Request) { r.wait.Done() }

// NewReadRows returns a source whose rows have size bytes at most. It needs a reader
// (SetReader) before the first use, and does not own it.
func NewReadRows(files *flashio.Files, size int) (*ReadRows, error) {
	r := &ReadRows{files: files, window: files.MostWindow(size), slots: make([]rowRead, rowsInFlight)}
	var err error
	if r.memory, err = flashio.NewArena(rowsInFlight * r.window); err != nil {
		return nil, fmt.Errorf("memory to gather rows of a table in: %w", err)
	}
	for i := range r.slots {
		r.slots[i].wait = &r.wg
		r.slots[i].Done = &r.slots[i]
		r.queue = append(r.queue, &r.slots[i].Request)
	}
	return r, nil
}

// SetReader gives the source the reader to use from now on.
func (r *ReadRows) SetReader(reader flashio.Reader) { r.reader = reader }

// Bytes returns the memory that windows are read into.
func (r *ReadRows) Bytes() int64 { return int64(r.memory.Len()) }

// Close gives the memory back. No Gather may be running.
func (r *ReadRows) Close() error { return r.memory.Close() }

// Gather implements Rows.
func (r *ReadRows) Gather(dst []byte, file int, offset int64, size int, rows []int64) error {
	for len(rows) > 0 {
		n := min(len(rows), len(r.slots))
		for i, row := range rows[:n] {
			w, err := r.files.Window(file, offset+row*int64(size), int64(size))
			if err != nil {
				return fmt.Errorf("row %d of a table at %d: %w", row, offset, err)
			}
			s := &r.slots[i]
			if w.Length > r.window {
				return fmt.Errorf("row %d of a table at %d takes %d bytes of memory, more than the %d for it", row, offset, w.Length, r.window)
			}
			s.File, s.Offset, s.Need, s.skip = file, w.Offset, w.Need, w.Skip
			s.Buf = r.memory.Bytes()[i*r.window:][:w.Length:w.Length]
		}
		r.wg.Add(n)
		r.reader.Submit(r.queue[:n]...)
		r.wg.Wait()
		var errs []error
		for i := range n {
			s := &r.slots[i]
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
