package flashio

import (
	"testing"
	"time"
)

// TestSimulatedSchedule checks the times that reads are given, on a clock that
// stands still: 576 KiB take 0.6 ms, side by side without a mapping and one
// after the other under one.
func TestSimulatedSchedule(t *testing.T) {
	host := NewSimulatedHost(SimulateOptions{})
	service := host.fixed + int64(host.nsPerByte*(576<<10))
	if service < 590_000 || service > 610_000 {
		t.Fatalf("576 KiB take %v, want 0.6 ms", time.Duration(service))
	}
	ends := func(f *hostFile, under bool) (last int64) {
		for range 4 {
			lane := &simulatedHandle{host: host, file: f, direct: true, under: under}
			last = lane.schedule(1_000_000_000, service) - 1_000_000_000
		}
		return last
	}
	for _, c := range []struct {
		what  string
		maps  int
		under bool
		want  int64
	}{
		{"no mapping", 0, false, 1},
		{"a live mapping", 2, false, 4},
		{"a section alone", 1, false, 4},
		{"lanes opened under a mapping that is gone", 0, true, 4},
	} {
		if got := ends(&hostFile{maps: c.maps}, c.under); got != c.want*service {
			t.Errorf("%s: four reads end after %v, want %v", c.what, time.Duration(got), time.Duration(c.want*service))
		}
	}
}
