package ab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/stats"
	"bmoe/profile"
)

// A tuner looks for the settings with which this machine answers fastest. It takes one
// setting after the other, tries the values around the present one, drops the slower
// half after each round until one is left beside the present value, and keeps it only
// if pairs of runs show that it is faster. Since settings depend on each other it begins
// anew as long as a pass has found something. In the end what was found is held against
// the start, in pairs: that is the answer.

// tunable are the settings that are tried, in the order of what they may bring. What
// changes the answer's text is not among them.
var tunable = []string{"release-mmap", "cache", "lanes", "threads", "overlap", "predict-prefetch", "token-prefetch", "cache-policy", "ubatch"}

// How long a tuner goes on before it begins with no other setting, the rounds after which
// it looks at a pair, how many values of a setting it tries beside the present one, and
// from how many tokens of a prompt on the batch matters.
const (
	tuneTime  = 150 * time.Second // the last comparison comes on top
	tuneTries = 5
	tuneBatch = 512
)

var tuneLooks = []int{3, 5}

// Tuner is an experiment over the settings of a session.
type Tuner struct {
	Session backend.Backend // that has answered nothing yet; its settings end as they were
	Request backend.Request
	// Now tells the time that the tuner has used.
	Now func() time.Duration
	// Each hears of every run.
	Each func(TuneRun)
}

// TuneRun is one run of a tuner.
type TuneRun struct {
	What     string // "lanes 8", or "as it was"
	Speed    profile.Maybe[float64]
	Excluded string // why it does not count; empty if it does
}

// TuneStep is what came of one setting in one pass.
type TuneStep struct {
	Setting string   `json:"setting"`
	From    string   `json:"from"`
	Tried   []string `json:"tried"`
	Refused []string `json:"refused"` // values that were not taken, and why
	Kept    string   `json:"kept"`
	Change  string   `json:"change"` // of the best against the one before, in words; empty where none was worth a pair
}

// Tuned is what a tuner found.
type Tuned struct {
	Steps []TuneStep `json:"steps"`
	// Keep are the settings that are better than at the start, with their values, and
	// Change says by how much, in words. Keep is empty where nothing helps.
	Keep   map[string]string `json:"keep"`
	Change string            `json:"change"`
	Before Maybe             `json:"tps_before"`
	After  Maybe             `json:"tps_after"`
	Runs   int               `json:"runs"`
	Left   []string          `json:"left"` // settings that time did not suffice for
	Same   bool              `json:"same_text"`
}

// Maybe is a figure that may not have been measured.
type Maybe = profile.Maybe[float64]

// errNothingCounts ends a tuner on a machine that is too busy.
var errNothingCounts = errors.New("nothing counted: other programs used the processor or the drive in every run; close them and try again")

type tuner struct {
	*Tuner
	engine backend.Tunable
	found  Tuned
	now    map[string]string // settings in force
	text   string            // that every run must give
	lost   int               // runs in a row that do not count
}

// Run looks for better settings. What was found until then is returned beside an error.
func (p *Tuner) Run(ctx context.Context) (found *Tuned, err error) {
	engine, ok := p.Session.(backend.Tunable)
	if !ok {
		return nil, errors.New("this engine's settings cannot be changed between runs")
	}
	t := &tuner{Tuner: p, engine: engine, now: map[string]string{}, found: Tuned{Keep: map[string]string{}, Same: true}}
	start := map[string]string{}
	rows := engine.Settings()
	for _, name := range tunable {
		if row := backend.Find(rows, name); row != nil && row.Live && !row.Lossy && row.Idle == "" {
			start[name] = row.Value
		}
	}
	maps.Copy(t.now, start)
	defer func() {
		if why := t.set(start); why != "" && err == nil {
			err = fmt.Errorf("the settings as they were: %s", why)
		}
	}()
	first, err := p.Session.Generate(ctx, p.Request)
	if err == nil {
		err = first.Err
	}
	if err != nil {
		return &t.found, err
	}
	t.text = first.Result.TextSHA256
	if err := t.passes(ctx, start, first.Result.NPrompt); err != nil {
		return &t.found, err
	}
	return &t.found, t.conclude(ctx, start)
}

