package flashio

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"
)

// Mapping is a read-only mapping of a whole file. It has two parts, as Windows
// has them: the section, which is the object that ties the file to memory, and
// the view, which is the addresses. On the host of docs/windows.md either one
// alone keeps reads serialised, so they are released separately, and a release
// needs both. Its methods are not safe for concurrent use.
type Mapping struct {
	// Path is the file's.
	Path string
	// Data is the file's bytes, nil once the view is gone. Reading it can fail
	// if the file shrinks or its drive goes away: see Guard.
	Data []byte

	id         FileID
	view       unsafe.Pointer // nil once unmapped
	size       int
	section    section   // the system's part
	host       *hostFile // what the simulated host must know, or nil
	hasSection bool      // the section, real or simulated, is there
}

// Map maps a file of the set. No handle of the file is kept open for it.
func (s *Files) Map(file int) (*Mapping, error) {
	if file < 0 || file >= len(s.files) {
		return nil, fmt.Errorf("map: no file %d in a set of %d", file, len(s.files))
	}
	f := &s.files[file]
	if err := s.unchanged(f); err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	p, size, sec, err := mapFile(f.Path)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Path, err)
	}
	m := &Mapping{Path: f.Path, id: f.ID, view: p, size: size, section: sec, hasSection: SectionsExist}
	m.Data = unsafe.Slice((*byte)(p), size)
	live.add(m)
	if s.host != nil {
		m.host, m.hasSection = s.host.file(f.ID), true
		m.host.mapped(+2) // the view and the section
	}
	return m, nil
}

// State says which parts of the mapping are still there. Where the system has
// no sections, section is false from the start, except on the simulated host.
func (m *Mapping) State() (view, section bool) { return m.view != nil, m.hasSection }

// UnmapView gives the addresses back: nothing may read Data any more, and a
// pointer left inside it faults or, worse, reads what comes to lie there. Ask
// InsideMapping first. A second call does nothing.
func (m *Mapping) UnmapView() error {
	if m.view == nil {
		return nil
	}
	live.remove(m)
	p := m.view
	m.view, m.Data = nil, nil
	if err := unmapView(p, m.size); err != nil {
		return fmt.Errorf("unmap %s: %w", m.Path, err)
	}
	if m.host != nil {
		m.host.mapped(-1)
	}
	return nil
}

// CloseSection closes the section object, and reports whether there was one to
// close. Where a mapping is nothing but its view (all systems but Windows)
// there is not, and the call does nothing.
func (m *Mapping) CloseSection() (closed bool, err error) {
	if !m.hasSection {
		return false, nil
	}
	m.hasSection = false
	if err := closeSection(m.section); err != nil {
		return false, fmt.Errorf("close the section of %s: %w", m.Path, err)
	}
	if m.host != nil {
		m.host.mapped(-1)
	}
	return true, nil
}

// Unmap releases view and section.
func (m *Mapping) Unmap() error {
	verr := m.UnmapView()
	_, serr := m.CloseSection()
	return errors.Join(verr, serr)
}

// part checks a range of the view and widens it to whole pages.
func (m *Mapping) part(what string, offset, length int) ([]byte, error) {
	if m.view == nil {
		return nil, fmt.Errorf("%s %s: not mapped", what, m.Path)
	}
	if offset < 0 || length < 0 || offset > m.size || length > m.size-offset {
		return nil, fmt.Errorf("%s %s: %d bytes at %d lie outside its %d bytes", what, m.Path, length, offset, m.size)
	}
	page := os.Getpagesize()
	start := offset &^ (page - 1)
	return m.Data[start : offset+length], nil
}

// Resident counts the pages of length bytes at offset, and those of them that
// are in memory now: on Linux and macOS in the page cache, on Windows in this
// process's working set. Linux answers "all" about files that the user may not
// write.
func (m *Mapping) Resident(offset, length int) (resident, pages int, err error) {
	b, err := m.part("ask residency of", offset, length)
	if err != nil || len(b) == 0 {
		return 0, 0, err
	}
	resident, pages, err = residentPages(b)
	if err != nil {
		return 0, 0, fmt.Errorf("ask residency of %s at %d (%d bytes): %w", m.Path, offset, length, err)
	}
	return resident, pages, nil
}

// Warm reads one byte of every page of length bytes at offset, in order, so
// that the file's bytes are in the page cache. A file that has shrunk is an
// error.
func (m *Mapping) Warm(offset, length int) error {
	b, err := m.part("warm", offset, length)
	if err != nil || len(b) == 0 {
		return err
	}
	adviseSequential(b)
	return Guard(func() { sweep(b, os.Getpagesize()) })
}

//go:noinline
func sweep(b []byte, page int) (sum byte) {
	for i := 0; i < len(b); i += page {
		sum ^= b[i]
	}
	return sum
}

// MappingFault is the error of a read through a mapping that the system could
// not satisfy, because the file shrank or its drive failed.
type MappingFault struct {
	Path   string
	Offset int64 // where in the file
}

func (e *MappingFault) Error() string {
	return fmt.Sprintf("read %s at %d through its mapping: the file has shrunk or cannot be read any more", e.Path, e.Offset)
}

// Guard runs f and turns a fault inside a live mapping into a *MappingFault. It
// covers the calling goroutine only, so each worker that reads a mapping has
// its own Guard. Other panics pass through. f is cut off where it faulted.
func Guard(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			m, offset := live.find(p.Addr())
			if m == nil {
				panic(p)
			}
			err = &MappingFault{m.Path, int64(offset)}
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// live knows the views of this process, to name the file behind a fault.
var live mappings

type mappings struct {
	mu   sync.Mutex
	list []*Mapping
}

func (l *mappings) add(m *Mapping) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, m)
}

func (l *mappings) remove(m *Mapping) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x *Mapping) bool { return x == m })
}

// viewsOf returns the first address of every view of the set's files.
func (l *mappings) viewsOf(s *Files) []uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var at []uintptr
	for _, m := range l.list {
		if slices.ContainsFunc(s.files, func(f File) bool { return f.ID == m.id }) {
			at = append(at, uintptr(m.view))
		}
	}
	return at
}

func (l *mappings) find(addr uintptr) (*Mapping, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.list {
		if base := uintptr(m.view); addr >= base && addr-base < uintptr(m.size) {
			return m, int(addr - base)
		}
	}
	return nil, 0
}
