package host

import (
	"sync"
	"time"

	"bmoe/internal/clock"
	"bmoe/internal/units"
)

// LoadSample is what the processors that this process may use have done up to
// one instant. Only differences of two samples mean something.
type LoadSample struct {
	At        int64         // clock.Now
	CPUs      int           // processors that the sums run over
	Busy      time.Duration // in use by anybody, a hypervisor's other guests included (steal)
	Idle      time.Duration
	Own       time.Duration // CPU time of this process
	Delay     time.Duration // time for which threads of this process were ready but had no processor, summed over them
	Throttles int64         // how often a processor slowed itself down for its temperature
	Has       Has
}

// Load watches the processors. It is safe for concurrent use.
type Load struct {
	mu      sync.Mutex
	process processSource // its counters need no handle
	source  loadSource
}

// OpenLoad returns a watcher. It cannot fail: what is not there is left unmarked
// in the samples.
func OpenLoad() *Load {
	l := &Load{}
	l.source.open()
	return l
}

// Sample fills all but Delay and Throttles. It allocates nothing and costs some
// tens of microseconds, more on a machine with many processors.
func (l *Load) Sample(dst *LoadSample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sample(dst)
}

// SampleAll fills every field that the host knows. It reads a file for every
// thread: fit for the beginning and the end of a run.
func (l *Load) SampleAll(dst *LoadSample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sample(dst)
	l.source.delays(dst)
}

func (l *Load) sample(dst *LoadSample) {
	*dst = LoadSample{At: clock.Now()}
	l.source.processors(dst)
	var own Sample
	l.process.counters(&own)
	dst.Own = own.CPU
	dst.Has |= own.Has & HasCPU
}

// Close releases the handles.
func (l *Load) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.close()
}

// loadTick is how coarsely a system may count its processors' time: Linux and
// Windows count in hundredths of a second, or a little more.
const loadTick = 16 * time.Millisecond

// Others returns the share of the processors' time, 0 to 1, that others than
// this process used between two samples, or false where the accounts are not
// those of the processors that this process runs on: in some containers they
// stand still, or run for another set of processors.
func Others(from, to LoadSample) (share float64, ok bool) {
	others, all, ok := others(from, to)
	if !ok {
		return 0, false
	}
	return float64(others) / float64(all), true
}

// others returns the processors' time that others used, and all there was.
func others(from, to LoadSample) (others, all time.Duration, ok bool) {
	if !(from.Has & to.Has).All(HasLoad|HasCPU) || from.CPUs != to.CPUs || to.At <= from.At {
		return 0, 0, false
	}
	all = time.Duration(to.At-from.At) * time.Duration(to.CPUs)
	busy, idle, own := to.Busy-from.Busy, to.Idle-from.Idle, to.Own-from.Own
	slack := all/5 + 2*loadTick*time.Duration(to.CPUs)
	if off := busy + idle - all; off < -slack || off > slack || own > busy+slack {
		return 0, 0, false
	}
	return max(busy-own, 0), all, true
}

// What spoils a run. Below these shares nobody could tell a run from an
// undisturbed one; above them, figures of equal runs have been seen to differ by
// a fifth and more.
const (
	driveShare = 0.10           // of what the run read, moved by others
	driveLeast = 16 * units.MiB // bytes, above that: what any system moves by itself
	cpuShare   = 0.05           // of the processors' time, used by others
	delayShare = 0.02           // of the time, for which our threads were ready and had no processor
)

// DriveDisturbed reports whether others moved enough on the drive between two
// samples to slow what this process read, and whether the host could tell. Who
// read nothing from the drive was not slowed by it.
func DriveDisturbed(from, to DriveSample) (disturbed, known bool) {
	moved, ok := Foreign(from, to)
	own := to.OwnRead - from.OwnRead
	return ok && own > 0 && float64(moved) > driveShare*float64(own)+driveLeast, ok
}

// CPUDisturbed reports whether others kept this process from running between two
// samples, and whether the host could tell. Both must be seen: others at work,
// and threads of ours that waited for a processor. Either alone is harmless:
// others may run on processors that we leave idle, and with more threads than
// processors ours wait for each other.
func CPUDisturbed(from, to LoadSample) (disturbed, known bool) {
	used, all, ok := others(from, to)
	if !ok || !(from.Has & to.Has).All(HasDelay) {
		return false, false
	}
	wall := time.Duration(to.At - from.At)
	atWork := float64(used) > cpuShare*float64(all)+float64(loadTick)*float64(to.CPUs)
	return atWork && float64(to.Delay-from.Delay) > delayShare*float64(wall), true
}

// Throttled reports whether a processor slowed itself down between two samples,
// and whether the host counts that.
func Throttled(from, to LoadSample) (throttled, known bool) {
	known = (from.Has & to.Has).All(HasThrottles)
	return known && to.Throttles > from.Throttles, known
}
