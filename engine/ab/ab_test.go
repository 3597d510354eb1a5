package ab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/stats"
	"bmoe/profile"
)

// fake is a backend with two settings that can be changed and one that cannot.
// What a run's tokens take follows from the settings.
type fake struct {
	backend.Backend
	values   map[string]string
	log      []string
	refuse   string // a value that no setting takes
	n        int
	stop     context.CancelFunc // called in the run numbered stopIn
	stopIn   int
	disturb  bool
	startKey string
}

func newFake() *fake {
	return &fake{values: map[string]string{"release-mmap": "off", "lanes": "4"}, startKey: "question"}
}

func (f *fake) Settings() []backend.Setting {
	return []backend.Setting{{Name: "model", Value: "m.gguf"}, {Name: "lanes", Value: f.values["lanes"], Live: true},
		{Name: "release-mmap", Value: f.values["release-mmap"], Live: true}}
}

func (f *fake) Step(string, string, int) string { return "" }

func (f *fake) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		v := wishes[name]
		f.log = append(f.log, name+" "+v)
		if v == f.refuse {
			out = append(out, backend.Outcome{Setting: name, Verdict: backend.Declined, Value: f.values[name], Reason: "no"})
			continue
		}
		f.values[name] = v
		out = append(out, backend.Outcome{Setting: name, Verdict: backend.Applied, Value: v})
	}
	return out
}

func (f *fake) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	f.log = append(f.log, "again")
	if f.n+1 == f.stopIn {
		f.stop()
	}
	return f.run(ctx, true), nil
}

func (f *fake) run(ctx context.Context, cold bool) *backend.Run {
	f.n++
	tokens, wall := 96, float32(0.3)
	if f.values["release-mmap"] == "on" {
		wall = 0.2
	}
	r := &backend.Run{N: f.n, Settings: backend.Values(f.Settings()), StartKey: f.startKey, ColdCache: cold, Err: ctx.Err()}
	if r.Err != nil {
		tokens = 40
	}
	for i := range tokens {
		r.Walls = append(r.Walls, wall*(1+0.1*float32(i%3)))
		r.Result.TokenIDs = append(r.Result.TokenIDs, int32(i))
	}
	r.Result.DecodeTPS = profile.Some(float64(1 / wall))
	r.Result.TextSHA256 = fmt.Sprint("text of ", tokens)
	if f.disturb {
		r.Disturbed.CPU = profile.Some(true)
	}
	return r
}

func TestPairRunsBothLegsAndEndsAsSet(t *testing.T) {
	f := newFake()
	f.values["release-mmap"] = "on"
	var legs []string
	runs, err := Pair(context.Background(), f, map[string]string{"release-mmap": "off"}, map[string]string{"release-mmap": "on"},
		func(l Leg) { legs = append(legs, fmt.Sprintf("%d of %d, %d outcomes", l.N, l.Of, len(l.Outcomes))) }, nil)
	if err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	if want := []string{"release-mmap off", "again", "release-mmap on", "again"}; !reflect.DeepEqual(f.log, want) {
		t.Errorf("%q, want %q", f.log, want)
	}
	if want := []string{"1 of 2, 1 outcomes", "2 of 2, 1 outcomes"}; !reflect.DeepEqual(legs, want) {
		t.Errorf("%q, want %q", legs, want)
	}
	var l Runs
	for _, r := range runs {
		l.Add(r)
	}
	c, ok := l.Verdict()
	if !ok || c.Verdict != stats.Faster || c.Base.First() != runs[0] || c.Group.First() != runs[1] || c.What() != "release-mmap on" || c.Text() != "identical" {
		t.Errorf("%v, %s, text %s", c.Difference, c.What(), c.Text())
	}
}

func TestPairKeepsTheSettingsWhenStopped(t *testing.T) {
	for stopIn, want := range map[int][]string{1: {"lanes 4", "again", "lanes 8"}, 2: {"lanes 4", "again", "lanes 8", "again"}} {
		f := newFake()
		f.values["lanes"] = "8"
		ctx, cancel := context.WithCancel(context.Background())
		f.stop, f.stopIn = cancel, stopIn
		runs, err := Pair(ctx, f, map[string]string{"lanes": "4"}, map[string]string{"lanes": "8"}, func(Leg) {}, nil)
		if err != nil || len(runs) != stopIn || !errors.Is(runs[stopIn-1].Err, context.Canceled) {
			t.Errorf("stopped in leg %d: %d runs, %v", stopIn, len(runs), err)
		}
		if !reflect.DeepEqual(f.log, want) || f.values["lanes"] != "8" {
			t.Errorf("stopped in leg %d: %q, lanes %s", stopIn, f.log, f.values["lanes"])
		}
	}
}

func TestPairLeavesOutALegThatCannotBe(t *testing.T) {
	f := newFake()
	f.values["release-mmap"], f.refuse = "on", "off"
	var last Leg
	runs, err := Pair(context.Background(), f, map[string]string{"release-mmap": "off"}, map[string]string{"release-mmap": "on"}, func(l Leg) { last = l }, nil)
	if err != nil || len(runs) != 1 || last.N != 2 || len(last.Outcomes) != 2 || last.Outcomes[0].Verdict != backend.Declined || f.values["release-mmap"] != "on" {
		t.Errorf("%d runs, %v, %+v, %v", len(runs), err, last, f.values)
	}
}

