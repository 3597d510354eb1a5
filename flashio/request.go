package flashio

import (
	"errors"
	"fmt"
	"io"
)

// Errors that callers can act on. Requests and calls wrap them with the
// operation, the file and the offset.
var (
	// ErrClosed completes requests that a closed reader will not serve.
	ErrClosed = errors.New("the reader is closed")
	// ErrMisaligned completes a request whose offset, length or address is not
	// a multiple of the set's alignment. Direct I/O would refuse it on some
	// systems, serve it slowly on others and silently accept it under Wine, so
	// it is refused everywhere.
	ErrMisaligned = errors.New("not aligned for direct I/O")
	// ErrNotAvailable marks what this system cannot tell or do.
	ErrNotAvailable = errors.New("not available on this system")
)

// Request asks for one aligned window of a file. The caller fills the first
// group of fields, submits the request, and must not touch it or Buf until
// ReadDone has been called with it. Afterwards it may be used again: a request
// carries its own queue links, so submitting one allocates nothing.
type Request struct {
	// File is the index of the shard in the set.
	File int
	// Offset is where the window begins, a multiple of the set's alignment.
	Offset int64
	// Buf receives the window. Its address and length are multiples of the
	// set's alignment. It should lie off the Go heap (see Arena).
	Buf []byte
	// Need is how many bytes of Buf must be filled. The last window of a file
	// may end short of len(Buf), but never short of Need; zero means that a
	// window wholly past the end is acceptable.
	Need int
	// Spec marks a speculative read: demand requests overtake it in the queue.
	// It may be changed only by the reader (Promote) while queued.
	Spec bool
	// Done is told when the request is over. It is called exactly once, except
	// for a request that Cancel took back.
	Done Completer

	// N is the number of bytes read, and Err why they are fewer than Need.
	N   int
	Err error
	// Lane is the lane (lanes) or the place in flight (io_uring) that served
	// the request, or -1 if none did.
	Lane int
	// Queued is when it was submitted; Started and Ended bound the time inside
	// the system call (under io_uring: from its submission to the moment its
	// completion was seen). All are clock.Now; Started and Ended are zero when
	// no read was made.
	Queued, Started, Ended int64

	next, prev *Request
	queued     *list // the list that holds the request, guarded by the queue's lock
}

// Completer learns of finished requests. ReadDone is called on the reader's
// own goroutine, so it must not block, and should do no more than hand the
// request on: until it returns, that lane reads nothing.
type Completer interface {
	ReadDone(*Request)
}

// Reader fetches windows of a set of files. All methods are safe for
// concurrent use; Submit, Promote and Cancel hold a lock for a few
// dozen instructions and never wait for a read.
type Reader interface {
	// Submit queues requests in order. A request that cannot be served, because
	// it is misaligned or the reader is closed, still completes through Done.
	// To allocate nothing, pass a slice that is kept: Submit(kept[i:j]...).
	Submit(...*Request)
	// Promote turns a queued speculative request into a demand request, behind
	// the demand already queued. It reports whether it did; false means that
	// the request was not waiting as speculation (any more).
	Promote(*Request) bool
	// Cancel takes a request back that no lane has begun. True means that it
	// was removed and Done will not be called; false that it completes.
	Cancel(*Request) bool
	// Stats copies the counters into dst, reusing dst's memory: after the
	// first call with the same dst it allocates nothing.
	Stats(dst *Stats)
	// Lanes is how many reads can be in flight.
	Lanes() int
	// Mode says how the bytes are fetched, as it was found at the last open.
	Mode() Mode
	// Engine is "lanes" or "uring". A ring that fails for good is replaced by
	// lanes; Mode then says why.
	Engine() string
	// InFlight appends the reads that are in flight to dst.
	InFlight(dst []Flight) []Flight
	// Leave says of a read in flight, which may never end, that nobody waits for
	// it, Close included. Its request and its memory stay the system's until Done
	// has been called.
	Leave(*Request)
	// Close serves no more reads: it waits for those in flight that were not left
	// behind, completes those still queued with ErrClosed and closes all handles.
	Close() error
}

// Mode says how a reader fetches bytes.
type Mode struct {
	// Direct is true when all files are read past the page cache.
	Direct bool
	// Hint is true when the system was asked not to keep what is read in its
	// cache but promises nothing (F_NOCACHE on macOS). Direct is then false.
	Hint bool
	// Simulated is true on the simulated host: such figures are never mixed
	// with measured ones.
	Simulated bool
	// Reason says why reads are not direct: empty when they are.
	Reason string
	// Fallback says why a reader that was opened as io_uring reads in lanes by
	// now; empty unless the ring failed.
	Fallback string
}

// String is the word that tables and panes show: direct, nocache, BUFFERED or
// SIMULATED.
func (m Mode) String() string {
	switch {
	case m.Simulated:
		return "SIMULATED"
	case m.Direct:
		return "direct"
	case m.Hint:
		return "nocache"
	}
	return "BUFFERED"
}

// ReadError is the error of a failed read. It names the file and the window.
type ReadError struct {
	Path   string
	Offset int64 // bytes from the start of the file
	Length int   // bytes asked for
	Got    int   // bytes read before the failure
	Err    error
}

func (e *ReadError) Error() string {
	if errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("read %s at %d (%d bytes): the file ends after %d of them: it is shorter than when it was opened",
			e.Path, e.Offset, e.Length, e.Got)
	}
	return fmt.Sprintf("read %s at %d (%d bytes): %v", e.Path, e.Offset, e.Length, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }
