package flashio

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface of io_uring, from linux/io_uring.h. Only what reading
// needs is here.
const (
	ringOpRead = 22

	ringEnterGetEvents = 1

	ringFeatSingleMmap = 1

	ringOffSQ   = 0
	ringOffSQEs = 0x10000000

	ringRegisterProbe = 8
)

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32

	_  [3]uint32
	sq struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }
	cq struct{ head, tail, mask, entries, overflow, cqes, flags, _, _, _ uint32 }
}

// submission is struct io_uring_sqe.
type submission struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	length        uint32
	opFlags       uint32
	userData      uint64
	bufIndex      uint16
	_             uint16
	_             int32
	_             [2]uint64
}

// completion is struct io_uring_cqe.
type completion struct {
	userData uint64
	result   int32
	flags    uint32
}

// ring is one io_uring, used by one goroutine at a time.
type ring struct {
	fd        int
	mem, sqes []byte

	sqTail        *uint32
	cqHead        *uint32
	cqTail        *uint32
	sqMask        uint32
	cqMask        uint32
	entries       []submission
	events        []completion
	tail, pending uint32 // our end of the submission queue; what the kernel has not been told of

	call  func(fd int, pending uint32) (taken uint32, errno syscall.Errno) // ringEnter; tests make it fail
	pause func(ns int64)                                                   // sleep
}

// newRing sets up a ring with room for n submissions at once.
func newRing(n int) (*ring, error) {
	var p ringParams
	fd, err := ringSetup(n, &p)
	switch err {
	case nil:
	case unix.ENOSYS:
		return nil, fmt.Errorf("this kernel has no io_uring: %w", ErrNotAvailable)
	case unix.EPERM:
		return nil, fmt.Errorf("io_uring is forbidden here, by kernel.io_uring_disabled or by a container: %w", ErrNotAvailable)
	default:
		return nil, fmt.Errorf("%w (%w)", os.NewSyscallError("io_uring_setup", err), ErrNotAvailable)
	}
	r := &ring{fd: fd, call: ringEnter, pause: sleep}
	if err := r.attach(&p); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func ringSetup(n int, p *ringParams) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(n), uintptr(unsafe.Pointer(p)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// attach maps the queues and checks that the kernel can do what is needed.
func (r *ring) attach(p *ringParams) error {
	if p.features&ringFeatSingleMmap == 0 || !r.knows(ringOpRead) {
		return fmt.Errorf("this kernel's io_uring is too old, Linux 5.6 is needed: %w", ErrNotAvailable)
	}
	size := max(p.sq.array+4*p.sqEntries, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(completion{})))
	var err error
	const flags = unix.MAP_SHARED | unix.MAP_POPULATE
	if r.mem, err = unix.Mmap(r.fd, ringOffSQ, int(size), unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
		return os.NewSyscallError("mmap of the ring", err)
	}
	size = p.sqEntries * uint32(unsafe.Sizeof(submission{}))
	if r.sqes, err = unix.Mmap(r.fd, ringOffSQEs, int(size), unix.PROT_READ|unix.PROT_WRITE, flags); err != nil {
		return os.NewSyscallError("mmap of the ring", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[off])) }
	r.sqTail, r.cqHead, r.cqTail = word(p.sq.tail), word(p.cq.head), word(p.cq.tail)
	r.sqMask, r.cqMask = *word(p.sq.mask), *word(p.cq.mask)
	r.entries = unsafe.Slice((*submission)(unsafe.Pointer(&r.sqes[0])), p.sqEntries)
	r.events = unsafe.Slice((*completion)(unsafe.Pointer(&r.mem[p.cq.cqes])), p.cqEntries)
	// Entries are used in order, so the indirection is the identity for good.
	array := unsafe.Slice(word(p.sq.array), p.sqEntries)
	for i := range array {
		array[i] = uint32(i)
	}
	r.tail = *r.sqTail
	return nil
}

