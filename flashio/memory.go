package flashio

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"bmoe/internal/crash"
	"bmoe/internal/units"
)

// Range is a stretch of address space that belongs to the program but not to
// the Go heap: the garbage collector never sees it. Reserving costs no memory;
// parts are committed, and decommitted, in whole pages.
//
// Where the system has them (Linux), committed memory asks for huge pages: a
// direct read into them is made of far fewer pieces, which doubled the rate of a
// virtual drive and more than halved the CPU per byte (docs/flash-io.md). They are
// taken 2 MiB at a time, when they are first touched.
type Range struct {
	addr  unsafe.Pointer
	size  int
	small bool
}

// Reserve takes size bytes of address space, rounded up to whole pages, none of
// it usable yet.
func Reserve(size int) (*Range, error) {
	if size <= 0 {
		return nil, fmt.Errorf("reserve %d bytes: nothing to reserve", size)
	}
	size = int(alignUp(int64(size), int64(os.Getpagesize())))
	addr, err := reserveMemory(size)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", size, err)
	}
	return &Range{addr: addr, size: size}, nil
}

// SmallPages makes later commits keep to pages of the normal size, to measure
// what huge ones bring.
func (r *Range) SmallPages() { r.small = true }

// Bytes returns the whole range. Only committed pages of it may be touched.
func (r *Range) Bytes() []byte { return unsafe.Slice((*byte)(r.addr), r.size) }

// Len returns the size of the range in bytes.
func (r *Range) Len() int { return r.size }

// Commit makes length bytes at offset usable. They read as zero until written,
// and take physical memory when they are first touched. Both numbers are
// multiples of the page size. Committing what is committed changes nothing.
func (r *Range) Commit(offset, length int) error {
	return r.change("commit", offset, length, func(p unsafe.Pointer, size int) error {
		if err := commitMemory(p, size); err != nil {
			return err
		}
		adviseHuge(p, size, !r.small)
		return nil
	})
}

// Decommit gives the memory of length bytes at offset back and keeps the
// addresses. What was there is lost.
func (r *Range) Decommit(offset, length int) error {
	return r.change("decommit", offset, length, decommitMemory)
}

func (r *Range) change(what string, offset, length int, f func(unsafe.Pointer, int) error) error {
	page := os.Getpagesize()
	if offset < 0 || length < 0 || offset > r.size || length > r.size-offset || offset%page != 0 || length%page != 0 {
		return fmt.Errorf("%s %d bytes at %d of a range of %d: not whole pages of it", what, length, offset, r.size)
	}
	if length == 0 {
		return nil
	}
	if err := f(unsafe.Add(r.addr, offset), length); err != nil {
		return fmt.Errorf("%s %d bytes at %d of a range of %d: %w", what, length, offset, r.size, err)
	}
	return nil
}

// Touch writes to every page of length bytes at offset, which are committed, so
// that no later read pays for a fresh page: on the Windows laptop of
// docs/windows.md fresh pages took 26% of the read rate. Bytes keep their values.
// It uses up to workers goroutines.
func (r *Range) Touch(offset, length, workers int) {
	b := r.Bytes()[offset:][:length]
	page := os.Getpagesize()
	workers = max(1, min(workers, len(b)/units.MiB))
	part := int(alignUp(int64((len(b)+workers-1)/workers), int64(page)))
	var wg sync.WaitGroup
	for from := 0; from < len(b); from += part {
		piece := b[from:min(from+part, len(b))]
		wg.Go(func() {
			defer crash.Catch("memory")
			touchPages(piece, page)
		})
	}
	wg.Wait()
}

// touchPages stores to one byte of each page. It stores what is there: a page
// that was never written is made real by the store, not by its value.
func touchPages(b []byte, page int) {
	for i := 0; i < len(b); i += page {
		p := (*byte)(unsafe.Pointer(&b[i]))
		storeByte(p, *p)
	}
}

//go:noinline
func storeByte(p *byte, v byte) { *p = v }

// Release gives the whole range back. It must not be used afterwards; a second
// Release does nothing.
func (r *Range) Release() error {
	if r.addr == nil {
		return nil
	}
	addr, size := r.addr, r.size
	r.addr, r.size = nil, 0
	if err := releaseMemory(addr, size); err != nil {
		return fmt.Errorf("release %d bytes of address space: %w", size, err)
	}
	return nil
}

// Arena is committed, page-aligned memory off the Go heap, for what reads land
// in.
type Arena struct{ r *Range }

// NewArena returns an arena of at least size bytes, rounded up to whole pages.
// Its pages are zero and take no memory until touched.
func NewArena(size int) (*Arena, error) {
	r, err := Reserve(size)
	if err != nil {
		return nil, err
	}
	if err := r.Commit(0, r.size); err != nil {
		r.Release()
		return nil, err
	}
	return &Arena{r}, nil
}

// Bytes returns the arena's memory.
func (a *Arena) Bytes() []byte { return a.r.Bytes() }

// Len returns the arena's size in bytes.
func (a *Arena) Len() int { return a.r.size }

// Close gives the memory back. Nothing may use it afterwards; a second Close
// does nothing.
func (a *Arena) Close() error { return a.r.Release() }
