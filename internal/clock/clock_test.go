package clock

import (
	"testing"
	"time"
)

func TestNowAdvancesWithTime(t *testing.T) {
	start := Now()
	time.Sleep(20 * time.Millisecond)
	got := Since(start)
	if got < 15*time.Millisecond || got > 5*time.Second {
		t.Fatalf("20 ms of sleep measured as %v", got)
	}
}

func TestNowNeverGoesBack(t *testing.T) {
	last := Now()
	for range 100_000 {
		now := Now()
		if now < last {
			t.Fatalf("clock went back from %d to %d", last, now)
		}
		last = now
	}
}

func TestNowIsFineGrained(t *testing.T) {
	// A read takes about 100 us at the fastest: steps of the clock must be far below it.
	smallest := int64(1 << 62)
	last := Now()
	for range 100_000 {
		if now := Now(); now != last {
			smallest = min(smallest, now-last)
			last = now
		}
	}
	if smallest > 20_000 {
		t.Fatalf("the smallest step seen is %d ns", smallest)
	}
}

func TestNowDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Now() }); n != 0 {
		t.Fatalf("Now allocates %v times a call", n)
	}
}