// knows asks the kernel whether it has an operation.
func (r *ring) knows(op uint8) bool {
	type probeOp struct {
		op, _ uint8
		flags uint16
		_     uint32
	}
	var probe struct {
		last, count uint8
		_           uint16
		_           [3]uint32
		ops         [64]probeOp
	}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), ringRegisterProbe, uintptr(unsafe.Pointer(&probe)), uintptr(len(probe.ops)), 0, 0)
	return errno == 0 && op <= probe.last && probe.ops[op].flags&1 != 0
}

// read adds a read of buf at off to the submission queue, which must have room.
func (r *ring) read(fd int, buf []byte, off int64, userData uint64) {
	r.entries[r.tail&r.sqMask] = submission{
		opcode:   ringOpRead,
		fd:       int32(fd),
		off:      uint64(off),
		addr:     uint64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))),
		length:   uint32(min(len(buf), 1<<30)), // the rest by another read
		userData: userData,
	}
	r.tail++
	r.pending++
}

// ringEnter gives the kernel what is pending and waits for a completion.
func ringEnter(fd int, pending uint32) (taken uint32, errno syscall.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(pending), 1, ringEnterGetEvents, 0, 0)
	return uint32(n), errno
}

// A kernel that is short of memory says EAGAIN, and usually not for long. It is
// asked again after pauses that double, and given up after about three seconds.
const (
	firstPause int64 = 100_000     // ns
	longPause  int64 = 100_000_000 // ns
	patience         = 40          // calls without effect
)

// pauseAfter returns how long to wait after so many calls without effect, in ns.
func pauseAfter(tries int) int64 { return min(firstPause<<min(tries, 16), longPause) }

// enter tells the kernel what was added, and waits for at least one completion.
// An error is for good: the ring is of no use any more.
func (r *ring) enter() error {
	atomic.StoreUint32(r.sqTail, r.tail)
	for tries := 0; ; tries++ {
		n, errno := r.call(r.fd, r.pending)
		switch errno {
		case 0:
			r.pending -= n
			if r.pending == 0 {
				return nil
			}
			if n > 0 {
				tries = -1 // it took a part and did not wait: give it the rest
			}
		case unix.EINTR, unix.EAGAIN, unix.EBUSY: // short of memory, or of room for completions: reaping helps
		default:
			return os.NewSyscallError("io_uring_enter", errno)
		}
		switch {
		case r.ready():
			return nil
		case errno == unix.EINTR && tries < patience: // a signal, as the scheduler sends them
		case tries >= 0:
			if tries >= patience && errno != unix.EINTR {
				return fmt.Errorf("%w, %d times in a row", os.NewSyscallError("io_uring_enter", errno), tries)
			}
			r.pause(pauseAfter(tries))
		}
	}
}

// ready reports whether there is a completion to reap.
func (r *ring) ready() bool { return atomic.LoadUint32(r.cqTail) != *r.cqHead }

// untaken calls f for everything that was added and that the kernel has not
// been told of, and forgets it.
func (r *ring) untaken(f func(userData uint64)) {
	for ; r.pending > 0; r.pending-- {
		f(r.entries[(r.tail-r.pending)&r.sqMask].userData)
	}
}

// reap takes one completion, if there is one.
func (r *ring) reap() (c completion, ok bool) {
	head := *r.cqHead
	if head == atomic.LoadUint32(r.cqTail) {
		return completion{}, false
	}
	c = r.events[head&r.cqMask]
	atomic.StoreUint32(r.cqHead, head+1)
	return c, true
}

func (r *ring) close() error {
	var err error
	for _, m := range [][]byte{r.mem, r.sqes} {
		if m != nil && err == nil {
			err = os.NewSyscallError("munmap", unix.Munmap(m))
		}
	}
	if cerr := unix.Close(r.fd); err == nil {
		err = os.NewSyscallError("close", cerr)
	}
	return err
}
