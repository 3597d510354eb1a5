package host

import (
	"sync"

	"bmoe/internal/clock"
)

// DriveSample is what has moved on a drive up to one instant, in bytes. Only
// differences of two samples mean something.
type DriveSample struct {
	At         int64 // clock.Now
	Read       int64 // read from the drive by anybody
	Written    int64 // written to it by anybody
	OwnRead    int64 // read by this process and by children it has waited for, from any drive
	OwnWritten int64 // likewise written, to any drive
	Has        Has
}

// Drive watches the drive that holds a file. A second process that streams from
// the same drive halves every figure measured on it: this is how it is noticed.
// Sampling allocates nothing; it is safe for concurrent use.
type Drive struct {
	mu     sync.Mutex
	source driveSource
}

// OpenDrive finds the drive that holds the file at path. The error says why it
// cannot be watched, as for a network share, a RAM disk or an operating system
// that keeps no such counters; a caller shows that as not available.
func OpenDrive(path string) (*Drive, error) {
	d := &Drive{}
	if err := d.source.open(path); err != nil {
		return nil, err
	}
	return d, nil
}

// Name returns the system's name of the drive, such as nvme0n1 or C:. Several
// drives below one file system are joined by a plus sign.
func (d *Drive) Name() string { return d.source.name }

// Sample reads the counters.
func (d *Drive) Sample(dst *DriveSample) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*dst = DriveSample{At: clock.Now()}
	d.source.sample(dst)
}

// Close releases the handles.
func (d *Drive) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.close()
}

// Foreign returns how many bytes others than this process moved on the drive
// between two samples, or false if the host did not tell. Reads that are in flight
// at a sample, and what this process moved on other drives, blur it by their size,
// always downwards in the second case.
func Foreign(from, to DriveSample) (int64, bool) {
	if !from.Has.All(HasDrive|HasOwn) || !to.Has.All(HasDrive|HasOwn) {
		return 0, false
	}
	// A read and a write are told apart so that an excess of the one, from
	// counters that lag, does not hide the other.
	reads := (to.Read - from.Read) - (to.OwnRead - from.OwnRead)
	writes := (to.Written - from.Written) - (to.OwnWritten - from.OwnWritten)
	return max(reads, 0) + max(writes, 0), true
}
