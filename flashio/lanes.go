package flashio

import (
	"errors"
	"fmt"
	"sync"

	"bmoe/internal/clock"
)

// MaxLanes is the largest number of reads a reader keeps in flight.
const MaxLanes = 256

// LaneOptions are the choices of OpenLanes.
type LaneOptions struct {
	// Lanes is the number of goroutines that read, 1 to MaxLanes. GOMAXPROCS
	// must leave room for them beside the compute workers, or waiting for a
	// processor looks like waiting for the drive (FACTS.md F1).
	Lanes int
	// NoDirect reads through the page cache.
	NoDirect bool
}

// lanes is the Reader whose lanes block in the system call.
type lanes struct {
	set      *Files
	noDirect bool
	queue    queue
	lane     []laneCounters
	done     sync.WaitGroup // running lanes

	state   sync.Mutex // guards what follows; a lane reads handles without it
	mode    Mode
	handles [][]Handle // [lane][file]; replaced only while all lanes are idle
	broken  error      // why there are no handles
}

// OpenLanes opens every file of the set once per lane and starts the lanes. If
// direct I/O is refused the reader falls back to buffered reads and its Mode
// says why.
func OpenLanes(set *Files, o LaneOptions) (Reader, error) {
	if err := checkLanes(o.Lanes); err != nil {
		return nil, err
	}
	l := &lanes{set: set, noDirect: o.NoDirect, lane: make([]laneCounters, o.Lanes)}
	l.queue.init()
	var err error
	if l.handles, l.mode, err = openSet(set, o.Lanes, o.NoDirect); err != nil {
		return nil, fmt.Errorf("open lanes: %w", err)
	}
	l.done.Add(o.Lanes)
	for i := range o.Lanes {
		go l.run(i)
	}
	return l, nil
}

// checkLanes refuses a number of lanes that cannot be meant.
func checkLanes(n int) error {
	if n < 1 || n > MaxLanes {
		return fmt.Errorf("open lanes: %d lanes asked for, 1 to %d are possible", n, MaxLanes)
	}
	return nil
}

// run is one lane: it takes what is due next until the reader closes.
func (l *lanes) run(i int) {
	defer l.done.Done()
	for {
		r := l.queue.take()
		if r == nil {
			return
		}
		r.Lane = i
		l.serve(r)
		l.queue.finished(1)
		r.Done.ReadDone(r)
	}
}

// serve reads one request and books it.
func (l *lanes) serve(r *Request) {
	if r.File < 0 || r.File >= len(l.set.files) {
		r.Err = fmt.Errorf("read file %d of a set of %d", r.File, len(l.set.files))
		return
	}
	f := &l.set.files[r.File]
	if err := checkAligned(r, l.set.align); err != nil {
		r.Err = &ReadError{Path: f.Path, Offset: r.Offset, Length: len(r.Buf), Err: err}
		return
	}
	if l.broken != nil {
		r.Err = &ReadError{Path: f.Path, Offset: r.Offset, Length: len(r.Buf), Err: l.broken}
		return
	}
	h := l.handles[r.Lane][r.File]
	r.Started = clock.Now()
	n, err := readWindow(h, r.Buf, r.Offset, r.Need, int(l.set.align))
	r.Ended = clock.Now()
	r.N = n
	if err != nil {
		r.Err = &ReadError{Path: f.Path, Offset: r.Offset, Length: len(r.Buf), Got: n, Err: err}
	}
	l.lane[r.Lane].count(r)
}

func (l *lanes) Submit(rs ...*Request) { l.queue.add(rs) }

func (l *lanes) Promote(r *Request) bool { return l.queue.promote(r) }

func (l *lanes) Cancel(r *Request) bool { return l.queue.cancel(r) }

func (l *lanes) Lanes() int { return len(l.lane) }

func (l *lanes) Engine() string { return "lanes" }

func (l *lanes) Mode() Mode {
	l.state.Lock()
	defer l.state.Unlock()
	return l.mode
}

func (l *lanes) Stats(dst *Stats) {
	dst.Engine, dst.Mode = l.Engine(), l.Mode()
	dst.QueuedDemand, dst.QueuedSpec, dst.InFlight = l.queue.depth()
	dst.fill(len(l.lane), func(i int) *laneCounters { return &l.lane[i] })
}

func (l *lanes) Reopen() error {
	if err := l.queue.hold(); err != nil {
		return fmt.Errorf("reopen lanes: %w", err)
	}
	defer l.queue.release()
	l.state.Lock()
	defer l.state.Unlock()
	cerr := closeSet(l.handles)
	var mode Mode
	l.handles, mode, l.broken = openSet(l.set, len(l.lane), l.noDirect)
	if l.broken == nil {
		l.mode = mode
	}
	if err := errors.Join(l.broken, cerr); err != nil {
		return fmt.Errorf("reopen lanes: %w", err)
	}
	return nil
}

func (l *lanes) Close() error {
	if !l.queue.close() {
		return nil
	}
	l.done.Wait()
	l.queue.drain()
	l.state.Lock()
	defer l.state.Unlock()
	err := closeSet(l.handles)
	l.handles, l.broken = nil, ErrClosed
	if err != nil {
		return fmt.Errorf("close lanes: %w", err)
	}
	return nil
}
