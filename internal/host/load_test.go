package host

import (
	"testing"
	"time"
)

func TestDriveDisturbed(t *testing.T) {
	has := HasDrive | HasOwn
	for _, c := range []struct {
		name string
		to   DriveSample
		want bool
	}{
		{"alone", DriveSample{Read: 500 << 20, OwnRead: 500 << 20, Has: has}, false},
		{"others read as much", DriveSample{Read: 1000 << 20, OwnRead: 500 << 20, Has: has}, true},
		{"others write a fifth", DriveSample{Read: 500 << 20, Written: 100 << 20, OwnRead: 500 << 20, Has: has}, true},
		{"others read a twentieth", DriveSample{Read: 525 << 20, OwnRead: 500 << 20, Has: has}, false},
		{"a tenth and what a system moves by itself", DriveSample{Read: 565 << 20, OwnRead: 500 << 20, Has: has}, false},
		{"noise", DriveSample{Read: 9 << 20, OwnRead: 1 << 20, Has: has}, false},
		{"nothing read in the run", DriveSample{Read: 900 << 20, Has: has}, false},
		{"the host does not tell", DriveSample{Read: 1000 << 20, OwnRead: 500 << 20, Has: HasDrive}, false},
	} {
		got, known := DriveDisturbed(DriveSample{Has: has}, c.to)
		if got != c.want || known != c.to.Has.All(has) {
			t.Errorf("%s: disturbed %v, known %v", c.name, got, known)
		}
	}
}

// after returns the sample wall later than zero on two processors.
func after(wall, busy, own, delay time.Duration) (from, to LoadSample) {
	has := HasLoad | HasCPU | HasDelay
	from = LoadSample{At: 1, CPUs: 2, Has: has}
	return from, LoadSample{At: 1 + int64(wall), CPUs: 2, Busy: busy, Idle: 2*wall - busy, Own: own, Delay: delay, Has: has}
}

func TestCPUDisturbed(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name                   string
		wall, busy, own, delay time.Duration
		want                   bool
	}{
		{"alone on two processors", 10 * s, 19 * s, 19 * s, 100 * ms, false},
		// More threads than processors wait for each other, not for others. The first
		// was recorded: five answers of the demo model with 2 workers and 4 lanes on 2
		// processors, at real-time priority so that nothing else could run; a quiet
		// system's own 1.5 % is added.
		{"4 lanes and 2 workers on 2 processors", 2643 * ms, 2788 * ms, 2708 * ms, 1976 * ms, false},
		{"the same all the time", 10 * s, 1990 * 10 * ms, 1985 * 10 * ms, 3 * s, false},
		{"two others that spin", 10 * s, 20 * s, 10 * s, 10 * s, true},
		{"others where we leave room", 10 * s, 15 * s, 5 * s, 100 * ms, false},
		{"a tenth, and we wait for it", 10 * s, 20 * s, 18 * s, 900 * ms, true},
		{"others below a twentieth", 10 * s, 19 * s, 181 * 100 * ms, 900 * ms, false},
		{"too short to tell from a tick", 50 * ms, 100 * ms, 70 * ms, 10 * ms, false},
	} {
		from, to := after(c.wall, c.busy, c.own, c.delay)
		if got, known := CPUDisturbed(from, to); got != c.want || !known {
			t.Errorf("%s: disturbed %v, known %v", c.name, got, known)
		}
	}
}

// Accounts that are not those of the processors that we run on say nothing.
func TestForeignAccountsOfTheProcessorsSayNothing(t *testing.T) {
	const s = time.Second
	check := func(what string, change func(from, to *LoadSample)) {
		t.Helper()
		from, to := after(10*s, 20*s, 10*s, 10*s)
		if _, ok := Others(from, to); !ok {
			t.Fatal("the case is not known as it is")
		}
		change(&from, &to)
		if got, known := CPUDisturbed(from, to); got || known {
			t.Errorf("%s: disturbed %v, known %v", what, got, known)
		}
		_, known := Others(from, to)
		if want := what == "no delays"; known != want {
			t.Errorf("%s: the share of others is known: %v", what, known)
		}
	}
	check("they stand still", func(_, to *LoadSample) { to.Busy, to.Idle = 0, 0 })
	check("they are of more processors", func(_, to *LoadSample) { to.Idle += 60 * s })
	check("we used more than there was", func(_, to *LoadSample) { to.Own = 30 * s })
	check("processors came or went", func(from, _ *LoadSample) { from.CPUs = 1 })
	check("no accounts", func(from, _ *LoadSample) { from.Has &^= HasLoad })
	check("no delays", func(from, _ *LoadSample) { from.Has &^= HasDelay })
}

func TestThrottled(t *testing.T) {
	from, to := LoadSample{Throttles: 4, Has: HasThrottles}, LoadSample{Throttles: 4, Has: HasThrottles}
	if is, known := Throttled(from, to); is || !known {
		t.Errorf("a count that stood: %v, %v", is, known)
	}
	to.Throttles++
	if is, known := Throttled(from, to); !is || !known {
		t.Errorf("a count that rose: %v, %v", is, known)
	}
	to.Has = 0
	if is, known := Throttled(from, to); is || known {
		t.Errorf("no count: %v, %v", is, known)
	}
}
