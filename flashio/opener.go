package flashio

import (
	"errors"
	"fmt"
)

// errNoDirect wraps what the system says when it refuses direct I/O on a file.
// It is not exported: a refusal becomes the Mode of the reader, not an error.
var errNoDirect = errors.New("direct I/O refused")

// NoDirect marks err as a refusal of direct I/O, for openers other than
// System. The reader then falls back to buffered reads and says why.
func NoDirect(err error) error { return fmt.Errorf("%w: %w", errNoDirect, err) }

// Opener opens files for reading. System is the real one; tests put faults in
// between (package flashtest).
type Opener interface {
	// Facts asks what the system knows of the file at path.
	Facts(path string) (Facts, error)
	// Open opens the file, past the page cache if direct is set. An error made
	// by NoDirect means that only direct access was refused.
	Open(path string, direct bool) (Handle, error)
}

// Handle is one open file, used by one goroutine at a time.
type Handle interface {
	// ReadAt makes one positioned read of at most len(p) bytes at offset off.
	// Unlike io.ReaderAt it may be short without an error; at the end of the
	// file it returns 0 and nil, or io.EOF. A read that a signal interrupted returns
	// 0 and EINTR.
	ReadAt(p []byte, off int64) (int, error)
	Close() error
}

// FileID tells files apart by what they are and not by name: hard links have
// the same one.
type FileID struct {
	Volume uint64 // device or volume serial number
	File   uint64 // inode or file index
}

// Facts is what the system says about a file. Zero means that it did not say.
type Facts struct {
	Size     int64 // bytes
	Modified int64 // when the contents last changed, nanoseconds of Unix time
	ID       FileID
	// Page is the size of a memory page.
	Page int
	// Logical and Physical are the device's sector sizes.
	Logical, Physical int
	// DirectOffset and DirectMemory are what the file system asks of direct
	// reads: multiples for offset and length, and for the buffer's address.
	DirectOffset, DirectMemory int
	// NoDirect says why direct I/O is impossible, if the system says so
	// before it is tried.
	NoDirect string
}

// Align returns the multiple, in bytes, that offsets, lengths and addresses of
// reads must keep to: the largest of all that was asked for. The page is among
// them because a window that fills whole pages is transferred in the fewest
// pieces.
func (f Facts) Align() int {
	return max(f.Page, f.Logical, f.Physical, f.DirectOffset, f.DirectMemory, 512)
}

// System opens files by the operating system's own calls.
var System Opener = systemOpener{}

type systemOpener struct{}

func (systemOpener) Facts(path string) (Facts, error) { return systemFacts(path) }

func (systemOpener) Open(path string, direct bool) (Handle, error) { return systemOpen(path, direct) }
