package play

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/clock"
	"bmoe/profile"
)

// errPlayed is what a recording answers to what it did not record.
var errPlayed = errors.New("a recording is played: it can be asked nothing that was not asked then")

// Backend plays a recording.
type Backend struct {
	r    *recording
	next int // the run to be played next

	mu      sync.Mutex
	live    profile.Snapshot
	base    profile.Snapshot // as it was told of last; live is that, moved to this machine's clock
	records []profile.Record
	chains  []chain
	experts experts
}

type chain struct {
	misses []profile.Miss
	known  bool
}

// A recording is all of this.
var (
	_ backend.Backend   = (*Backend)(nil)
	_ backend.Tunable   = (*Backend)(nil)
	_ backend.History   = (*Backend)(nil)
	_ backend.Chains    = (*Backend)(nil)
	_ backend.Played    = (*Backend)(nil)
	_ backend.Moments   = (*Backend)(nil)
	_ backend.Residency = (*Backend)(nil)
)

// Open opens a recording. An error is one line that names the file.
func Open(path string) (*Backend, error) {
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	b := &Backend{r: r}
	b.experts.init(r)
	if first := r.runs[0]; len(first.steps) > 0 && first.steps[0].state != nil {
		b.show(&first.steps[0], 0)
		b.live.Phase = profile.Idle
	}
	return b, nil
}

// Prompts are what was asked, in order: a screen that sends them plays the recording.
func (b *Backend) Prompts() []string {
	var out []string
	for _, r := range b.r.runs {
		out = append(out, r.Prompt)
	}
	return out
}

// Info implements backend.Backend.
func (b *Backend) Info() backend.Info { return b.r.Info }

// Warnings implements backend.Backend.
func (b *Backend) Warnings() []string {
	made := "a recording is played"
	if b.r.Program != "" {
		made += ", made by " + b.r.Program
	}
	return append([]string{made + ": no figure is of this machine"}, b.r.Warnings...)
}

// NewChat implements backend.Backend.
func (b *Backend) NewChat() {}

// Close implements backend.Backend.
func (b *Backend) Close() error { return nil }

// Snapshot implements backend.Backend.
func (b *Backend) Snapshot(dst *profile.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*dst = b.live
	dst.At = clock.Now()
	if dst.Phase != profile.Idle {
		dst.Elapsed = dst.At - dst.Started
	}
}

// History implements backend.History.
func (b *Backend) History(from int64, dst []profile.Record) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	from = max(from, 0)
	if from >= int64(len(b.records)) {
		return 0
	}
	return copy(dst, b.records[from:])
}

// Chain implements backend.Chains.
func (b *Backend) Chain(record int64, dst []profile.Miss) (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if record < 0 || record >= int64(len(b.chains)) || !b.chains[record].known {
		return 0, false
	}
	return copy(dst, b.chains[record].misses), true
}

// Experts implements backend.Residency: what the routes and misses up to now tell.
func (b *Backend) Experts(dst *profile.ExpertMap) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.experts.read(dst)
}

// Moment implements backend.Moments: the recording is read again up to there.
func (b *Backend) Moment(record int64, dst *profile.Snapshot, experts *profile.ExpertMap) bool {
	past := &Backend{r: b.r}
	if experts != nil {
		past.experts.init(b.r)
	}
	found := func() bool {
		*dst = past.live
		if experts != nil {
			past.experts.read(experts)
		}
		return true
	}
	for _, r := range b.r.runs {
		past.experts.begin(r)
		for i := range r.steps {
			// The state that follows a token tells of it.
			if s := &r.steps[i]; s.token != nil && past.live.Count > record {
				return found()
			}
			past.show(&r.steps[i], dst.Started)
		}
		if past.live.Count > record {
			return found()
		}
	}
	return false
}

// Settings implements backend.Tunable: those that were in force.
func (b *Backend) Settings() []backend.Setting {
	rows := append([]backend.Setting(nil), b.r.Settings...)
	if b.next == 0 || b.r.runs[b.next-1].end == nil {
		return rows
	}
	for _, v := range b.r.runs[b.next-1].end.Run.Settings {
		if row := backend.Find(rows, v.Name); row != nil {
			row.Value = v.Value
		}
	}
	return rows
}

// Step implements backend.Tunable: nothing can be changed.
func (b *Backend) Step(_, from string, _ int) string { return from }

