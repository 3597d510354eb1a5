package flashio

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"unsafe"
)

// access is how one shard is opened: decided once per open of a reader, by
// trying, and then the same for every lane.
type access struct {
	direct bool
	hint   bool   // not direct, but the cache was asked to stay out of it
	reason string // why not direct
}

// openFile is a handle and how it was opened.
type openFile struct {
	handle Handle
	direct bool
}

// openSet opens every file of the set n times and says how. handles[lane][file]
// are all closed again if one fails.
func openSet(s *Files, n int, noDirect bool) (handles [][]openFile, mode Mode, err error) {
	defer func() {
		if err != nil {
			closeSet(handles)
			handles = nil
		}
	}()
	handles = make([][]openFile, n)
	for i := range handles {
		handles[i] = make([]openFile, 0, len(s.files))
	}
	mode = Mode{Direct: true, Simulated: s.host != nil}
	for fi := range s.files {
		f := &s.files[fi]
		how, first, err := openFirst(s, f, noDirect)
		if err != nil {
			return handles, mode, err
		}
		handles[0] = append(handles[0], openFile{first, how.direct})
		for lane := 1; lane < n; lane++ {
			h, err := s.opener.Open(f.Path, how.direct)
			if err != nil {
				return handles, mode, err
			}
			handles[lane] = append(handles[lane], openFile{h, how.direct})
		}
		if !how.direct {
			mode.Hint = how.hint && (mode.Direct || mode.Hint)
			mode.Direct = false
			if mode.Reason == "" {
				mode.Reason = how.reason
			}
		}
	}
	return handles, mode, nil
}

// openFirst opens one file, directly if possible, and proves by a real read
// that it works that way.
func openFirst(s *Files, f *File, noDirect bool) (access, Handle, error) {
	if err := s.unchanged(f); err != nil {
		return access{}, nil, err
	}
	how := access{direct: true}
	switch {
	case noDirect:
		how = access{reason: "direct I/O was turned off"}
	case f.NoDirect != "":
		how = access{reason: f.NoDirect}
	}
	if how.direct {
		h, err := s.opener.Open(f.Path, true)
		if err == nil {
			err = probe(h, s, f)
			if err == nil {
				how.direct, how.hint, how.reason = directKind(h)
				return how, h, nil
			}
			if cerr := h.Close(); cerr != nil {
				return how, nil, fmt.Errorf("close %s: %w", f.Path, cerr)
			}
			if refusesDirect(err) {
				err = NoDirect(err)
			}
		}
		if !errors.Is(err, errNoDirect) {
			return how, nil, err
		}
		how = access{reason: err.Error()}
	}
	h, err := s.opener.Open(f.Path, false)
	if err != nil {
		return how, nil, err
	}
	if err := probe(h, s, f); err != nil {
		return how, nil, errors.Join(err, h.Close())
	}
	return how, h, nil
}

// probe reads the file's first window, as a lane would.
func probe(h Handle, s *Files, f *File) error {
	buf := alignedBytes(int(s.align), int(s.align))
	need := int(min(f.Size, s.align))
	n, err := readWindow(h, buf, 0, need, int(s.align), never)
	if err != nil {
		return &ReadError{Path: f.Path, Length: len(buf), Got: n, Err: err}
	}
	return nil
}

// closeSet closes all handles and joins what went wrong.
func closeSet(handles [][]openFile) error {
	var errs []error
	for _, lane := range handles {
		for _, h := range lane {
			errs = append(errs, h.handle.Close())
		}
	}
	return errors.Join(errs...)
}

// readWindow fills buf from offset off until need bytes are there. Short reads
// are continued, from the last aligned byte, because direct I/O takes no other
// offset. What a signal interrupted is tried again, unless giveUp says that nobody
// wants it any more. It returns io.ErrUnexpectedEOF if the file ends before need.
func readWindow(h Handle, buf []byte, off int64, need, align int, giveUp func() bool) (int, error) {
	have := 0 // bytes of buf that are filled
	for interrupts := 0; ; {
		at := have &^ (align - 1)
		n, err := h.ReadAt(buf[at:], off+int64(at))
		if n <= 0 && errors.Is(err, syscall.EINTR) {
			if interrupts++; interrupts < mostInterrupts && !giveUp() {
				continue
			}
		}
		if at+n > have {
			have = at + n
		} else if err == nil || err == io.EOF {
			if have < need {
				return have, io.ErrUnexpectedEOF
			}
			return have, nil
		}
		if have >= need {
			return have, nil
		}
		if err != nil && err != io.EOF {
			return have, err
		}
	}
}

// checkAligned is the assertion behind every read: Wine and some file systems
// accept reads that a drive on another host would refuse.
func checkAligned(r *Request, align int64) error {
	mask := align - 1
	switch {
	case r.Offset < 0 || r.Offset&mask != 0:
		return fmt.Errorf("%w: offset %d, multiples of %d are read", ErrMisaligned, r.Offset, align)
	case len(r.Buf) == 0 || int64(len(r.Buf))&mask != 0:
		return fmt.Errorf("%w: %d bytes, multiples of %d are read", ErrMisaligned, len(r.Buf), align)
	case int64(uintptr(unsafe.Pointer(unsafe.SliceData(r.Buf))))&mask != 0:
		return fmt.Errorf("%w: memory at %p, multiples of %d are read into", ErrMisaligned, unsafe.SliceData(r.Buf), align)
	case r.Need < 0 || r.Need > len(r.Buf):
		return fmt.Errorf("%w: %d bytes needed of a window of %d", ErrMisaligned, r.Need, len(r.Buf))
	}
	return nil
}

// alignedBytes returns n bytes of Go heap that begin at a multiple of align.
func alignedBytes(n, align int) []byte {
	b := make([]byte, n+align)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
	return b[skip : skip+n : skip+n]
}
