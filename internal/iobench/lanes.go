package iobench

import (
	"errors"
	"sync"
	"sync/atomic"

	"bmoe/flashio"
	"bmoe/internal/stats"
	"bmoe/internal/units"
)

// lanes keeps as many reads in flight as the cell has lanes: each walker submits
// its next read from the completion of its last.
type lanes struct {
	walkers []*walker
	memory  *flashio.Range // the destinations of all walkers, nil under --fresh
	reader  flashio.Reader
	running sync.WaitGroup // walkers that have a read in flight
	stop    atomic.Bool
	fail    func(error) // ends the measurement; the first call counts
	from    int64       // clock.Now: what is served before does not count
	to      int64       // nor what is served after
}

// walker is one lane's reads. Nothing is shared between walkers while they run.
type walker struct {
	lanes   *lanes
	request flashio.Request
	batch   []*flashio.Request // the request alone: a kept slice, so that submitting allocates nothing
	walk    *walk
	fresh   *flashio.Range // under --fresh, the destination, which is renewed for every read

	bytes   float64
	latency stats.Histogram
}

// newLanes makes the walkers and their memory. As in the engine's cache, the
// destinations lie side by side in one range whose pages have been touched.
func newLanes(b *bench, c *cell, r *rig, length int64, fail func(error)) (*lanes, error) {
	l := &lanes{reader: r.reader, fail: fail}
	size, align := r.set.File(0).Size, int64(r.set.Align())
	for i := range c.lanes {
		w := &walker{lanes: l, walk: newWalk(b.opt.seed, i, size, units.FromMiB(c.rangeMiB), length, align)}
		w.request = flashio.Request{Need: int(length), Done: w}
		w.batch = []*flashio.Request{&w.request}
		l.walkers = append(l.walkers, w)
	}
	give := l.giveMemory
	if c.fresh {
		give = l.giveFresh
	}
	if err := give(int(length), c.smallPages); err != nil {
		return nil, errors.Join(err, l.free())
	}
	return l, nil
}

// memoryStep is what the memory that a measurement reads into is a multiple of:
// Linux gives huge pages, with which direct reads cost far less, to whole 2 MiB.
const memoryStep = 2 * units.MiB

// giveMemory gives every walker its part of one range.
func (l *lanes) giveMemory(length int, smallPages bool) error {
	var err error
	size := (length*len(l.walkers) + memoryStep - 1) / memoryStep * memoryStep
	if l.memory, err = flashio.Reserve(size); err != nil {
		return err
	}
	if smallPages {
		l.memory.SmallPages()
	}
	if err := l.memory.Commit(0, l.memory.Len()); err != nil {
		return err
	}
	l.memory.Touch(0, l.memory.Len(), 1)
	for i, w := range l.walkers {
		w.request.Buf = l.memory.Bytes()[i*length:][:length:length]
	}
	return nil
}

// giveFresh gives every walker a range of its own.
func (l *lanes) giveFresh(length int, smallPages bool) error {
	for _, w := range l.walkers {
		var err error
		if w.fresh, err = flashio.Reserve(length); err != nil {
			return err
		}
		if smallPages {
			w.fresh.SmallPages()
		}
		w.request.Buf = w.fresh.Bytes()[:length]
	}
	return nil
}

// free gives the destinations back. The reader must not use them any more.
func (l *lanes) free() error {
	var errs []error
	if l.memory != nil {
		errs = append(errs, l.memory.Release())
	}
	for _, w := range l.walkers {
		if w.fresh != nil {
			errs = append(errs, w.fresh.Release())
		}
	}
	return errors.Join(errs...)
}

// start submits every walker's first read.
func (l *lanes) start() {
	l.running.Add(len(l.walkers))
	for _, w := range l.walkers {
		w.submit()
	}
}

// submit sends the next read off, or ends the walk if its memory cannot be had.
func (w *walker) submit() {
	if w.fresh != nil {
		if err := w.renew(); err != nil {
			w.lanes.fail(err)
			w.lanes.running.Done()
			return
		}
	}
	w.request.Offset = w.walk.next()
	w.lanes.reader.Submit(w.batch...)
}

// renew swaps the destination's pages for ones that were never touched, as a
// cache does that gives evicted memory back.
func (w *walker) renew() error {
	if err := w.fresh.Decommit(0, w.fresh.Len()); err != nil {
		return err
	}
	return w.fresh.Commit(0, w.fresh.Len())
}

// ReadDone books a read and submits the next one. It runs on the lane that read,
// so the lane's time includes what it does.
func (w *walker) ReadDone(r *flashio.Request) {
	if r.Err != nil {
		w.lanes.fail(r.Err)
		w.lanes.running.Done()
		return
	}
	w.book(r)
	if w.lanes.stop.Load() {
		w.lanes.running.Done()
		return
	}
	w.submit()
}

// book counts the part of a read that fell into the measured time. Reads that
// overlap its ends count in proportion: dropping them, or counting them whole,
// would be off by a read per lane, which is much where reads are large.
func (w *walker) book(r *flashio.Request) {
	overlap := min(r.Ended, w.lanes.to) - max(r.Started, w.lanes.from)
	if overlap <= 0 {
		return
	}
	took := r.Ended - r.Started
	w.bytes += float64(r.N) * float64(overlap) / float64(took)
	if r.Started >= w.lanes.from && r.Ended <= w.lanes.to {
		w.latency.Record(took)
	}
}

// total adds the walkers up.
func (l *lanes) total(m *measurement) {
	for _, w := range l.walkers {
		m.bytes += w.bytes
		m.latency.Merge(&w.latency)
	}
}
