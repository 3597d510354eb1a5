package tui

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
)

// fakeEngine behaves like a session on the slow laptop of the project's
// mission: figures follow from the settings, so that a change of settings can
// be seen to have been passed on.
type fakeEngine struct {
	mu       sync.Mutex
	cfg      fakeConfig
	s        profile.Snapshot
	text     string
	prompts  []string            // what Generate was asked
	changes  []map[string]string // what Apply was asked
	more     []backend.Setting   // rows beside those that it obeys
	runs     int
	cold     bool
	closed   bool
	newChats int
	handed   int // deltas handed over
	talk     backend.Chat
	state    string // what the model remembers
	records  []profile.Record
	tells    bool // deltas carry the records of their tokens

	script    []backend.Delta // what an answer consists of
	step      chan struct{}   // if set, a token waits for a receive
	warnings  []string
	decline   string // if set, a release is declined for this reason
	failWith  error
	breaks    error // a run ends with it half way
	simulated bool
	disturbed profile.Disturbed
}

const answerText = "Because the model file is mapped: on this host its four lanes are served one at a time. Press F2 and ask again.\n\nIn numbers: compute takes 107 ms of 316, and the rest is waiting."

func newFake() *fakeEngine {
	f := &fakeEngine{cfg: fakeConfig{lanes: 4, cacheMiB: 3000, overlap: true}, cold: true}
	for _, w := range strings.SplitAfter("The lanes give one lane's rate, so reads are served in turn. ", " ") {
		f.script = append(f.script, backend.Delta{Reasoning: w})
	}
	for _, w := range strings.SplitAfter(answerText, " ") {
		f.script = append(f.script, backend.Delta{Text: w})
	}
	s := &f.s
	s.Ctx = 4096
	s.Model = profile.Model{Name: "Qwen3.6-35B-A3B-Q4_K_M", Arch: "qwen35moe", Quant: "Q4_K_M", FileBytes: 22_300_000_000, Shards: 1,
		Layers: 40, MoELayers: 40, Experts: 256, ExpertsUsed: 8, ExpertBytesAll: 18_000 * units.MiB, TokenCycle: 492 * units.MiB, HostMemory: profile.Some[int64](15_500_000_000)}
	s.Cache = profile.Cache{Streaming: true, Policy: "lru", LayerWorkingSet: 13 * units.MiB, Slots: 1706}
	s.KV = profile.KV{Bytes: 332 * units.MiB, MarkBytes: 252 * units.MiB, Marks: 3, MostMarks: 4}
	s.Lanes = profile.Lanes{Engine: "lanes", Mode: "direct"}
	s.Mapping = profile.Mapping{State: profile.MappingMapped, Bytes: 22_300_000_000, Views: 1, Dense: "anon",
		WeightsChecked: profile.Some[int64](733), WeightsInside: profile.Some[int64](0), DenseResident: profile.Some(1.0)}
	s.Process = profile.Process{RSS: profile.Some[int64](4_900_000_000), RSSAnon: profile.Some[int64](4_700_000_000), AvailableMemory: profile.Some[int64](3_200_000_000),
		ForeignIO: profile.Some(0.0), ForeignCPU: profile.Some(1.0), GCPercent: profile.Some(0.2), Threads: 8, MaxProc: 14,
		Disturbed: profile.Disturbed{Drive: profile.Some(false), CPU: profile.Some(false)}}
	f.settle()
	return f
}

// settle copies the settings into the snapshot.
func (f *fakeEngine) settle() {
	s := &f.s
	s.Lanes.N, s.Lanes.Overlap = f.cfg.lanes, f.cfg.overlap
	s.Cache.Budget = int64(f.cfg.cacheMiB) * units.MiB
	s.Cache.BelowTokenCycle = s.Cache.Budget < s.Model.TokenCycle
	s.Mapping.State, s.Mapping.Views, s.Mapping.Bytes = profile.MappingMapped, 1, s.Model.FileBytes
	if f.cfg.release {
		s.Mapping.State, s.Mapping.Views, s.Mapping.Bytes, s.Mapping.LanesReopened = profile.MappingReleased, 0, 0, true
	}
}

