package flashio

import (
	"bmoe/internal/clock"
	"bmoe/internal/crash"
)

// LaneOptions are the choices of OpenLanes.
type LaneOptions struct {
	// Lanes is the number of goroutines that read, 1 to MaxLanes. GOMAXPROCS
	// must leave room for them beside the compute workers, or waiting for a
	// processor looks like waiting for the drive (docs/architecture.md).
	Lanes int
	// NoDirect reads through the page cache.
	NoDirect bool
	// GiveUp is asked about a read that a signal interrupted: whether nobody wants
	// it any more, so that it fails and is not tried again. It may be called on any
	// goroutine; nil says no.
	GiveUp func() bool
}

// lanes is the Reader whose lanes block in the system call.
type lanes struct{ *core }

// OpenLanes opens every file of the set once per lane and starts the lanes. If
// direct I/O is refused the reader falls back to buffered reads and its Mode
// says why.
func OpenLanes(set *Files, o LaneOptions) (Reader, error) {
	c, err := openCore(set, "lanes", o.Lanes, o)
	if err != nil {
		return nil, err
	}
	l := &lanes{c}
	l.start(o.Lanes)
	return l, nil
}

// start starts n lanes.
func (l *lanes) start(n int) {
	for i := range n {
		l.lives(i, true)
		go l.run(i)
	}
}

// run is one lane: it takes what is due next until the reader closes.
func (l *lanes) run(i int) {
	defer crash.Catch("lane")
	defer l.lives(i, false)
	for {
		r := l.queue.take()
		if r == nil {
			return
		}
		r.Lane = i
		if r.Err = l.check(r); r.Err == nil {
			l.serve(r)
			l.lane[i].count(r)
		}
		l.queue.finished(1)
		if l.back(i, r) {
			closeSet(l.handles[i : i+1]) // nobody is left to tell
		}
		r.Done.ReadDone(r)
	}
}

func (l *lanes) serve(r *Request) {
	var err error
	r.Started = clock.Now()
	l.hands[r.Lane].take(r, r.Started)
	for {
		r.N, err = readWindow(l.handles[r.Lane][r.File].handle, r.Buf, r.Offset, r.Need, int(l.set.align), l.unwanted)
		if err == nil || !l.giveUpDirect(r.Lane, r.File, err) {
			break
		}
	}
	r.Ended = clock.Now()
	l.hands[r.Lane].drop()
	if err != nil {
		r.Err = l.readError(r, err)
	}
}

func (l *lanes) Close() error {
	if !l.queue.close() {
		return nil
	}
	l.await()
	return l.closeHandles()
}
