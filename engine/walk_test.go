package engine

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/internal/conform"
)

var (
	walkCount = flag.Int("walks", 6, "how many walks TestRandomWalks takes")
	walkSeed  = flag.Uint64("walk-seed", 1, "which walks TestRandomWalks takes")
)

const walkTokens = 10

// walkModel is one of the models that the walks choose from. Most prompts begin
// alike, so that a state is rewound and continued.
type walkModel struct {
	path    string
	ctx     int
	prompts []string
	want    [][]int32 // the answer to each
	least   int64     // one layer's working set
}

// walk is one session, opened anyhow and used anyhow.
type walk struct {
	*Session
	*walked
	t     *testing.T
	r     *rand.Rand
	model *walkModel
	steps []string // what was done, for the report of a failure
}

// walked counts what the walks did.
type walked struct {
	whole, cancelled  int // runs
	applied, declined int // settings
}

// TestRandomWalks opens sessions with random settings, changes settings, asks,
// repeats and cancels at random, and expects one text for each question whatever came
// before, and nothing left behind: no goroutine, no open file, no mapping.
func TestRandomWalks(t *testing.T) {
	prompts := []string{prompt, prompt + " a bear", "Once upon a time", "The sea"}
	long := windowedPrompt // beyond what the rings of a windowed model hold
	models := []*walkModel{
		{path: conform.File(t, "models/qwen3moe.gguf"), ctx: 64, prompts: prompts},
		{path: conform.File(t, "quants/qwen3moe-q-Q4_K_M.gguf"), ctx: 64, prompts: prompts},
		{path: windowed(t).Model, ctx: 512, prompts: []string{long, long + " lu", long[:len(long)/2], "The sea"}},
	}
	if conform.HasShared() { // every family
		for i, path := range familyFiles(t) {
			if testing.Short() && *walkCount < 100 && i%6 != 0 {
				continue // each costs a run of its own first
			}
			models = append(models, &walkModel{path: path, ctx: 64, prompts: prompts})
		}
	}
	for _, m := range models {
		cfg := DefaultConfig()
		cfg.Model, cfg.Raw, cfg.Threads, cfg.Ctx = m.path, true, 1, m.ctx
		cfg.Stream, cfg.Dense = false, DenseMmap
		for _, p := range m.prompts {
			s := open(t, cfg)
			r, err := s.Generate(context.Background(), backend.Request{Text: p, MaxTokens: walkTokens})
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			m.want, m.least = append(m.want, r.Result.TokenIDs), s.shape.LayerWorkingSet()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var first, last leftovers
	var settled int64 // memory after the first quarter
	var did walked
	for i := range *walkCount {
		w := &walk{t: t, walked: &did, r: rand.New(rand.NewPCG(*walkSeed, uint64(i)))}
		w.model = pick(w.r, models...)
		w.take()
		if t.Failed() {
			t.Fatalf("walk %d of -walk-seed %d: %s", i, *walkSeed, strings.Join(w.steps, "; "))
		}
		last = countLeftovers(first, models)
		if i == 0 {
			first = last
		}
		if i == *walkCount/4 {
			settled = last.memory
		}
		if last.goroutines > first.goroutines || last.files > first.files || last.mappings > first.mappings {
			t.Fatalf("walk %d of -walk-seed %d left something behind: %+v, after the first walk %+v: %s", i, *walkSeed, last, first, strings.Join(w.steps, "; "))
		}
	}
	t.Logf("%d walks %+v; after the first %+v, memory after a quarter %d, after the last %+v", *walkCount, did, first, settled, last)
	// A session's arenas are megabytes each. The Go heap finds its size in the first
	// quarter of the walks; the race detector keeps several bytes for each of its own.
	// Elsewhere than on Linux both are 0.
	if grown := last.memory - settled; grown > 512<<20 {
		t.Errorf("the address space grew by %d MiB after the first quarter", grown>>20)
	}
	if did.whole == 0 || did.cancelled == 0 || did.applied == 0 {
		t.Errorf("the walks show nothing: %+v", did)
	}
}

// familyFiles returns the models of the conformance set, one or more of every family.
func familyFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(conform.Shared(t, "conformance/models/qwen2moe.gguf")), "*.gguf"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d models of the conformance set: %v", len(files), err)
	}
	return files
}

// pick returns one of the choices.
func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// config returns settings that must not change the text.
func (w *walk) config() Config {
	r := w.r
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.Ctx = w.model.path, true, w.model.ctx
	cfg.Threads, cfg.UBatch, cfg.Lanes = 1+r.IntN(3), pick(r, 1, 3, 7, 64), pick(r, 1, 2, 4, 8)
	cfg.Stream, cfg.Overlap, cfg.NoDirect = r.IntN(6) > 0, r.IntN(3) > 0, r.IntN(4) == 0
	cfg.Dense, cfg.ReleaseMmap = pick(r, DenseAnon, DenseMmap, DenseWarm), r.IntN(3) == 0
	cfg.IOEngine = pick(r, "lanes", "lanes", "uring")
	cfg.CachePolicy = pick(r, policy.Names()...)
	cfg.Foresight = expert.Foresight{r.IntN(2), r.IntN(5), pick(r, 0, 0, 3)}
	cfg.Cache = Budget{Bytes: w.model.least * pick[int64](r, 1, 2, 3, 100)}
	if r.IntN(12) == 0 {
		cfg.SimulateHost = "ntfs"
	}
	return cfg
}

