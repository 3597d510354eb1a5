package engine

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// diagnosed asks and returns what is found, by rule.
func diagnosed(t *testing.T, s *Session, tokens int) map[string]profile.Finding {
	t.Helper()
	run, err := s.Generate(context.Background(), backend.Request{Text: "Tell me a story about a dog.", MaxTokens: tokens})
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	found := map[string]profile.Finding{}
	for _, f := range run.Result.Diagnosis {
		found[f.Rule] = f
	}
	return found
}

// A cache below one token's experts is found, and no more once it is larger.
func TestASmallCacheIsFound(t *testing.T) {
	cfg := demoConfig()
	cfg.CachePolicy = "lru"
	cfg.Cache = Budget{Bytes: 2 << 20}
	s := open(t, cfg)
	f, ok := diagnosed(t, s, 32)["cycle"]
	if !ok || f.Setting != "cache" || f.Value == "" { // 3, or more where windows of the drive are larger
		t.Fatalf("a cache of 2 MiB, where a token needs 2.8 or more: %+v", f)
	}
	if o := s.Apply(map[string]string{f.Setting: f.Value}); o[0].Verdict != backend.Applied {
		t.Fatal(o)
	}
	if f, ok := diagnosed(t, s, 32)["cycle"]; ok {
		t.Errorf("after what it said to do: %+v", f)
	}
}

// On a host that serialises reads of a mapped file, lanes are found to give no more
// than one, the mapping is named as what may be the cause, and never once it is gone.
func TestASerialisingHostIsFound(t *testing.T) {
	// Reads long enough that what a busy machine adds to each does not matter.
	path := filepath.Join(conform.TempDir(t), "long.gguf")
	if err := synth.Write(path, synth.Spec{Layers: 2, Embd: 1024, Heads: 4, KVHeads: 2, HeadDim: 32, Experts: 6, Used: 2, ExpertFF: 2048, Vocab: 512, Ctx: 256, Seed: 3, Type: "Q4_0"}); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Model, cfg.Raw, cfg.SimulateHost = path, true, "ntfs"
	cfg.Cache = Budget{Bytes: layerBytes(t, cfg) * 3 / 2}
	s := open(t, cfg)
	var f profile.Finding
	ok := false
	for range 20 { // what one lane gives was measured in 25 ms, in which others may have been busy
		if f, ok = diagnosed(t, s, 48)["lanes"]; ok {
			break
		}
		var live profile.Snapshot
		s.Snapshot(&live)
		t.Logf("one lane alone %v, all %v bytes a second", live.Lanes.Alone, live.Lanes.RateRun)
		s.Apply(map[string]string{"lanes": "2"})
		s.Apply(map[string]string{"lanes": "4"})
	}
	if !ok || f.Setting != "release-mmap" || f.Cost.OK || !strings.Contains(f.Action, "can be the cause, or one lane may be all") {
		t.Fatalf("%+v", f)
	}
	if o := s.Apply(map[string]string{f.Setting: f.Value}); o[0].Verdict != backend.Applied {
		t.Fatal(o)
	}
	if f, ok := diagnosed(t, s, 48)["lanes"]; ok && f.Setting != "" {
		t.Errorf("the mapping is named after it has gone: %+v", f)
	}
}

// Another program that takes the processors is found.
func TestACPUHogIsFound(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no shell to run a hog with")
	}
	s := open(t, demoConfig())
	var live profile.Snapshot
	diagnosed(t, s, 4)
	if s.Snapshot(&live); !live.Process.Disturbed.CPU.OK {
		t.Skip("this host does not tell what others do")
	}
	for range 2 * runtime.NumCPU() {
		hog := exec.Command(sh, "-c", "while :; do :; done")
		if err := hog.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			hog.Process.Kill()
			hog.Wait() // ends with the signal's error
		}()
	}
	var found map[string]profile.Finding
	for range 10 { // until the scheduler has let them take turns
		found = diagnosed(t, s, 64)
		if _, ok := found["disturbed"]; ok {
			break
		}
	}
	f, ok := found["disturbed"]
	if !ok || !strings.Contains(f.Evidence, "CPU") || !strings.Contains(f.Action, "close other programs") {
		t.Errorf("%+v", found)
	}
	if s.Snapshot(&live); !live.Process.Disturbed.CPU.Value || !slices.Contains(live.Process.Disturbed.Flags(), "disturbed_cpu") {
		t.Errorf("%+v", live.Process.Disturbed)
	}
}