func (f *fakeEngine) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	f.mu.Lock()
	if f.failWith != nil {
		err := f.failWith
		f.mu.Unlock()
		return nil, err
	}
	f.prompts = append(f.prompts, r.Text)
	f.text = r.Text
	f.mu.Unlock()
	return f.run(ctx, r.OnDelta)
}

func (f *fakeEngine) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	f.mu.Lock()
	if f.text == "" {
		f.mu.Unlock()
		return nil, errors.New("there is no run to repeat yet")
	}
	f.cold = true
	f.mu.Unlock()
	return f.run(ctx, onDelta)
}

func (f *fakeEngine) run(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	f.mu.Lock()
	f.runs++
	s := &f.s
	s.Run, s.Step, s.Steps, s.Sum, s.Mean = f.runs, 0, 256, profile.Record{Stall: profile.Some[int64](0)}, profile.Means{}
	s.Ceiling = profile.Maybe[float64]{}
	s.Prompt, s.PromptDone, s.Phase = 24, 0, profile.Prefill
	s.Elapsed = 0
	cold, cfg := f.cold, f.cfg
	var walls []float32
	f.cold = false
	f.mu.Unlock()
	var text, thought strings.Builder
	var err error
	for i, d := range f.script {
		if f.step != nil {
			select {
			case <-f.step:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		if f.breaks != nil && i == len(f.script)/2 {
			err = f.breaks
			break
		}
		walls = append(walls, f.token(i, cfg))
		text.WriteString(d.Text)
		thought.WriteString(d.Reasoning)
		if d.Token = int32(i); f.tells && i > 0 {
			f.mu.Lock()
			r := f.records[len(f.records)-1]
			f.mu.Unlock()
			d.Record = &r
		}
		onDelta(d)
		f.mu.Lock()
		f.handed++
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Phase = profile.Idle
	f.talk.Messages = append(f.talk.Messages, backend.Message{Role: "user", Text: f.text}, backend.Message{Role: "assistant", Text: text.String(), Reasoning: thought.String()})
	f.state = fmt.Sprint("state of ", len(f.talk.Messages))
	r := &backend.Run{N: f.runs, Prompt: f.text, When: time.Date(2026, 11, 30, 14, 2, 0, 0, time.UTC), Settings: backend.Values(f.rows(cfg)), Sum: s.Sum, Walls: walls, Disturbed: f.disturbed, StartKey: f.text, ColdCache: cold, Err: err}
	f.result(&r.Result, text.String())
	if err != nil {
		r.Result.StopReason = "cancelled"
	}
	return r, nil // as a session does: a run that ended early says so itself
}

// stallOf is what a token waits for flash under the settings, in ns.
func stallOf(c fakeConfig) int64 {
	stall := int64(182e6)
	if c.release {
		stall = 74e6
	}
	return stall
}

// token returns the seconds that a token took.
func (f *fakeEngine) token(i int, cfg fakeConfig) float32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.s
	wobble := int64((i*7919)%13-6) * 2e6
	if i%17 == 11 {
		wobble = 86e6
	}
	r := profile.Record{Run: s.Run, Step: i + 1, Compute: 107e6, Mgmt: 27e6, Stall: profile.Some(stallOf(cfg) + wobble), Lookups: 320, Hits: 195, Evictions: 121, Rereads: 82,
		ExpertBytes: 192*units.MiB + units.MiB/2, Reads: 320}
	r.Wall = r.Compute + r.Mgmt + r.Stall.Value
	f.records = append(f.records, r)
	s.Tokens[s.Count%profile.RingTokens] = r
	s.Count++
	s.Phase, s.PromptDone, s.Step, s.CtxUsed = profile.Decode, 24, i+1, 100+i
	s.Sum.Add(&r)
	s.Mean = s.Sum.Means()
	s.Ceiling = profile.Ratio(1e9, float64(s.Mean.Wall.Value-s.Mean.Stall.Value))
	s.Elapsed = 1_900_000_000 + s.Sum.Wall
	s.TTFT = profile.Some[int64](1_900_000_000)
	s.PrefillTPS = profile.Some(12.6)
	s.DecodeTPS = profile.Ratio(float64(i+1)*1e9, float64(s.Sum.Wall))
	s.Wall.P50, s.Wall.P95 = profile.Some(r.Wall-wobble), profile.Some(r.Wall-wobble+86e6)
	s.Cache.Resident, s.Cache.SlotsUsed = s.Cache.Budget-2*units.MiB, 1704
	s.Cache.Arena = s.Cache.Budget + 24*units.MiB
	s.Cache.HitNow, s.Cache.HitRun = profile.Some(58.2), profile.Some(60.9)
	s.Cache.Lookups = s.Sum.Lookups
	s.Cache.EvictionsPerTok, s.Cache.RereadsPerTok, s.Cache.ReadPerTok = profile.Some(121.2), profile.Some(81.8), profile.Some(192.5*units.MiB)
	rate := 926.0 * units.MiB
	if cfg.release {
		rate = 2402 * units.MiB
	}
	s.Lanes.Rate, s.Lanes.RateRun = profile.Some(rate), profile.Some(rate*1.01)
	for l := range cfg.lanes {
		s.Lanes.Lane[l].Rate = profile.Some(rate/float64(cfg.lanes) + float64(l)*units.MiB)
	}
	s.Lanes.P50, s.Lanes.P99 = profile.Some[int64](2_490_000), profile.Some[int64](5_800_000)
	s.Lanes.Wake50 = profile.Some[int64](21_000)
	s.Lanes.Queue = 3
	s.Lanes.Reads += 320
	s.Lanes.Bytes += 196 * units.MiB
	s.Lanes.BusyNanos += 320 * 2_500_000
	s.Process.CPUPerToken = profile.Some[int64](860_000_000)
	s.Process.MajFltPerToken = profile.Some(0.0)
	return float32(r.Wall) / 1e9
}

// History implements backend.History.
func (f *fakeEngine) History(from int64, dst []profile.Record) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from >= int64(len(f.records)) {
		return 0
	}
	return copy(dst, f.records[from:])
}

// Chain implements backend.Chains: what a token missed follows from its number.
func (f *fakeEngine) Chain(record int64, dst []profile.Miss) (int, bool) {
	for i := range 7 {
		dst[i] = profile.Miss{Layer: uint16(i), Expert: uint16(record) + uint16(i), Away: uint16(3 * i), Behind: uint8(i), Wait: uint32(20_000 - 2000*i), Drive: 2490}
	}
	return 7, true
}

func (f *fakeEngine) result(r *profile.Result, text string) {
	s := &f.s
	n := float64(max(s.Step, 1)) * 1e9
	r.Text, r.NGen, r.NPrompt, r.StopReason = text, s.Step, 24, "eos"
	r.TextSHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	r.DecodeTPS, r.TTFT, r.PrefillTPS = s.DecodeTPS, profile.Some(1.9), s.PrefillTPS
	r.PerToken.Wall = profile.Some(float64(s.Sum.Wall) / n)
	r.PerToken.Compute = profile.Some(float64(s.Sum.Compute) / n)
	r.PerToken.Mgmt = profile.Some(float64(s.Sum.Mgmt) / n)
	r.PerToken.Stall = profile.Some(float64(s.Sum.Stall.Value) / n)
	r.PerToken.Other = profile.Some(float64(s.Sum.Other) / n)
	r.ReadMiBPerToken = profile.Some(192.5)
	r.Cache.HitPct = profile.Some(60.9)
	r.Cache.Hits, r.Cache.Lookups = profile.Some(s.Sum.Hits), profile.Some(s.Sum.Lookups)
	r.Cache.Evictions, r.Cache.Rereads = profile.Some(int64(121*s.Step)), profile.Some(int64(82*s.Step))
	r.IO.P50 = profile.Some(2.49)
	if f.cfg.release {
		r.IO.P50 = profile.Some(1.20)
	}
	r.TokenIDs = make([]int32, s.Step)
	if f.simulated {
		r.Flags = []string{"simulated"}
	}
	r.Flags = append(r.Flags, f.disturbed.Flags()...)
}

func (f *fakeEngine) NewChat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newChats++
	f.talk, f.state = backend.Chat{}, ""
	f.text = ""
	f.s.CtxUsed = 0
}

