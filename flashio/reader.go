package flashio

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// MaxLanes is the largest number of reads a reader keeps in flight. A snapshot
// has room for as many (profile.MaxLanes): a lane that no figure counts would
// make the others look slow.
const MaxLanes = 64

// Open opens a reader with the engine of that name, "lanes" or "uring". Where
// io_uring is not available it opens lanes instead and says why in fallback.
func Open(set *Files, engine string, o LaneOptions) (rd Reader, fallback string, err error) {
	switch engine {
	case "lanes":
		rd, err = OpenLanes(set, o)
		return rd, "", err
	case "uring":
		rd, err = OpenURing(set, o)
		if errors.Is(err, ErrNotAvailable) {
			fallback = err.Error()
			rd, err = OpenLanes(set, o)
		}
		return rd, fallback, err
	}
	return nil, "", fmt.Errorf("no read engine %q: there are lanes and uring", engine)
}

// Reopen closes old, runs between while no handle of it is open, and opens a new
// reader as Open does. It is the one way to other lanes and to another mapping: on
// Windows a lane that was opened under a mapping stays slow, and its handle could
// keep the mapping's effect alive. old is of the same set, or nil where there is
// none; it waits for its reads in flight as Close does. between unmaps, maps or is
// nil. All three steps are tried whatever becomes of the others, and err joins what
// went wrong: rd is nil only if nothing could be opened.
func Reopen(set *Files, old Reader, engine string, o LaneOptions, between func() error) (rd Reader, fallback string, err error) {
	var closed, done error
	if old != nil {
		closed = old.Close()
	}
	if between != nil {
		done = between()
	}
	rd, fallback, err = Open(set, engine, o)
	return rd, fallback, errors.Join(closed, done, err)
}

// core is what the two read engines share: the queue, the counters and the open
// handles.
type core struct {
	set      *Files
	noDirect bool
	unwanted func() bool // whether nobody wants a read that was interrupted
	queue    queue
	lane     []laneCounters
	hands    []hand // by lane
	behind   behind

	state   sync.Mutex // guards what follows; the engine reads handles without it
	engine  string
	mode    Mode
	handles [][]openFile // [lane][file]; replaced when a ring has failed, or one by its lane
	retired []openFile   // given up while reads may have been in flight on them
	broken  error        // why there are no handles
}

// openCore checks the number of lanes and opens every file handles times.
func openCore(set *Files, engine string, handles int, o LaneOptions) (*core, error) {
	lanes := o.Lanes
	if lanes < 1 || lanes > MaxLanes {
		return nil, fmt.Errorf("open %s: %d reads in flight asked for, 1 to %d are possible", engine, lanes, MaxLanes)
	}
	c := &core{set: set, engine: engine, noDirect: o.NoDirect, unwanted: o.GiveUp, lane: make([]laneCounters, lanes), hands: make([]hand, lanes)}
	c.behind.init(lanes)
	if c.unwanted == nil {
		c.unwanted = never
	}
	c.queue.init()
	var err error
	if c.handles, c.mode, err = openSet(set, handles, o.NoDirect); err != nil {
		return nil, fmt.Errorf("open %s: %w", engine, err)
	}
	return c, nil
}

func never() bool { return false }

// check refuses what cannot be read and returns nil for what can.
func (c *core) check(r *Request) error {
	if r.File < 0 || r.File >= len(c.set.files) {
		return fmt.Errorf("read file %d of a set of %d", r.File, len(c.set.files))
	}
	err := checkAligned(r, c.set.align)
	if err == nil {
		err = c.broken
	}
	if err != nil {
		return c.readError(r, err)
	}
	return nil
}

func (c *core) readError(r *Request, err error) error {
	return &ReadError{Path: c.set.files[r.File].Path, Offset: r.Offset, Length: len(r.Buf), Got: r.N, Err: err}
}

func (c *core) Submit(rs ...*Request) { c.queue.add(rs) }

func (c *core) Promote(r *Request) bool { return c.queue.promote(r) }

func (c *core) Cancel(r *Request) bool { return c.queue.cancel(r) }

func (c *core) Lanes() int { return len(c.lane) }

func (c *core) Engine() string {
	c.state.Lock()
	defer c.state.Unlock()
	return c.engine
}

func (c *core) Mode() Mode {
	c.state.Lock()
	defer c.state.Unlock()
	return c.mode
}

func (c *core) Stats(dst *Stats) {
	dst.QueuedDemand, dst.QueuedSpec, dst.InFlight = c.queue.depth()
	if cap(dst.Lanes) < len(c.lane) {
		dst.Lanes = make([]LaneStats, len(c.lane))
	}
	dst.Lanes = dst.Lanes[:len(c.lane)]
	dst.Total = LaneStats{}
	for i := range c.lane {
		c.lane[i].copyTo(&dst.Lanes[i])
		dst.Total.add(&dst.Lanes[i])
	}
}

func (c *core) closeAll() error {
	err := closeSet(append(slices.Clone(c.handles), c.retired))
	c.retired = nil
	return err
}

// giveUpDirect takes a buffered handle in place of one whose direct read failed as
// if direct I/O were not possible: at some offsets, or with some file systems'
// second thoughts, it is not, although the first read worked. It reports whether
// the read is worth another try. Only the goroutine that reads through the handle
// may call it.
func (c *core) giveUpDirect(lane, file int, err error) bool {
	was, f := c.handles[lane][file], &c.set.files[file]
	if !was.direct || !(errors.Is(err, errNoDirect) || refusesDirect(err)) || c.set.unchanged(f) != nil {
		return false
	}
	h, oerr := c.set.opener.Open(f.Path, false)
	if oerr != nil {
		return false // the first failure is the one to tell
	}
	c.state.Lock()
	defer c.state.Unlock()
	c.retired = append(c.retired, was)
	c.handles[lane][file] = openFile{handle: h}
	if c.mode.Direct {
		c.mode.Direct, c.mode.Reason = false, fmt.Sprintf("a direct read failed after others had worked (%v)", err)
	}
	return true
}

// closeHandles ends the reader after its engine has stopped. Lanes that are still in
// reads keep their handles, and close them when they come back.
func (c *core) closeHandles() error {
	c.queue.drain()
	c.state.Lock()
	defer c.state.Unlock()
	var err error
	if stuck := c.behind.stuck; slices.Contains(stuck, true) {
		rows := [][]openFile{c.retired}
		for i, row := range c.handles {
			if !stuck[i] {
				rows = append(rows, row)
			}
		}
		err = closeSet(rows)
	} else {
		err = c.closeAll()
		c.handles, c.broken = nil, ErrClosed
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", c.engine, err)
	}
	return nil
}
