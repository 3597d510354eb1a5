package flashio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"bmoe/internal/clock"
	"bmoe/internal/crash"
)

// uring is the Reader that keeps N reads in flight from one goroutine. The ring
// belongs to that goroutine alone; Submit only queues.
//
// While nothing is in flight the goroutine waits in the queue like a lane, and
// is handed the processor of whoever submits; while something is, it waits in the
// kernel, and Submit gets it up through an eventfd that the ring itself reads.
// The goroutine is not tied to a thread, although that would allow the ring's
// cheaper modes (IORING_SETUP_SINGLE_ISSUER, DEFER_TASKRUN): each hand-over to and
// from a tied thread costs 30 to 100 us (docs/flash-io.md), the modes save less.
type uring struct {
	*core
	ring   *ring
	waker  int           // eventfd
	ended  chan struct{} // closed when run has returned
	slots  []uringSlot
	free   []int      // slots without a request
	next   []*Request // scratch of begin
	wakeUp [8]byte    // where the eventfd's counter is read to
	failed error      // why the ring is of no use any more
	again  []*Request // what it had begun then and lanes have to do
}

// uringSlot is a place in flight.
type uringSlot struct {
	r      *Request
	have   int  // bytes of r.Buf that are filled
	from   int  // where in r.Buf the read in flight begins
	direct bool // how it was asked for
	tries  int  // reads that the kernel sent back undone
}

// wakeTag is the user data of the read that wakes the ring; those of requests
// are their slots.
const wakeTag = 1 << 32

// descriptor is a handle that the kernel can read by itself.
type descriptor interface{ Descriptor() int }

// OpenURing opens every file of the set once and keeps up to o.Lanes reads in
// flight through Linux's io_uring. Where the kernel refuses (too old, switched
// off, forbidden in a container), or where the set does not lie on real files,
// the error wraps ErrNotAvailable and says why; OpenLanes works everywhere.
func OpenURing(set *Files, o LaneOptions) (Reader, error) {
	c, err := openCore(set, "uring", 1, o)
	if err != nil {
		return nil, err
	}
	u := &uring{
		core:  c,
		ended: make(chan struct{}),
		slots: make([]uringSlot, o.Lanes),
		next:  make([]*Request, o.Lanes),
	}
	for i := range u.slots {
		u.free = append(u.free, i)
	}
	u.queue.wake = u.wake
	if err := u.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open uring: %w", err), closeSet(c.handles))
	}
	return u, nil
}

func (u *uring) start() error {
	for _, h := range u.handles[0] {
		if _, ok := h.handle.(descriptor); !ok {
			return fmt.Errorf("the kernel cannot read through a %T: %w", h.handle, ErrNotAvailable)
		}
	}
	var err error
	if u.waker, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if u.ring, err = newRing(len(u.slots) + 1); err != nil {
		return errors.Join(err, os.NewSyscallError("close", unix.Close(u.waker)))
	}
	go u.run()
	return nil
}

// run owns the ring. It begins what is queued, waits in the kernel until a read
// or a wake-up completes, and hands completed requests back.
func (u *uring) run() {
	defer close(u.ended)
	defer crash.Catch("io_uring")
	u.armWaker()
	for {
		if closed := u.begin(); closed && u.nobodyWaits() {
			return
		}
		if err := u.ring.enter(); err != nil {
			u.fallBack(err)
			return
		}
		u.reapAll()
	}
}

// nobodyWaits reports whether all that is in flight was left behind.
func (u *uring) nobodyWaits() bool {
	for i := range u.slots {
		if r := u.slots[i].r; r != nil && !u.left(r) {
			return false
		}
	}
	return true
}

// left reports whether nobody waits for a read.
func (c *core) left(r *Request) bool {
	c.behind.Lock()
	defer c.behind.Unlock()
	return c.behind.reads[r]
}

// reapAll takes every completion that there is.
func (u *uring) reapAll() {
	for c, ok := u.ring.reap(); ok; c, ok = u.ring.reap() {
		if c.userData == wakeTag {
			u.armWaker()
		} else {
			u.complete(int(c.userData), c.result)
		}
	}
}

// settleTime is how long the kernel may take to finish reads that it took
// before the ring failed, in ns.
const settleTime = 30_000_000_000

// fallBack goes on in lanes after the ring has failed for good: no memory, a
// filter of system calls that came later, the ring's descriptor closed by
// somebody else. It returns when the reader is closed.
func (u *uring) fallBack(cause error) {
	u.failed = cause
	u.ring.untaken(func(userData uint64) {
		if userData != wakeTag {
			u.giveUp(int(userData))
		}
	})
	// What the kernel took it still writes to memory for; completions arrive
	// without being asked for.
	for began := clock.Now(); len(u.free) < len(u.slots); u.ring.pause(1_000_000) {
		u.reapAll()
		if len(u.free) < len(u.slots) && clock.Now()-began > settleTime {
			// Buffers cannot be handed back that may still be written to.
			panic(fmt.Sprintf("flashio: %v, and %d reads did not come back from the kernel", cause, len(u.slots)-len(u.free)))
		}
	}
	l := &lanes{u.core}
	u.state.Lock()
	u.engine = "lanes"
	u.mode.Fallback = fmt.Sprintf("io_uring failed (%v); lanes read since", cause)
	if err := u.openAnew(len(u.slots)); err != nil {
		u.broken = fmt.Errorf("io_uring failed (%w), and lanes could not be opened in its place: %w", cause, err)
	}
	u.state.Unlock()
	u.queue.giveBack(u.again)
	l.start(len(u.slots))
	l.await()
}

