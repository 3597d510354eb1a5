//go:build !windows

package tui

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/demo"
	"bmoe/internal/conform"
)

// demoModel writes the embedded model to a folder of the test's.
func demoModel(t *testing.T) string {
	t.Helper()
	dir := conform.TempDir(t)
	for _, k := range []string{"XDG_CACHE_HOME", "HOME"} { // where each system looks for a cache folder
		t.Setenv(k, dir)
	}
	path, err := demo.Path(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(dir, path); err != nil || strings.HasPrefix(rel, "..") {
		t.Fatalf("the demo was written to %s, outside %s", path, dir)
	}
	return path
}

// withSession runs the screen on a real session of the demo model.
func withSession(t *testing.T, change func(*engine.Config)) (*realTerminal, func() *kept) {
	c := engine.DefaultConfig()
	c.Model, c.Cache, c.Threads, c.MaxTokens = demoModel(t), engine.Budget{Bytes: 8 << 20}, 2, 96
	change(&c)
	before := runtime.GOMAXPROCS(c.Threads + 8 + 2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	opened := make(chan *kept, 1)
	r := inTerminal(t, 140, 40, nil, Options{Name: "demo", Open: func(p func(string, float64)) (backend.Backend, error) {
		s, err := engine.Open(context.Background(), c, p)
		if err != nil {
			return nil, err
		}
		k := &kept{Session: s}
		opened <- k
		return k, nil
	}})
	return r, func() *kept { return <-opened }
}

// kept is a session whose runs a test can look at after the screen is gone.
type kept struct {
	*engine.Session
	runs []*backend.Run
}

func (k *kept) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	run, err := k.Session.Generate(ctx, r)
	k.runs = append(k.runs, run)
	return run, err
}

func (k *kept) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	run, err := k.Session.Again(ctx, onDelta)
	k.runs = append(k.runs, run)
	return run, err
}

const (
	keyF2, keyF4, keyF6, keyF8, keyF10 = "\x1bOQ", "\x1bOS", "\x1b[17~", "\x1b[19~", "\x1b[21~"
	keyAgain                           = "\x07"
)