// fakeConfig is what the fake engine obeys.
type fakeConfig struct {
	lanes, cacheMiB  int
	overlap, release bool
}

func (f *fakeEngine) Info() backend.Info {
	return backend.Info{Model: f.s.Model.Name, Arch: f.s.Model.Arch}
}

func (f *fakeEngine) Settings() []backend.Setting {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows(f.cfg)
}

// rows are the fake's settings under a configuration.
func (f *fakeEngine) rows(c fakeConfig) []backend.Setting {
	toggle := func(name, value, help string) backend.Setting {
		return backend.Setting{Name: name, Flag: name, Kind: backend.Switch, Want: "on or off", Value: value, Origin: backend.FromDefault, Live: true, Main: true, Help: help}
	}
	rows := []backend.Setting{
		{Name: "threads", Flag: "threads", Kind: backend.Whole, Least: 1, Most: 256, Want: "1 to 256", Value: "8", Origin: backend.FromDefault, Help: "compute workers"},
		{Name: "lanes", Flag: "io-threads", Kind: backend.Whole, Least: 1, Most: 64, Want: "1 to 64", Value: fmt.Sprint(c.lanes), Origin: backend.FromDefault, Live: true, Main: true, Help: "readers"},
		{Name: "cache", Flag: "cache-mb", Kind: backend.Whole, Unit: "MiB", Words: []string{"auto"}, Least: 1, Most: 1 << 30, Want: "1 or more MiB, or auto",
			Value: fmt.Sprint(c.cacheMiB), Origin: backend.FromDefault, Live: true, Main: true, Help: "budget of the cache"},
		toggle("overlap", backend.OnOff(c.overlap), "compute while reading"),
		toggle("release-mmap", backend.OnOff(c.release), "hand the mapping back"),
	}
	return append(rows, f.more...)
}