// openAnew closes all handles and opens every file once for each of n lanes.
// Where that fails there are none, and mode stays as it was. The caller holds the
// state's lock.
func (u *uring) openAnew(n int) error {
	cerr := u.closeAll()
	handles, mode, err := openSet(u.set, n, u.noDirect)
	u.handles = handles
	if err != nil {
		return errors.Join(err, cerr)
	}
	mode.Fallback = u.mode.Fallback
	if cerr != nil {
		mode.Fallback += fmt.Sprintf("; its handles could not be closed: %v", cerr)
	}
	u.mode = mode
	return nil
}

// giveUp frees a slot whose request is for lanes to do.
func (u *uring) giveUp(slot int) {
	u.again = append(u.again, u.slots[slot].r)
	u.hands[slot].drop()
	u.slots[slot] = uringSlot{}
	u.free = append(u.free, slot)
}

// begin fills the free slots from the queue, until either is exhausted: only
// then does the queue know whether to get the ring up for more. If nothing is in
// flight it waits for a request. It returns true once the queue is closed.
func (u *uring) begin() (closed bool) {
	for len(u.free) > 0 {
		n := 1
		if len(u.free) == len(u.slots) {
			if u.next[0] = u.queue.take(); u.next[0] == nil {
				return true
			}
		} else if n, closed = u.queue.takeUpTo(u.next[:len(u.free)]); n == 0 {
			return closed
		}
		for _, r := range u.next[:n] {
			if r.Err = u.check(r); r.Err != nil {
				u.queue.finished(1)
				r.Done.ReadDone(r)
				continue
			}
			slot := u.free[len(u.free)-1]
			u.free = u.free[:len(u.free)-1]
			r.Lane = slot
			r.Started = clock.Now()
			u.hands[slot].take(r, r.Started)
			u.slots[slot] = uringSlot{r: r}
			u.submit(slot)
		}
		clear(u.next[:n])
	}
	return false
}

// takeUpTo moves what is due next into dst, as far as it has room, and counts it
// as in flight. It does not wait: room left over means that the engine will
// sleep, and is woken by the next request. closed says that nothing will come.
func (q *queue) takeUpTo(dst []*Request) (n int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n < len(dst) && !q.closed {
		r := q.popLocked()
		if r == nil {
			break
		}
		dst[n] = r
		n++
	}
	q.inFlight += n
	q.idle = n < len(dst) && !q.closed
	return n, q.closed
}

// submit asks for what a slot still misses, from its last aligned byte on, as
// readWindow does.
func (u *uring) submit(slot int) {
	if u.failed != nil {
		u.giveUp(slot)
		return
	}
	s := &u.slots[slot]
	s.from = s.have &^ int(u.set.align-1)
	s.direct = u.handles[0][s.r.File].direct
	fd := u.handles[0][s.r.File].handle.(descriptor).Descriptor()
	u.ring.read(fd, s.r.Buf[s.from:], s.r.Offset+int64(s.from), uint64(slot))
}

// complete takes the result of a slot's read: a number of bytes, or a negative
// error number.
func (u *uring) complete(slot int, result int32) {
	s := &u.slots[slot]
	r := s.r
	var err error
	switch {
	case s.tries < patience && (result == -int32(unix.EINTR) && !u.unwanted() || result == -int32(unix.EAGAIN) ||
		result == -int32(unix.ECANCELED)): // the thread that had submitted it has ended
		u.ring.pause(pauseAfter(s.tries) - firstPause) // the first one at once
		s.tries++
		u.submit(slot)
		return
	case result < 0 && u.giveUpDirect(0, r.File, syscall.Errno(-result)), result < 0 && s.direct && !u.handles[0][r.File].direct:
		// The second: another read in flight has given it up meanwhile.
		u.submit(slot)
		return
	case result < 0:
		err = os.NewSyscallError("io_uring read", syscall.Errno(-result))
	case s.from+int(result) > s.have:
		s.have = s.from + int(result)
		if s.have < r.Need {
			u.submit(slot)
			return
		}
	case s.have < r.Need:
		err = io.ErrUnexpectedEOF
	}
	r.Ended = clock.Now()
	r.N = s.have
	if err != nil {
		r.Err = u.readError(r, err)
	}
	*s = uringSlot{}
	u.free = append(u.free, slot)
	u.lane[slot].count(r)
	u.hands[slot].drop()
	u.back(slot, r)
	u.queue.finished(1)
	r.Done.ReadDone(r)
}

// armWaker puts a read of the eventfd into the ring: it completes when wake is
// called.
func (u *uring) armWaker() {
	if u.failed == nil {
		u.ring.read(u.waker, u.wakeUp[:], 0, wakeTag)
	}
}

// wakeUpCall is the number 1 as an eventfd takes it.
var wakeUpCall = binary.NativeEndian.AppendUint64(nil, 1)

// wake is called with the queue locked, and not after Close.
func (u *uring) wake() {
	for {
		_, err := unix.Write(u.waker, wakeUpCall)
		if err == nil {
			return
		}
		if err != unix.EINTR {
			panic(fmt.Sprintf("flashio: write to an eventfd: %v", err))
		}
	}
}

func (u *uring) Close() error {
	if !u.queue.close() {
		return nil
	}
	<-u.ended
	err := u.ring.close()
	if u.failed != nil {
		err = nil // it is broken, and that has been said
	}
	return errors.Join(u.closeHandles(), err, os.NewSyscallError("close", unix.Close(u.waker)))
}
