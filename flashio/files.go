package flashio

import (
	"errors"
	"fmt"
	"path/filepath"
)

// File is one shard of a set.
type File struct {
	Path string // absolute
	Facts
}

// Files is a set of files read as one model: their sizes, identities and the
// alignment they need. It holds no file open, because an open handle can keep
// a mapping's effect alive (docs/windows.md).
type Files struct {
	files  []File
	opener Opener
	host   *SimulatedHost // nil on the real host
	align  int64
	round  int64
}

// FileOptions are the choices of OpenFiles. The zero value is the normal one.
type FileOptions struct {
	// Opener replaces System, in tests. Mappings are always the system's.
	Opener Opener
	// Host, if set, is the simulated host on which the files lie. It is then
	// the opener.
	Host *SimulatedHost
	// Round is the multiple of bytes to which Window extends lengths, where the
	// file is long enough: 0 is the system's own (64 KiB on Windows, none
	// elsewhere), a negative number none. It is a power of two.
	Round int64
}

// OpenFiles asks the system about each file and returns them as a set. It
// fails if one is missing, is not a regular file or is not readable.
func OpenFiles(paths []string, o FileOptions) (*Files, error) {
	if len(paths) == 0 {
		return nil, errors.New("open files: no file given")
	}
	s := &Files{opener: o.Opener, host: o.Host, round: o.Round}
	switch {
	case s.host != nil:
		s.opener = s.host
	case s.opener == nil:
		s.opener = System
	}
	if s.round == 0 {
		s.round = readRound
	}
	if s.round > 0 && s.round&(s.round-1) != 0 {
		return nil, fmt.Errorf("open files: windows cannot be rounded to %d bytes: not a power of two", s.round)
	}
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", p, err)
		}
		facts, err := s.opener.Facts(abs)
		if err != nil {
			return nil, err
		}
		// Facts need no permission to read; say now what would fail later.
		h, err := s.opener.Open(abs, false)
		if err != nil {
			return nil, err
		}
		if err := h.Close(); err != nil {
			return nil, fmt.Errorf("close %s: %w", abs, err)
		}
		s.files = append(s.files, File{abs, facts})
		s.align = max(s.align, int64(facts.Align()))
	}
	return s, nil
}

// Len returns the number of files.
func (s *Files) Len() int { return len(s.files) }

// File returns the i-th file.
func (s *Files) File(i int) File { return s.files[i] }

// Size returns the bytes of all files together.
func (s *Files) Size() int64 {
	var n int64
	for i := range s.files {
		n += s.files[i].Size
	}
	return n
}

// Align returns the multiple, in bytes, that offset, length and address of
// every read of the set keep to: a power of two that holds for all its files.
func (s *Files) Align() int { return int(s.align) }

// Simulated reports whether the set is read through the simulated host.
func (s *Files) Simulated() bool { return s.host != nil }

// unchanged checks that a file is still the one that was opened, before it is
// opened anew: another file under its name would be read as if it were the old.
// It goes by size and time, because exFAT and some FUSE file systems number a
// file anew each time they look at it.
func (s *Files) unchanged(f *File) error {
	now, err := s.opener.Facts(f.Path)
	switch {
	case err != nil:
		return err
	case now.Size != f.Size:
		return fmt.Errorf("open %s: it has %d bytes now and had %d when the model was opened", f.Path, now.Size, f.Size)
	case now.Modified != f.Modified:
		return fmt.Errorf("open %s: it was written to, or another file has taken its place, since the model was opened", f.Path)
	}
	return nil
}

// Window is an aligned stretch of a file around a range of wanted bytes.
type Window struct {
	Offset int64 // where it begins, aligned
	Length int   // bytes of memory to read into, a multiple of the alignment
	Skip   int   // where in the window the wanted bytes begin
	Need   int   // bytes that must arrive: Skip plus the wanted length
}

// Window returns the aligned window around length bytes at offset of a file.
// Where the set rounds lengths, the window is extended at its end, but never
// past the aligned end of the file.
func (s *Files) Window(file int, offset, length int64) (Window, error) {
	if file < 0 || file >= len(s.files) {
		return Window{}, fmt.Errorf("window: no file %d in a set of %d", file, len(s.files))
	}
	f := &s.files[file]
	if offset < 0 || length < 0 || offset > f.Size || length > f.Size-offset {
		return Window{}, fmt.Errorf("window of %s: %d bytes at %d lie outside its %d bytes", f.Path, length, offset, f.Size)
	}
	start := offset &^ (s.align - 1)
	end := alignUp(offset+length, s.align)
	if s.round > 0 {
		end = min(start+alignUp(end-start, s.round), alignUp(f.Size, s.align))
	}
	return Window{
		Offset: start,
		Length: int(end - start),
		Skip:   int(offset - start),
		Need:   int(offset - start + length),
	}, nil
}

// MostWindow returns the length of the largest window around length bytes, wherever
// they lie.
func (s *Files) MostWindow(length int) int {
	n := alignUp(int64(length)+s.align-1, s.align)
	if s.round > 0 {
		n = alignUp(n, s.round)
	}
	return int(n)
}

// alignUp rounds n up to a multiple of a, a power of two.
func alignUp(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }
