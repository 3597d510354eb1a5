package host

import (
	"testing"
	"time"
)

func TestProcessorTimesOfTheAllowed(t *testing.T) {
	const stat = "cpu  100 0 50 900 20 3 4 5 0 0\n" +
		"cpu0 60 1 30 400 10 2 3 4 9 0\n" +
		"cpu1 40 0 20 500 10 1 1 1 0 0\n" +
		"intr 12345 6 7\nctxt 9\n"
	all := func(int) bool { return true }
	second := func(cpu int) bool { return cpu == 1 }
	for _, c := range []struct {
		text       string
		allowed    func(int) bool
		busy, idle int // hundredths
		n          int
		ok         bool
	}{
		{stat, all, 163, 920, 2, true},
		{stat, second, 63, 510, 1, true},
		{stat, func(cpu int) bool { return cpu == 7 }, 0, 0, 0, false},
		{"cpu  1 2 3\ncpu0 1 2 3\n", all, 0, 0, 0, false},
		{"", all, 0, 0, 0, false},
		{"cpu0 1 2", all, 0, 0, 0, false}, // cut off
	} {
		busy, idle, n, ok := processorTimes([]byte(c.text), c.allowed)
		if ok != c.ok || ok && (busy != time.Duration(c.busy)*userTick || idle != time.Duration(c.idle)*userTick || n != c.n) {
			t.Errorf("%q: busy %v, idle %v, %d processors, %v", c.text, busy, idle, n, ok)
		}
	}
}

func TestRunDelay(t *testing.T) {
	for text, want := range map[string]int64{"5654837 1026991 2\n": 1026991, "0 0 0\n": 0, "7\n": -1, "": -1} {
		if got, ok := runDelay([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
}

// This process's own load is seen and is not taken for others'.
func TestLoadOfThisProcess(t *testing.T) {
	l := OpenLoad()
	defer l.Close()
	var from, to LoadSample
	l.SampleAll(&from)
	if !from.Has.All(HasCPU) {
		t.Fatalf("no CPU time: %+v", from)
	}
	for end := time.Now().Add(120 * time.Millisecond); time.Now().Before(end); {
	}
	l.SampleAll(&to)
	if to.Own <= from.Own {
		t.Errorf("spinning took %v", to.Own-from.Own)
	}
	if from.Has.All(HasLoad) {
		if passed := to.Busy + to.Idle - from.Busy - from.Idle; passed <= 0 || to.Busy < from.Busy {
			t.Errorf("busy %v to %v, idle %v to %v", from.Busy, to.Busy, from.Idle, to.Idle)
		}
	}
	if from.Has.All(HasDelay) && to.Delay < 0 {
		t.Errorf("a delay of %v", to.Delay)
	}
}

func TestSamplingTheLoadAllocatesNothing(t *testing.T) {
	l := OpenLoad()
	defer l.Close()
	var s LoadSample
	if n := testing.AllocsPerRun(100, func() { l.Sample(&s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLoad(b *testing.B) {
	l := OpenLoad()
	defer l.Close()
	var s LoadSample
	b.Run("processors", func(b *testing.B) {
		for b.Loop() {
			l.Sample(&s)
		}
	})
	b.Run("threads too", func(b *testing.B) {
		for b.Loop() {
			l.SampleAll(&s)
		}
	})
}