// Apply implements backend.Tunable.
func (b *Backend) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	for _, row := range b.Settings() {
		if _, ok := wishes[row.Name]; ok {
			out = append(out, backend.Outcome{Setting: row.Name, Verdict: backend.Declined, Reason: "a recording is played: its settings are those of then", Value: row.Shown()})
		}
	}
	return out
}

// Generate implements backend.Backend: it plays the next run, if its prompt is what
// is asked.
func (b *Backend) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	if b.next == len(b.r.runs) || r.Text != b.r.runs[b.next].Prompt {
		return nil, errPlayed
	}
	b.next++
	return b.play(ctx, b.r.runs[b.next-1], r), nil
}

// Again implements backend.Backend: it plays the run that was played last once more.
func (b *Backend) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	if b.next == 0 {
		return nil, errPlayed
	}
	r := b.r.runs[b.next-1]
	b.rewind()
	return b.play(ctx, r, backend.Request{OnDelta: onDelta}), nil
}

// rewind forgets the records of the run that was played last.
func (b *Backend) rewind() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.records)
	for n > 0 && b.records[n-1].Run == b.base.Run {
		n--
	}
	b.records, b.chains = b.records[:n], b.chains[:n]
	b.base = profile.Snapshot{}
	b.experts.init(b.r)
	// Changes are told of since the beginning.
	for _, r := range b.r.runs[:b.next-1] {
		b.experts.begin(r)
		for i := range r.steps {
			if s := &r.steps[i]; s.state != nil {
				b.change(s.state)
			} else {
				b.experts.token(s.token, b.base.Cache.Policy)
			}
		}
	}
	b.live.Count = int64(n)
}

// play plays a run at the speed at which it was recorded.
func (b *Backend) play(ctx context.Context, r *run, ask backend.Request) *backend.Run {
	began := clock.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last *profile.Record
	out := &backend.Run{Prompt: r.Prompt, When: time.Now()}
	b.mu.Lock()
	b.experts.begin(r)
	b.mu.Unlock()
	stopped := false
	var walls []float32
	for i := range r.steps {
		s := &r.steps[i]
		if wait := s.at - (clock.Now() - began); wait > 0 && !stopped {
			timer.Reset(time.Duration(wait))
			select {
			case <-ctx.Done():
				stopped = true // what is left is read without a pause, so that the next run's changes apply
			case <-timer.C:
			}
		}
		stopped = stopped || ctx.Err() != nil
		b.show(s, began)
		t := s.token
		if t == nil {
			if ask.OnPrefill != nil && !stopped && b.live.Phase == profile.Prefill {
				ask.OnPrefill(b.live.PromptDone, b.live.Prompt)
			}
			continue
		}
		if t.record != nil {
			last = t.record
			walls = append(walls, float32(float64(last.Wall)/1e9))
		}
		if ask.OnDelta != nil && !stopped {
			ask.OnDelta(backend.Delta{Text: t.text, Reasoning: t.reasoning, Token: t.id, Record: t.record})
		}
	}
	b.mu.Lock()
	b.live.Phase = profile.Idle
	b.mu.Unlock()
	switch {
	case r.end != nil:
		*out = r.end.Run
		if r.end.Failed != "" {
			out.Err = errors.New(r.end.Failed)
		}
	default:
		out.Err = errors.New("the recording ends here")
	}
	if last != nil {
		out.N = last.Run
	}
	out.Prompt, out.Walls = r.Prompt, walls
	if stopped {
		out.Err = ctx.Err()
	}
	return out
}

// change applies a state's changes. mu is held, or nobody looks yet.
func (b *Backend) change(state []byte) {
	if _, err := b.r.snapshot.apply(state, reflect.ValueOf(&b.base).Elem()); err != nil {
		panic(err) // the whole recording was read once
	}
}

// show puts a step on the screen; began is when its run did.
func (b *Backend) show(s *step, began int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.state != nil {
		b.change(s.state)
		ring, count := b.live.Tokens, b.live.Count
		b.live = b.base
		b.live.Tokens, b.live.Count = ring, count
		b.live.Started = began
		return
	}
	t := s.token
	b.experts.token(t, b.base.Cache.Policy)
	if t.record == nil {
		return
	}
	b.live.Tokens[b.live.Count%profile.RingTokens] = *t.record
	b.live.Count++
	b.live.Run, b.live.Turn, b.live.Step, b.live.Phase = t.record.Run, t.record.Turn, t.record.Step, profile.Decode
	b.records, b.chains = append(b.records, *t.record), append(b.chains, chain{t.misses, t.known})
}
