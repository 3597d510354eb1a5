// Package host reads what the operating system knows of the machine and of this
// process: memory, CPU time, page faults, bytes moved on a drive, temperature.
//
// Every figure comes with a mark that says whether the host could tell it. What
// it cannot tell stays unmarked and must be shown as not available, never as
// zero: a zero of major faults is a finding, an unknown number of them is not.
package host

import (
	"sync"
	"time"

	"bmoe/internal/clock"
)

// Has is a set of marks: which fields of a sample the host could fill.
type Has uint32

// The marks of Sample, Memory and DriveSample.
const (
	HasCPU         Has = 1 << iota // Sample.CPU
	HasFaults                      // Sample.Faults
	HasMajorFaults                 // Sample.MajorFaults
	HasRSS                         // Sample.RSS
	HasRSSSplit                    // Sample.RSSAnon and Sample.RSSFile
	HasSwap                        // Sample.Swap
	HasTotal                       // Memory.Total
	HasAvailable                   // Memory.Available
	HasLimit                       // Memory.Limit
	HasDrive                       // DriveSample.Read and DriveSample.Written
	HasOwn                         // DriveSample.OwnRead and DriveSample.OwnWritten
	HasLoad                        // LoadSample.Busy, Idle and CPUs
	HasDelay                       // LoadSample.Delay
	HasThrottles                   // LoadSample.Throttles
)

// All says whether every mark of want is set.
func (h Has) All(want Has) bool { return h&want == want }

// Sample is what the host knows of this process at one instant. Times and
// counters run from the start of the process, so a cost is the difference of two
// samples. Sizes are bytes.
type Sample struct {
	At          int64         // clock.Now
	CPU         time.Duration // user and system time of all threads
	Faults      int64         // page faults, with and without I/O
	MajorFaults int64         // page faults that had to wait for I/O
	RSS         int64         // resident memory
	RSSAnon     int64         // of it, memory that belongs to no file
	RSSFile     int64         // of it, pages of mapped files and shared memory
	Swap        int64         // anonymous memory that has been swapped out
	Has         Has
}

// Process samples this process. It keeps its handles open and reuses its buffer,
// so that sampling allocates nothing and can be done for every token. It is safe
// for concurrent use.
type Process struct {
	mu     sync.Mutex
	source processSource
}

// OpenProcess returns a sampler of this process. It cannot fail: what is not
// there is left unmarked in the samples.
func OpenProcess() *Process {
	p := &Process{}
	p.source.open()
	return p
}

// Counters fills CPU time and faults, and clears the rest. It costs one or two
// system calls of about a microsecond: cheap enough for every token.
func (p *Process) Counters(dst *Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*dst = Sample{At: clock.Now()}
	p.source.counters(dst)
}

// Sample fills every field that the host knows. It costs some tens of
// microseconds: fit for a screen that refreshes 15 times a second.
func (p *Process) Sample(dst *Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*dst = Sample{At: clock.Now()}
	p.source.counters(dst)
	p.source.memory(dst)
}

// Close releases the handles. Samples taken afterwards are unmarked where they
// would have needed one.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.source.close()
}

// Memory is what the host has of memory, in bytes.
type Memory struct {
	Total     int64 // physical memory
	Available int64 // what this process could take now without swapping, any limit on it included
	Limit     int64 // the limit set on this process's group (a container's); marked only if there is one
	Has       Has
}

// ReadMemory asks the host how much memory there is.
func ReadMemory() Memory { return readMemory() }

// PhysicalCores returns the number of processor cores that this process may use.
// Hardware threads that share a core count once, and a limit on the process's
// share of the machine is respected. The second result is false if the host does
// not tell.
func PhysicalCores() (int, bool) { return physicalCores() }