// Step walks lanes by doubling and the budget by an eighth.
func (f *fakeEngine) Step(name, from string, dir int) string {
	n, _ := strconv.Atoi(from)
	switch {
	case name == "lanes" && dir > 0:
		return fmt.Sprint(min(2*n, 8))
	case name == "lanes":
		return fmt.Sprint(max(n/2, 1))
	case name == "cache" && dir > 0:
		return fmt.Sprint((n/2250 + 1) * 2250)
	case name == "cache":
		return fmt.Sprint(max((n-1)/2250*2250, 2250))
	}
	return backend.OnOff(from != backend.On)
}

func (f *fakeEngine) Apply(wishes map[string]string) []backend.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, maps.Clone(wishes))
	var out []backend.Outcome
	for _, r := range f.rows(f.cfg) {
		v, ok := wishes[r.Name]
		if !ok {
			continue
		}
		o := backend.Outcome{Setting: r.Name, Verdict: backend.Applied, Value: r.Show(v)}
		switch n, _ := strconv.Atoi(v); r.Name {
		case "lanes":
			f.cfg.lanes = n
		case "cache":
			if v == "auto" {
				n = 4500
			}
			f.cfg.cacheMiB = n
			o.Value = fmt.Sprint(n, " MiB")
		case "overlap":
			f.cfg.overlap = v == backend.On
		case "release-mmap":
			if f.decline != "" && v == backend.On {
				f.s.Mapping.Reason = f.decline
				o.Verdict, o.Value, o.Reason = backend.Declined, backend.Off, f.decline
				break
			}
			f.cfg.release, o.Reason = v == backend.On, "lanes reopened"
		default:
			i := slices.IndexFunc(f.more, func(m backend.Setting) bool { return m.Name == r.Name })
			f.more[i].Value = v
		}
		out = append(out, o)
	}
	f.settle()
	return out
}

// config is what is in force.
func (f *fakeEngine) config() fakeConfig {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg
}

func (f *fakeEngine) Snapshot(dst *profile.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.Simulated = f.simulated
	*dst = f.s
}

func (f *fakeEngine) Warnings() []string { return f.warnings }

func (f *fakeEngine) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errors.New("closed twice")
	}
	f.closed = true
	return nil
}

func (f *fakeEngine) Chat() backend.Chat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.talk
}

func (f *fakeEngine) SetChat(c backend.Chat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.talk, f.state, f.text = c, "", ""
}

func (f *fakeEngine) Save(w io.Writer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := io.WriteString(w, f.state)
	return err
}

func (f *fakeEngine) Load(r io.Reader) error {
	b, err := io.ReadAll(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && !strings.HasPrefix(string(b), "state") {
		err = errors.New("it is damaged")
	}
	if err == nil {
		f.state = string(b)
	}
	return err
}
