package host

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"bmoe/internal/clock"
)

// burn keeps one processor busy for at least d of CPU time.
func burn(t *testing.T, p *Process, d time.Duration) {
	t.Helper()
	var from, now Sample
	p.Counters(&from)
	deadline := clock.Now() + int64(20*time.Second)
	for x := uint64(1); ; {
		for range 1_000_000 {
			x = x*6364136223846793005 + 1
		}
		p.Counters(&now)
		if x == 0 || now.CPU-from.CPU >= d {
			return
		}
		if clock.Now() > deadline {
			t.Fatalf("CPU time rose only from %v to %v in 20 s of computing", from.CPU, now.CPU)
		}
	}
}

func TestProcessCountersFollowWhatTheProcessDoes(t *testing.T) {
	p := OpenProcess()
	defer p.Close()
	// What the heap holds free would be touched without a fault.
	debug.FreeOSMemory()
	var before, after Sample
	p.Sample(&before)
	if !before.Has.All(HasCPU | HasRSS) {
		t.Skipf("this system knows only %b", before.Has) // host_other.go
	}
	start := clock.Now()
	burn(t, p, 30*time.Millisecond)
	const size = 64 << 20
	touched := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		touched[i] = 1
	}
	p.Sample(&after)
	wall := clock.Since(start)
	runtime.KeepAlive(touched)

	if cpu := after.CPU - before.CPU; cpu < 30*time.Millisecond || cpu > wall*time.Duration(runtime.NumCPU())+50*time.Millisecond {
		t.Errorf("CPU time rose by %v in %v", cpu, wall)
	}
	// Huge pages take one fault for 512 small ones.
	if got := after.Faults - before.Faults; after.Has.All(HasFaults) && got < size/(2<<20) {
		t.Errorf("%d page faults while touching %d bytes", got, size)
	}
	if grown := after.RSS - before.RSS; grown < size*9/10 || grown > size*3/2 {
		t.Errorf("resident memory grew by %d, want about %d", grown, size)
	}
	if after.Has.All(HasRSSSplit) {
		if grown := after.RSSAnon - before.RSSAnon; grown < size*9/10 {
			t.Errorf("anonymous memory grew by %d, want about %d", grown, size)
		}
		if sum := after.RSSAnon + after.RSSFile; sum < after.RSS*9/10 || sum > after.RSS*11/10 {
			t.Errorf("anonymous %d and file %d do not add up to %d", after.RSSAnon, after.RSSFile, after.RSS)
		}
	}
	if after.At <= before.At {
		t.Errorf("stamps %d and %d", before.At, after.At)
	}
}

func TestCountersLeaveMemoryUnmarked(t *testing.T) {
	p := OpenProcess()
	defer p.Close()
	var s Sample
	p.Sample(&s)
	p.Counters(&s)
	if s.Has&(HasRSS|HasRSSSplit|HasSwap) != 0 || s.RSS != 0 {
		t.Fatalf("an earlier sample's memory is still there: %+v", s)
	}
}

func TestSamplingDoesNotAllocate(t *testing.T) {
	p := OpenProcess()
	defer p.Close()
	var s Sample
	if n := testing.AllocsPerRun(100, func() { p.Counters(&s); p.Sample(&s) }); n != 0 {
		t.Errorf("a sample of the process allocates %v times", n)
	}
	d, err := OpenDrive(".")
	if err != nil {
		t.Logf("no drive to watch: %v", err)
		return
	}
	defer d.Close()
	var ds DriveSample
	if n := testing.AllocsPerRun(100, func() { d.Sample(&ds) }); n != 0 {
		t.Errorf("a sample of the drive allocates %v times", n)
	}
}

func TestMemoryIsPlausible(t *testing.T) {
	m := ReadMemory()
	if m.Has == 0 {
		t.Skip("this system tells nothing of its memory") // host_other.go
	}
	if !m.Has.All(HasTotal|HasAvailable) || m.Total < 64<<20 || m.Available <= 0 || m.Available > m.Total {
		t.Fatalf("%+v", m)
	}
}

func TestPhysicalCoresArePlausible(t *testing.T) {
	n, ok := PhysicalCores()
	if ok && (n < 1 || n > runtime.NumCPU()) {
		t.Fatalf("%d cores on %d processors", n, runtime.NumCPU())
	}
	t.Logf("%d cores (known: %v), %d processors", n, ok, runtime.NumCPU())
}

func TestForeignNeedsBothCounters(t *testing.T) {
	full := HasDrive | HasOwn
	from := DriveSample{Read: 100, Written: 50, OwnRead: 10, OwnWritten: 5, Has: full}
	for _, c := range []struct {
		name string
		to   DriveSample
		want int64
		ok   bool
	}{
		{"others read", DriveSample{Read: 400, Written: 50, OwnRead: 110, OwnWritten: 5, Has: full}, 200, true},
		{"others write", DriveSample{Read: 200, Written: 80, OwnRead: 110, OwnWritten: 10, Has: full}, 25, true},
		{"own reads still in flight hide no writes", DriveSample{Read: 150, Written: 90, OwnRead: 110, OwnWritten: 5, Has: full}, 40, true},
		{"nothing", from, 0, true},
		{"own counter missing", DriveSample{Read: 400, Has: HasDrive}, 0, false},
	} {
		if got, ok := Foreign(from, c.to); got != c.want || ok != c.ok {
			t.Errorf("%s: %d %v, want %d %v", c.name, got, ok, c.want, c.ok)
		}
	}
	if _, ok := Foreign(DriveSample{}, from); ok {
		t.Error("a sample without marks was used")
	}
}

func BenchmarkCounters(b *testing.B) {
	p := OpenProcess()
	defer p.Close()
	var s Sample
	for b.Loop() {
		p.Counters(&s)
	}
}

func BenchmarkSample(b *testing.B) {
	p := OpenProcess()
	defer p.Close()
	var s Sample
	for b.Loop() {
		p.Sample(&s)
	}
}
