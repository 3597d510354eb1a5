// Package flashtest is a disk that fails on demand: an opener for flashio that
// passes reads on to real files and puts faults in between.
package flashtest

import (
	"errors"
	"fmt"
	"sync"

	"bmoe/flashio"
)

// ErrNoDirectHere is what a Disk answers to direct I/O after RefuseDirect.
var ErrNoDirectHere = errors.New("this disk has no direct I/O")

// Disk is a flashio.Opener with faults. Without any it behaves like the opener
// it wraps. Faults may be changed at any time, from any goroutine; they apply to
// reads that begin afterwards.
type Disk struct {
	inner flashio.Opener

	mu       sync.Mutex
	fail     map[int64]error // by byte offset
	limit    int             // most bytes a read returns, 0 for no limit
	size     int64           // where files end, -1 for where they really do
	before   func(path string, off int64, n int)
	noDirect refusal
	open     int // handles
	opened   int // handles ever
}

type refusal int

const (
	accepted refusal = iota
	refusedAtOpen
	refusedAtRead
)

// NewDisk wraps an opener, flashio.System if inner is nil.
func NewDisk(inner flashio.Opener) *Disk {
	if inner == nil {
		inner = flashio.System
	}
	return &Disk{inner: inner, fail: map[int64]error{}, size: -1}
}

// Fail makes reads that touch the byte at offset fail with err (EIO, say); nil
// makes them succeed again. A refusal of direct I/O fails direct reads only.
func (d *Disk) Fail(offset int64, err error) {
	d.set(func() {
		if err == nil {
			delete(d.fail, offset)
		} else {
			d.fail[offset] = err
		}
	})
}

// Limit lets no read return more than n bytes; 0 lifts the limit.
func (d *Disk) Limit(n int) { d.set(func() { d.limit = n }) }

// Shrink makes every file end at size, as if it had been truncated after it was
// opened; -1 undoes it. Facts still tell the real size.
func (d *Disk) Shrink(size int64) { d.set(func() { d.size = size }) }

// Before runs f at the start of each read, on the reading goroutine: to slow
// reads down, to hold them back or to count them. Nil removes it.
func (d *Disk) Before(f func(path string, off int64, n int)) { d.set(func() { d.before = f }) }

// RefuseDirect makes the disk refuse direct I/O: when a file is opened, as most
// systems do, or, if late is set, only when it is first read.
func (d *Disk) RefuseDirect(late bool) {
	d.set(func() {
		d.noDirect = refusedAtOpen
		if late {
			d.noDirect = refusedAtRead
		}
	})
}

// Handles returns how many handles are open now, and how many have been opened
// in all.
func (d *Disk) Handles() (open, ever int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open, d.opened
}

func (d *Disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// Facts are those of the wrapped opener, except that direct I/O is always tried:
// whether it is refused is the Disk's own choice.
func (d *Disk) Facts(path string) (flashio.Facts, error) {
	f, err := d.inner.Facts(path)
	f.NoDirect = ""
	return f, err
}

// Open opens the file and stands between it and the reader.
func (d *Disk) Open(path string, direct bool) (flashio.Handle, error) {
	d.mu.Lock()
	refuse := d.noDirect
	d.mu.Unlock()
	if direct && refuse == refusedAtOpen {
		return nil, flashio.NoDirect(fmt.Errorf("open %s: %w", path, ErrNoDirectHere))
	}
	h, err := d.inner.Open(path, direct && refuse == accepted)
	if err != nil {
		return nil, err
	}
	d.set(func() { d.open++; d.opened++ })
	return &handle{Handle: h, disk: d, path: path, direct: direct, refuse: direct && refuse == refusedAtRead}, nil
}

type handle struct {
	flashio.Handle
	disk   *Disk
	path   string
	direct bool
	refuse bool
}

func (h *handle) Close() error {
	h.disk.set(func() { h.disk.open-- })
	return h.Handle.Close()
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	d := h.disk
	d.mu.Lock()
	before, limit, size := d.before, d.limit, d.size
	d.mu.Unlock()
	if before != nil {
		before(h.path, off, len(p))
	}
	if h.refuse {
		return 0, flashio.NoDirect(ErrNoDirectHere)
	}
	d.mu.Lock()
	for at, err := range d.fail {
		if at >= off && at < off+int64(len(p)) && (h.direct || !errors.Is(err, ErrNoDirectHere)) {
			d.mu.Unlock()
			return 0, err
		}
	}
	d.mu.Unlock()
	n, err := h.Handle.ReadAt(p, off)
	if limit > 0 {
		n = min(n, limit)
	}
	if size >= 0 {
		n = int(min(int64(n), max(0, size-off)))
	}
	return n, err
}
