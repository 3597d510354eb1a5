package flashio

import (
	"sync"
	"sync/atomic"
	"time"

	"bmoe/internal/clock"
	"bmoe/internal/units"
)

// SimulateOptions set the pace of the simulated host (docs/flash-io.md). The zero
// value is the pace of the laptop on which the effect was found, with one lane:
// 576 KiB take 0.6 ms.
type SimulateOptions struct {
	// Opener reads the bytes, System if nil.
	Opener Opener
	// Fixed is the time that any read takes, 100 us if zero.
	Fixed time.Duration
	// BytesPerSecond is the rate of one lane beyond that, 1125 MiB/s if zero.
	BytesPerSecond float64
}

// SimulatedHost is an Opener (see FileOptions.Host) that obeys the two rules measured on NTFS: direct
// reads of a file with a live view or section are served one at a time, and so
// are those of a handle that was opened under one, until it is opened again
// without. Any other read has the drive to itself.
//
// Bytes come from the real file through the page cache, so that the drive of
// this host does not set the pace. Time is kept as a schedule: a read is given
// a start and an end from the rules, and waits in a system call until its end,
// so rates follow from the schedule and not from how locks are handed over.
type SimulatedHost struct {
	opener    Opener
	fixed     int64 // ns
	nsPerByte float64

	mu    sync.Mutex
	files map[FileID]*hostFile

	inTurn, atOnce atomic.Int64 // direct reads served
}

// Served returns how many direct reads the host has served one at a time, and
// how many side by side with others.
func (h *SimulatedHost) Served() (inTurn, atOnce int64) { return h.inTurn.Load(), h.atOnce.Load() }

// hostFile is what the host knows of one file, whatever its name.
type hostFile struct {
	mu        sync.Mutex
	maps      int   // live views and sections
	exclusive int64 // when the last serialised read ends
	shared    int64 // when the last other direct read ends
}

// NewSimulatedHost returns a host without files. Sets that are to see each
// other's mappings, as they would on a real host, share one.
func NewSimulatedHost(opt SimulateOptions) *SimulatedHost {
	if opt.Opener == nil {
		opt.Opener = System
	}
	if opt.Fixed == 0 {
		opt.Fixed = 100 * time.Microsecond
	}
	if opt.BytesPerSecond == 0 {
		opt.BytesPerSecond = 1125 * units.MiB
	}
	return &SimulatedHost{
		opener:    opt.Opener,
		fixed:     opt.Fixed.Nanoseconds(),
		nsPerByte: 1e9 / opt.BytesPerSecond,
		files:     map[FileID]*hostFile{},
	}
}

func (h *SimulatedHost) file(id FileID) *hostFile {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.files[id]
	if f == nil {
		f = &hostFile{}
		h.files[id] = f
	}
	return f
}

// mapped counts a view or a section that came (+1) or went (-1).
func (f *hostFile) mapped(n int) {
	f.mu.Lock()
	f.maps += n
	f.mu.Unlock()
}

// Facts returns the file's own.
func (h *SimulatedHost) Facts(path string) (Facts, error) {
	f, err := h.opener.Facts(path)
	f.NoDirect = "" // the simulated drive takes direct reads wherever its files lie
	return f, err
}

// Open opens the file through the page cache, whatever direct says: the drive
// is simulated.
func (h *SimulatedHost) Open(path string, direct bool) (Handle, error) {
	facts, err := h.opener.Facts(path)
	if err != nil {
		return nil, err
	}
	inner, err := h.opener.Open(path, false)
	if err != nil {
		return nil, err
	}
	f := h.file(facts.ID)
	f.mu.Lock()
	under := f.maps > 0
	f.mu.Unlock()
	return &simulatedHandle{Handle: inner, host: h, file: f, direct: direct, under: under}, nil
}

// simulatedHandle is one lane's handle.
type simulatedHandle struct {
	Handle
	host   *SimulatedHost
	file   *hostFile
	direct bool
	under  bool  // opened under a mapping
	free   int64 // when this lane's last read ends
}

func (h *simulatedHandle) ReadAt(p []byte, off int64) (int, error) {
	now := clock.Now()
	n, err := h.Handle.ReadAt(p, off)
	if n == 0 {
		return n, err
	}
	end := h.schedule(now, h.host.fixed+int64(h.host.nsPerByte*float64(n)))
	if wait := end - clock.Now(); wait > 0 {
		sleep(wait)
	}
	return n, err
}

// schedule gives a read that arrived now its place and returns when it ends.
func (h *simulatedHandle) schedule(now, service int64) int64 {
	f := h.file
	f.mu.Lock()
	defer f.mu.Unlock()
	start := now
	if h.free < now && now-h.free < pacingSlack {
		start = h.free
	}
	if serial := h.direct && (h.under || f.maps > 0); serial {
		start = max(start, f.exclusive, f.shared)
		f.exclusive = start + service
		h.host.inTurn.Add(1)
	} else if h.direct {
		start = max(start, f.exclusive)
		f.shared = max(f.shared, start+service)
		h.host.atOnce.Add(1)
	}
	h.free = start + service
	return h.free
}
