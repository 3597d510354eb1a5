package ab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// machine is a backend whose speed follows from its settings, give or take some noise.
type machine struct {
	backend.Backend
	values  map[string]string
	speed   func(map[string]string) float64
	noise   float64
	rng     *rand.Rand
	busy    func(run int) bool
	refuses string // a value that no setting takes
	n       int
	stop    func()
}

var steps = map[string][]string{"release-mmap": {"off", "on"}, "lanes": {"1", "2", "4", "8", "16"}, "cache": {"1000", "2000", "3000", "4000", "5000"},
	"cache-policy": {"lru", "harmonic", "lookalike"}, "threads": {"1", "2", "3", "4"}, "overlap": {"off", "on"}}

func newMachine(speed func(map[string]string) float64) *machine {
	return &machine{speed: speed, noise: 0.01, rng: rand.New(rand.NewPCG(4, 2)),
		values: map[string]string{"release-mmap": "off", "lanes": "4", "cache": "2000", "cache-policy": "lru", "threads": "2", "overlap": "on"}}
}

func (m *machine) Settings() []backend.Setting {
	var rows []backend.Setting
	for _, name := range slices.Sorted(maps.Keys(m.values)) {
		rows = append(rows, backend.Setting{Name: name, Value: m.values[name], Live: true})
	}
	return append(rows, backend.Setting{Name: "ubatch", Value: "auto", Live: true}, backend.Setting{Name: "substitute", Value: "0", Live: true, Lossy: true})
}

func (m *machine) Step(name, from string, dir int) string {
	at := slices.Index(steps[name], from)
	if at < 0 || at+dir < 0 || at+dir >= len(steps[name]) {
		return from
	}
	return steps[name][at+dir]
}

func (m *machine) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	for name, v := range wishes {
		o := backend.Outcome{Setting: name, Verdict: backend.Applied, Value: v}
		if v == m.refuses {
			o.Verdict, o.Reason = backend.Declined, "memory allows 4096 MiB"
		} else {
			m.values[name] = v
		}
		out = append(out, o)
	}
	return out
}

func (m *machine) Generate(ctx context.Context, _ backend.Request) (*backend.Run, error) {
	return m.Again(ctx, nil)
}

func (m *machine) Again(ctx context.Context, _ func(backend.Delta)) (*backend.Run, error) {
	m.n++
	if m.stop != nil && m.n == 7 {
		m.stop()
	}
	r := &backend.Run{N: m.n, Err: ctx.Err()}
	r.Result.DecodeTPS = profile.Some(m.speed(m.values) * (1 + m.noise*m.rng.NormFloat64()))
	r.Result.TextSHA256, r.Result.NPrompt = "same", 20
	if m.busy != nil {
		r.Disturbed.CPU = profile.Some(m.busy(m.n))
	}
	return r, nil
}

func num(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}

// laptop is a host as in the finding: lanes help only without the mapping, a bigger
// cache helps, and so does a better policy.
func laptop(v map[string]string) float64 {
	lanes := min(num(v["lanes"]), 8)
	if v["release-mmap"] == "off" {
		lanes = 1
	}
	wait := 300 / lanes * (1 - num(v["cache"])/6000)
	if v["cache-policy"] != "lru" {
		wait *= 0.8
	}
	return 1000 / (100/min(num(v["threads"]), 2) + wait)
}

// best is what trying everything finds.
func best(speed func(map[string]string) float64, skip string) float64 {
	most, names := 0.0, slices.Sorted(maps.Keys(steps))
	var try func(i int, v map[string]string)
	try = func(i int, v map[string]string) {
		if i == len(names) {
			most = max(most, speed(v))
			return
		}
		for _, x := range steps[names[i]] {
			if x != skip {
				v[names[i]] = x
				try(i+1, v)
			}
		}
	}
	try(0, map[string]string{})
	return most
}

func tune(t *testing.T, m *machine) (*Tuned, error) {
	t.Helper()
	before := maps.Clone(m.values)
	used := time.Duration(0)
	found, err := (&Tuner{Session: m, Now: func() time.Duration { used += 10 * time.Millisecond; return used }}).Run(t.Context())
	if !maps.Equal(m.values, before) {
		t.Errorf("the settings end as %v, and were %v", m.values, before)
	}
	return found, err
}

func TestTuneFindsWhatTryingEverythingFinds(t *testing.T) {
	for name, c := range map[string]struct {
		speed   func(map[string]string) float64
		refuses string
	}{
		"laptop":                    {laptop, ""},
		"a cache that does not fit": {laptop, "5000"},
		"one valley": {func(v map[string]string) float64 { // two that help only together
			x := 10.0
			if v["release-mmap"] == "on" {
				x = 11
				if v["overlap"] == "off" {
					x = 15
				}
			}
			return x
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(c.speed)
			m.refuses = c.refuses
			found, err := tune(t, m)
			if err != nil {
				t.Fatal(err)
			}
			after := maps.Clone(m.values)
			maps.Copy(after, found.Keep)
			if got, most := c.speed(after), best(c.speed, c.refuses); got < 0.97*most {
				t.Errorf("%v gives %.2f, and %.2f was to be had; %+v", found.Keep, got, most, found.Steps)
			}
			if !strings.HasPrefix(found.Change, "faster ") || !found.Same || found.Runs > 250 || !found.After.OK {
				t.Errorf("%d runs, %q, same text %v", found.Runs, found.Change, found.Same)
			}
			if c.refuses != "" && !strings.Contains(fmt.Sprint(found.Steps), "cache 5000 declined: memory allows 4096 MiB") {
				t.Errorf("what was refused is not told: %+v", found.Steps)
			}
		})
	}
}

func TestTuneSaysThatNothingHelps(t *testing.T) {
	m := newMachine(func(map[string]string) float64 { return 10 })
	m.noise = 0.05
	for range 20 {
		found, err := tune(t, m)
		if err != nil || len(found.Keep) > 0 {
			t.Fatalf("%v %s, %v", found.Keep, found.Change, err)
		}
	}
}

func TestTuneOnABusyMachine(t *testing.T) {
	m := newMachine(laptop)
	m.busy = func(run int) bool { return run%3 == 0 } // one run in three is repeated
	if found, err := tune(t, m); err != nil || found.Keep["release-mmap"] != "on" {
		t.Errorf("%v, %v", found, err)
	}
	m = newMachine(laptop)
	m.busy = func(run int) bool { return run > 1 }
	if found, err := tune(t, m); !errors.Is(err, errNothingCounts) || len(found.Keep) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTuneStops(t *testing.T) {
	m := newMachine(laptop)
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	found, err := (&Tuner{Session: m, Now: func() time.Duration { return 0 }}).Run(ctx)
	if !errors.Is(err, context.Canceled) || len(found.Keep) > 0 || m.values["release-mmap"] != "off" || m.values["lanes"] != "4" {
		t.Errorf("%+v, %v; settings %v", found, err, m.values)
	}
	// Time that is up ends it between two settings, and what was not tried is told.
	m = newMachine(laptop)
	now := time.Duration(0)
	found, err = (&Tuner{Session: m, Now: func() time.Duration { now += tuneTime * 2 / 3; return now }}).Run(t.Context())
	if err != nil || found.Keep["release-mmap"] != "on" || !reflect.DeepEqual(found.Left, []string{"cache", "lanes", "threads", "overlap", "cache-policy", "ubatch"}) {
		t.Errorf("%+v, %v", found, err)
	}
}