// take opens a session, does a few things with it and closes it.
func (w *walk) take() {
	cfg := w.config()
	w.note("open %+v", cfg)
	s, err := Open(context.Background(), cfg, nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.Session = s
	defer func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	}()
	if w.r.IntN(3) == 0 && s.state.Marks().Most == 0 {
		w.note("as a recurrent model")
		s.arch, s.state = recurrentArch{s.arch}, &recurrentState{State: s.state}
	}
	asked := -1
	for range 4 + w.r.IntN(6) {
		switch w.r.IntN(6) {
		case 0, 1:
			w.settings()
		case 2:
			w.note("new chat")
			w.NewChat()
			asked = -1
		case 3:
			if asked >= 0 {
				w.run("again", asked, func(ctx context.Context, on func(backend.Delta)) (*backend.Run, error) { return w.Again(ctx, on) })
			}
		default:
			asked = w.r.IntN(len(w.model.prompts))
			w.run("ask", asked, func(ctx context.Context, on func(backend.Delta)) (*backend.Run, error) {
				return w.Generate(ctx, backend.Request{Text: w.model.prompts[asked], MaxTokens: walkTokens, OnDelta: on})
			})
		}
	}
}

// settings changes one or more settings. Any may be declined.
func (w *walk) settings() {
	wishes := map[string]string{}
	if w.r.IntN(2) == 0 {
		wishes["release-mmap"] = pick(w.r, backend.Off, backend.On)
	}
	if w.r.IntN(2) == 0 {
		wishes["lanes"] = pick(w.r, "1", "2", "4", "8")
	}
	if w.r.IntN(2) == 0 {
		wishes["overlap"] = pick(w.r, backend.Off, backend.On)
	}
	if w.r.IntN(2) == 0 {
		wishes["token-prefetch"], wishes["predict-prefetch"] = pick(w.r, backend.Off, backend.On), pick(w.r, "0", "1", "4")
	}
	if w.r.IntN(2) == 0 {
		wishes["cache-policy"] = pick(w.r, policy.Names()...)
	}
	out := w.Apply(wishes)
	if w.streamer != nil && w.r.IntN(2) == 0 {
		// In bytes: all experts of the model are less than a MiB.
		c := w.cfg
		c.Cache = Budget{Bytes: w.model.least * pick[int64](w.r, 1, 2, 3, 100)}
		o := backend.Outcome{Setting: "cache"}
		var err error
		if o.Verdict, o.Reason, err = w.applyCache(c); err != nil {
			w.t.Errorf("a change of the cache: %v", err)
		}
		out = append(out, o)
	}
	w.note("settings %v", out)
	for _, o := range out {
		if o.Verdict == backend.Applied {
			w.applied++
		} else {
			w.declined++
		}
	}
}

// run asks or repeats, whole or cancelled after some tokens or some time.
func (w *walk) run(what string, asked int, do func(context.Context, func(backend.Delta)) (*backend.Run, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	after := -1
	switch w.r.IntN(4) {
	case 0:
		after = w.r.IntN(walkTokens)
	case 1:
		after = walkTokens + 1
		timer := time.AfterFunc(time.Duration(w.r.IntN(8000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	w.note("%s %d, cancelled after %d tokens", what, asked, after)
	if after == 0 {
		cancel()
	}
	n := 0
	r, err := do(ctx, func(backend.Delta) {
		if n++; n == after {
			cancel()
		}
	})
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
		return
	}
	if r.Err == nil {
		w.whole++
	} else {
		w.cancelled++
	}
	want := w.model.want[asked]
	switch got := r.Result.TokenIDs; {
	case r.Err == nil && !slices.Equal(got, want):
		w.t.Errorf("%s %d gives %v, want %v", what, asked, got, want)
	case r.Err != nil && (after < 0 || !errors.Is(r.Err, context.Canceled)):
		w.t.Errorf("%s %d: %v", what, asked, r.Err)
	case len(got) > len(want) || !slices.Equal(got, want[:len(got)]):
		w.t.Errorf("%s %d, cancelled, gives %v, want a part of %v", what, asked, got, want)
	}
}

func (w *walk) note(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

// leftovers counts what a session must give back. Where the system does not tell,
// as outside Linux, files and mappings are 0.
type leftovers struct {
	goroutines, files, mappings int
	memory                      int64 // address space that can be written to, bytes
}

// countLeftovers waits a little for goroutines that are on their way out.
func countLeftovers(want leftovers, models []*walkModel) leftovers {
	l := leftovers{goroutines: runtime.NumGoroutine()}
	for i := 0; i < 200 && want.goroutines > 0 && l.goroutines > want.goroutines; i++ {
		time.Sleep(10 * time.Millisecond)
		l.goroutines = runtime.NumGoroutine()
	}
	if runtime.GOOS != "linux" { // Wine shows a /proc that is not this process's
		return l
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		l.files = len(fds)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		for _, m := range models {
			l.mappings += bytes.Count(maps, []byte(filepath.Base(m.path)))
		}
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := bytes.Cut(status, []byte("VmData:")); ok {
			fmt.Sscan(string(rest), &l.memory)
			l.memory <<= 10
		}
	}
	return l
}