// list runs a script: "+" is a run with a warm cache, "=" a run again, "!" a
// disturbed one, "x" one that is stopped, and anything else a setting.
func list(f *fake, steps ...string) *Runs {
	l := &Runs{}
	for _, s := range steps {
		ctx, cancel := context.WithCancel(context.Background())
		f.disturb = s == "!"
		switch s {
		case "+":
			l.Add(f.run(ctx, false))
		case "x":
			cancel()
			l.Add(f.run(ctx, true))
		case "=", "!":
			l.Add(f.run(ctx, true))
		default:
			name, v, _ := strings.Cut(s, " ")
			f.values[name] = v
		}
		cancel()
	}
	return l
}

func TestEqualRunsArePooled(t *testing.T) {
	l := list(newFake(), "=", "=", "release-mmap on", "=", "!", "=", "release-mmap off", "=", "x", "+")
	var got []string
	for _, g := range l.Groups() {
		s := g.Name() + ": base"
		if b := l.Base(g); b != nil {
			c := l.Compare(b, g)
			s = g.Name() + ": to " + b.Name() + " " + c.Difference.String()
		}
		got = append(got, s)
	}
	for i, want := range []string{"1 x3: base", "3 x2: to 1 x3 faster +", "4: to 1 x3 not comparable: disturbed: CPU", "7: to 1 x3 no clear change", "8: to 1 x3 not comparable: warm cache (run 8)"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("row %d of %q: want %q", i, got, want)
		}
	}
	if g := l.Groups()[0]; g.Median(DecodeTPS).Value != float64(1/float32(0.3)) || g.Spread(DecodeTPS) != profile.Some(0.0) || l.Groups()[2].Spread(DecodeTPS).OK {
		t.Errorf("median %v, spread %v", g.Median(DecodeTPS), g.Spread(DecodeTPS))
	}
}

// A run that was stopped is compared over the tokens that both have.
func TestAStoppedRunIsComparedOverWhatThereIs(t *testing.T) {
	l := list(newFake(), "=", "release-mmap on", "x")
	c, ok := l.Verdict()
	if !ok || c.Verdict != stats.Faster || c.Tokens != 40 || !c.Partial() || c.Text() != "identical" {
		t.Errorf("%v over %d tokens, text %s", c.Difference, c.Tokens, c.Text())
	}
}

// In a busy room a real effect is not comparable, never no clear change, and
// equal runs claim nothing; each says why.
func TestNothingIsClaimedOfDisturbedRuns(t *testing.T) {
	f := newFake()
	l := list(f, "!")
	for i := range 10 {
		f.disturb = true
		if i == 5 {
			f.values["release-mmap"] = "on"
		}
		l.Add(f.run(context.Background(), true))
		c, ok := l.Verdict()
		if !ok || c.Verdict != stats.NotComparable || c.Difference.String() != "not comparable: disturbed: CPU (run 1)" {
			t.Errorf("again %d: %v", i, c.Difference)
		}
	}
}

func TestARunOfTheBaseSpeaksOfTheOther(t *testing.T) {
	l := list(newFake(), "=", "release-mmap on", "=", "release-mmap off", "=")
	if c, ok := l.Verdict(); !ok || c.Base.Name() != "1 x2" || c.Group.Name() != "2" || c.What() != "release-mmap on" {
		t.Errorf("%v", c.Difference)
	}
	if _, ok := list(newFake(), "=", "=").Verdict(); ok {
		t.Error("two equal runs were compared")
	}
}

func TestMissingNamesTheLegThatAComparisonNeeds(t *testing.T) {
	for _, c := range []struct {
		steps []string
		old   map[string]string // nil: nothing is missing
	}{
		{[]string{"=", "release-mmap on"}, nil},
		{[]string{"+", "release-mmap on"}, map[string]string{"release-mmap": "off"}},
		{[]string{"+", "release-mmap on", "lanes 8"}, map[string]string{"release-mmap": "off", "lanes": "4"}},
		{[]string{"!", "release-mmap on"}, nil},
		{[]string{"+"}, nil},
		{[]string{"+", "=", "release-mmap on"}, nil},
		{[]string{"+", "release-mmap on", "=", "lanes 8"}, nil},
		// What is there has the settings in force: it is no other leg.
		{[]string{"=", "release-mmap on", "+", "release-mmap off"}, map[string]string{"release-mmap": "on"}},
		{nil, nil},
	} {
		f := newFake()
		l := list(f, c.steps...)
		old, now, ok := l.Missing(backend.Values(f.Settings()))
		if ok != (c.old != nil) || ok && !reflect.DeepEqual(old, c.old) {
			t.Errorf("%q: %v, %v, want %v", c.steps, old, ok, c.old)
		}
		for name, v := range now {
			if f.values[name] != v {
				t.Errorf("%q: %s %s is said to be in force", c.steps, name, v)
			}
		}
	}
}

// Of ten pairs of one question none is held against a run of another.
func TestRunsOfOtherStartsAreNotCompared(t *testing.T) {
	f := newFake()
	l := list(f, "=")
	f.startKey, f.values["lanes"] = "another", "8"
	l.Add(f.run(context.Background(), true))
	if c, ok := l.Verdict(); ok {
		t.Errorf("%v", c.Difference)
	}
	c := l.Compare(l.Groups()[0], l.Groups()[1])
	if c.Verdict != stats.NotComparable || c.Why != "another start" || c.Text() != "-" {
		t.Errorf("%v", c.Difference)
	}
}