// passes goes through the settings until a pass finds nothing or time is up.
func (t *tuner) passes(ctx context.Context, start map[string]string, prompt int) error {
	for pass := 0; ; pass++ {
		better := 0
		for i, name := range tunable {
			if _, ok := start[name]; !ok || name == "ubatch" && prompt < tuneBatch {
				continue
			}
			if t.Now() > tuneTime {
				if pass == 0 {
					for _, n := range tunable[i:] {
						if _, ok := start[n]; ok {
							t.found.Left = append(t.found.Left, n)
						}
					}
				}
				return nil
			}
			kept, err := t.setting(ctx, name)
			if err != nil {
				return err
			}
			if kept {
				better++
			}
		}
		if better == 0 {
			return nil
		}
	}
}

// setting tries the values of one setting, and reports whether another than the
// present one is kept.
func (t *tuner) setting(ctx context.Context, name string) (kept bool, err error) {
	step := TuneStep{Setting: name, From: t.now[name], Kept: t.now[name], Tried: []string{}, Refused: []string{}}
	defer func() { t.found.Steps = append(t.found.Steps, step) }()
	speeds := map[string][]float64{}
	alive := append([]string{step.From}, t.values(name)...)
	for round := 0; len(alive) > 1; round++ {
		if round%2 == 1 {
			slices.Reverse(alive)
		}
		for _, v := range slices.Clone(alive) {
			if why := t.set(map[string]string{name: v}); why != "" {
				step.Refused = append(step.Refused, why)
				alive = slices.DeleteFunc(alive, func(x string) bool { return x == v })
				continue
			}
			if v != step.From && !slices.Contains(step.Tried, v) {
				step.Tried = append(step.Tried, v)
			}
			speed, err := t.run(ctx, name+" "+v, name)
			if err != nil {
				return false, err
			}
			if !math.IsNaN(speed) {
				speeds[v] = append(speeds[v], speed)
			}
		}
		// The slower half goes; the present value stays to be held against.
		slices.SortStableFunc(alive, func(a, b string) int {
			return compare(stats.Median(speeds[b]), stats.Median(speeds[a]))
		})
		best := slices.DeleteFunc(slices.Clone(alive), func(v string) bool { return v == step.From })
		best = best[:(len(best)+1)/2]
		alive = append([]string{step.From}, best...)
		if len(best) == 0 || len(best) == 1 && round > 0 {
			break
		}
	}
	if len(alive) < 2 || !(stats.Median(speeds[alive[1]]) > stats.Median(speeds[step.From])) {
		t.set(map[string]string{name: step.From}) // which was in force a moment ago
		return false, nil
	}
	d, _, err := t.pairs(ctx, map[string]string{name: step.From}, map[string]string{name: alive[1]}, name)
	if err != nil {
		return false, err
	}
	step.Change = d.String()
	if d.Verdict == stats.Faster {
		step.Kept = alive[1]
		t.now[name] = alive[1]
	}
	t.set(map[string]string{name: step.Kept})
	return step.Kept != step.From, nil
}

// compare orders speeds, unknown ones last.
func compare(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a):
		return -1
	case math.IsNaN(b):
		return 1
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// values returns what a setting can be stepped to from its present value, the nearest
// first.
func (t *tuner) values(name string) []string {
	var all []string
	from := t.now[name]
	add := func(v string) {
		if v != "" && v != from && !slices.Contains(all, v) && len(all) < tuneTries {
			all = append(all, v)
		}
	}
	for far := 1; far <= tuneTries; far++ {
		for _, dir := range []int{1, -1} {
			add(t.engine.Step(name, from, dir*far))
		}
	}
	row := backend.Find(t.engine.Settings(), name)
	if n, err := strconv.Atoi(from); err == nil && len(all) == 0 && row.Kind == backend.Whole { // a number without steps
		for _, m := range []int{n + 1, n - 1, 2 * n, n / 2} {
			if v := strconv.Itoa(m); row.Check(v) == nil {
				add(v)
			}
		}
	}
	return all
}

