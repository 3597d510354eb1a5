package host

import (
	"bytes"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// loadSource reads /proc/stat for the processors in this process's affinity set,
// and each thread's schedstat.
type loadSource struct {
	stat      procFile
	allowed   unix.CPUSet
	known     bool     // which processors are allowed
	throttles []string // files that count
	buf       [64 << 10]byte
	task      [256]byte
}

// userTick is the unit of /proc/stat: USER_HZ is 100 on every architecture that
// Go runs on.
const userTick = 10 * time.Millisecond

func (s *loadSource) open() {
	s.stat, _ = openProcFile("/proc/stat")
	s.known = unix.SchedGetaffinity(0, &s.allowed) == nil
	s.throttles, _ = filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count") // the pattern is well formed
}

func (s *loadSource) close() error { return s.stat.close() }

func (s *loadSource) processors(dst *LoadSample) {
	if !s.known {
		return
	}
	busy, idle, n, ok := processorTimes(s.stat.read(s.buf[:]), s.allowed.IsSet)
	if ok && n == s.allowed.Count() {
		dst.Busy, dst.Idle, dst.CPUs = busy, idle, n
		dst.Has |= HasLoad
	}
}

// processorTimes adds up the lines of /proc/stat (proc_stat(5)) of the allowed
// processors. A guest's time is in user time already.
func processorTimes(text []byte, allowed func(cpu int) bool) (busy, idle time.Duration, n int, ok bool) {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return busy, idle, n, n > 0
		}
		line := text[:end]
		text = text[end+1:]
		if len(line) < 4 || string(line[:3]) != "cpu" {
			return busy, idle, n, n > 0 // the processors come first
		}
		if line[3] == ' ' {
			continue // all of them
		}
		cpu, rest, ok := number(line[3:])
		if !ok {
			return 0, 0, 0, false
		}
		if !allowed(int(cpu)) {
			continue
		}
		n++
		for field := range 8 { // user nice system idle iowait irq softirq steal
			var ticks int64
			if ticks, rest, ok = number(rest); !ok {
				return 0, 0, 0, false
			}
			if field == 3 || field == 4 {
				idle += time.Duration(ticks) * userTick
			} else {
				busy += time.Duration(ticks) * userTick
			}
		}
	}
}

func (s *loadSource) delays(dst *LoadSample) {
	var sum int64
	threads := 0
	for tid := range s.threads {
		f, err := openProcFile("/proc/self/task/" + tid + "/schedstat")
		if err != nil {
			continue // the thread has ended, or the kernel keeps no such file
		}
		if delay, ok := runDelay(f.read(s.task[:])); ok {
			sum += delay
			threads++
		}
		f.close()
	}
	if threads > 0 {
		dst.Delay = time.Duration(sum)
		dst.Has |= HasDelay
	}
	for _, path := range s.throttles {
		if n, ok := readNumber(path); ok {
			dst.Throttles += n
			dst.Has |= HasThrottles
		}
	}
}

// threads calls yield with the number of each thread of this process, as text.
func (s *loadSource) threads(yield func(tid string) bool) {
	fd, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, s.buf[:])
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(s.buf[:n], -1, names)
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil && !yield(name) {
			return
		}
	}
}

// runDelay takes a thread's time on the run queue, in ns, out of its schedstat:
// time on the processor, time waiting for one, slices.
func runDelay(text []byte) (int64, bool) {
	_, rest, ok := number(text)
	delay, _, okDelay := number(rest)
	return delay, ok && okDelay
}