// The whole of it, on the real engine: a chat, the panes, changed settings,
// the same again, and the comparison.
func TestAChatOnTheDemoModel(t *testing.T) {
	r, session := withSession(t, func(*engine.Config) {})
	r.waitFor("Tiny Stories", "ask something", "idle")
	s := session()
	r.types("Tell me a story about a dog.\r")
	frames := map[string]bool{}
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(r.screen(), "96 tokens, ") && time.Now().Before(deadline) {
		if f := r.screen(); strings.Contains(f, "decoding") {
			frames[f] = true
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.waitFor("96 tokens, ", "tok/s", "waits", "idle")
	if len(frames) < 2 {
		t.Errorf("%d frames while decoding: nothing moved", len(frames))
	}
	r.types(keyF2 + keyF4 + keyF6)
	up := s.Step("cache", "8", 1) // how large slots are, and so the steps, is the file system's affair
	r.waitFor("release-mmap on applied", "lanes 8 applied", "cache "+up+" MiB applied")
	r.types(keyAgain)
	r.waitFor("run 2 against run 1 (lanes 8, cache " + up + " MiB, release-mmap on)")
	r.types(keyF10)
	r.waitFor("settings that differ", "1      lanes 4", "2      lanes 8", "identical", "Esc closes") // the last: half a frame still shows the prompt
	r.types("\x1b")
	r.waitFor("> ask something")
	r.types("\x03\x03")
	if err := r.restored(); err != nil {
		t.Fatal(err)
	}
	if runs := s.runs; len(runs) != 2 || runs[0].Result.TextSHA256 != runs[1].Result.TextSHA256 || runs[0].Result.Text == "" {
		t.Errorf("%d runs, or texts that differ", len(runs))
	}
}

// The map of experts moves while the engine answers, and the layers tell of its waiting.
func TestTheMapOfTheDemoModel(t *testing.T) {
	// Slow enough for several pictures on any machine.
	r, _ := withSession(t, func(c *engine.Config) { c.MaxTokens, c.Lanes, c.SimulateHost = 48, 1, "ntfs" })
	r.waitFor("idle", "ask something")
	r.types(keyF8)
	r.waitFor("experts  0 of 192 in memory", "layer 0, expert 0: not in memory", "not used since the cache was emptied")
	r.types("\x1b")
	r.waitFor("> ask something")
	r.types("Tell me a story about a dog.\r" + keyF8)
	maps := map[string]bool{}
	over := func(s string) bool { return strings.Contains(s, "idle") && strings.Contains(s, "tok/s") }
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline) && !over(r.screen()); time.Sleep(5 * time.Millisecond) {
		if s := r.screen(); strings.Contains(s, "in memory") && strings.Contains(s, "decoding") {
			maps[s] = true
		}
	}
	r.waitFor("idle", "hit ", "of 192 in memory")
	if len(maps) < 2 {
		t.Errorf("%d pictures of the map while decoding: nothing moved", len(maps))
	}
	r.types("l")
	r.waitFor("layers  a token waits", "layer", "compute")
	r.types("\x1b")
	r.waitFor("in memory  policy")
	r.types(keyF8)
	r.waitFor("48 tokens, ")
	r.types("\x03\x03")
	if err := r.restored(); err != nil {
		t.Fatal(err)
	}
}

// The finding that the project turns on, as a user meets it: on the simulated
// host F2 releases the mapping and changes neither text nor counts. How much the
// stall falls by is the machine's affair, and logged.
func TestReleasingTheMappingOnTheSimulatedHost(t *testing.T) {
	r, session := withSession(t, func(c *engine.Config) { c.SimulateHost = "ntfs" })
	r.waitFor("SIMULATED", "idle", "MAPPED")
	s := session()
	r.types("What happened to Lily?\r")
	r.waitFor("96 tokens, ", "SIMULATED")
	r.types(keyF2 + keyAgain)
	r.waitFor("run 2 against run 1 (release-mmap on)", "RELEASED")
	r.types(keyF10)
	r.waitFor("2      release-mmap on", "identical")
	r.types("\x03\x03")
	if err := r.restored(); err != nil {
		t.Fatal(err)
	}
	runs := s.runs
	if len(runs) != 2 {
		t.Fatalf("%d runs, want 2", len(runs))
	}
	a, b := &runs[0].Result, &runs[1].Result
	if !a.PerToken.Stall.OK || !b.PerToken.Stall.OK {
		t.Error("no stall was measured")
	}
	t.Logf("stall a token: %v s mapped, %v s released", a.PerToken.Stall.Value, b.PerToken.Stall.Value)
	if a.TextSHA256 != b.TextSHA256 || a.Cache.Hits != b.Cache.Hits || a.Cache.Evictions != b.Cache.Evictions || a.Cache.Rereads != b.Cache.Rereads || a.ReadMiBPerToken != b.ReadMiBPerToken {
		t.Errorf("text, hits, evictions, re-reads or bytes changed: %+v %+v", a.Cache, b.Cache)
	}
}

func TestAMissingModelIsOneLine(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "none.gguf")
	r := inTerminal(t, 80, 24, nil, Options{Open: func(p func(string, float64)) (backend.Backend, error) {
		c := engine.DefaultConfig()
		c.Model = path
		s, err := engine.Open(context.Background(), c, p)
		if err != nil {
			return nil, err
		}
		return s, nil
	}})
	err := r.restored()
	if err == nil || !os.IsNotExist(unwrapAll(err)) && !strings.Contains(err.Error(), "no such file") || strings.Contains(err.Error(), "\n") {
		t.Errorf("returned %v", err)
	}
}

// unwrapAll returns the innermost error.
func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}