// set gives the session those settings that it does not have, and says why one was not
// applied.
func (t *tuner) set(values map[string]string) (why string) {
	rows, wishes := t.engine.Settings(), map[string]string{}
	for name, v := range values {
		if row := backend.Find(rows, name); row == nil || row.Value != v {
			wishes[name] = v
		}
	}
	if o := firstRefused(t.engine.Apply(wishes)); o != nil {
		return fmt.Sprintf("%s %s %s: %s", o.Setting, values[o.Setting], o.Verdict, o.Reason)
	}
	return ""
}

// run repeats the answer, and once more if something disturbed it. It returns the speed
// that the setting is about: of the prompt for the batch's size, else of the answer; NaN
// if the run does not count.
func (t *tuner) run(ctx context.Context, what, setting string) (float64, error) {
	for range 2 {
		r, err := t.Session.Again(ctx, nil)
		if err == nil {
			err = r.Err
		}
		if err != nil {
			return math.NaN(), err
		}
		t.found.Runs++
		t.found.Same = t.found.Same && r.Result.TextSHA256 == t.text
		speed := r.Result.DecodeTPS
		if setting == "ubatch" {
			speed = r.Result.PrefillTPS
		}
		told := TuneRun{What: what, Speed: speed}
		if r.Disturbed.Any() {
			told.Excluded = r.Disturbed.String()
		}
		if t.Each != nil {
			t.Each(told)
		}
		if told.Excluded == "" && speed.OK {
			t.lost = 0
			return speed.Value, nil
		}
		if t.lost++; t.lost == 8 {
			return math.NaN(), errNothingCounts
		}
	}
	return math.NaN(), nil
}

// pairs holds settings against others in turns, until the difference is clear or there
// were enough rounds. The session is left with either.
func (t *tuner) pairs(ctx context.Context, base, other map[string]string, setting string) (d stats.Difference, both [2]float64, err error) {
	var speeds [2][]float64
	for round := 1; round <= tuneLooks[len(tuneLooks)-1]; round++ {
		var pair [2]float64
		for i := range 2 {
			side := (i + round) % 2 // every second round the other way round
			values := []map[string]string{base, other}[side]
			if why := t.set(values); why != "" {
				return stats.Difference{Verdict: stats.NotComparable, Why: why}, both, nil
			}
			if pair[side], err = t.run(ctx, words(values), setting); err != nil {
				return d, both, err
			}
		}
		if !math.IsNaN(pair[0]) && !math.IsNaN(pair[1]) {
			speeds[0], speeds[1] = append(speeds[0], pair[0]), append(speeds[1], pair[1])
		}
		if slices.Contains(tuneLooks, round) {
			if d, _ = stats.Paired(speeds[0], speeds[1], len(tuneLooks)); d.Verdict == stats.Faster || d.Verdict == stats.Slower {
				break
			}
		}
	}
	return d, [2]float64{stats.Median(speeds[0]), stats.Median(speeds[1])}, nil
}

// words names settings with their values, in the order in which they are tried.
func words(values map[string]string) string {
	var list []string
	for _, name := range tunable {
		if v, ok := values[name]; ok {
			list = append(list, name+" "+v)
		}
	}
	return strings.Join(list, ", ")
}

// conclude holds what was found against the start.
func (t *tuner) conclude(ctx context.Context, start map[string]string) error {
	was, is := map[string]string{}, map[string]string{}
	for name, v := range t.now {
		if v != start[name] {
			was[name], is[name] = start[name], v
		}
	}
	if len(is) == 0 {
		return nil
	}
	setting := ""
	if len(is) == 1 && is["ubatch"] != "" {
		setting = "ubatch"
	}
	d, speeds, err := t.pairs(ctx, was, is, setting)
	if err != nil {
		return err
	}
	t.found.Change = d.String()
	t.found.Before, t.found.After = known(speeds[0]), known(speeds[1])
	if d.Verdict == stats.Faster {
		t.found.Keep = is
	}
	return nil
}

// known is a number, or not measured if it is NaN.
func known(v float64) Maybe { return Maybe{Value: v, OK: !math.IsNaN(v)} }
