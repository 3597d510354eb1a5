package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"
	"bmoe/internal/units"
	"bmoe/profile"
)

// put links a file of the test data to a place, or copies it.
func put(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every place's models are found once, by the name that the place has for them.
func TestScan(t *testing.T) {
	home := conform.TempDir(t)
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("OLLAMA_MODELS", "")
	t.Chdir(conform.TempDir(t))
	model := conform.File(t, "models/qwen3moe.gguf")
	hub := filepath.Join(home, "hub")
	blob := filepath.Join(hub, "models--some--one", "blobs", "0123.gguf")
	put(t, model, blob)
	snapshot := filepath.Join(hub, "models--some--one", "snapshots", "abc", "one.gguf")
	if err := os.MkdirAll(filepath.Dir(snapshot), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(blob, snapshot); err != nil {
		put(t, model, snapshot)
	}
	put(t, model, filepath.Join(hub, "models--some--one", "snapshots", "abc", "mmproj-one.gguf"))
	put(t, model, filepath.Join(home, ".lmstudio", "models", "owner", "name", "two.gguf"))
	put(t, model, filepath.Join(home, ".lmstudio", "models", ".hidden", "no.gguf"))
	put(t, model, "three.gguf")
	put(t, model, filepath.Join("below", "no.gguf")) // only what lies here itself
	if err := os.WriteFile("broken.gguf", []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("ab", 32)
	put(t, model, filepath.Join(home, ".ollama", "models", "blobs", "sha256-"+digest))
	for path, layer := range map[string]string{
		"registry.ollama.ai/library/four/latest": "sha256:" + digest,
		"registry.ollama.ai/me/five/q4":          "sha256:../../../three.gguf",
		"registry.ollama.ai/me/six/q4":           "sha256:" + strings.Repeat("cd", 32), // not there
	} {
		to := filepath.Join(home, ".ollama", "models", "manifests", filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		manifest := fmt.Sprintf(`{"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:%s"},{"mediaType":%q,"digest":%q}]}`,
			digest, ollamaModel, layer)
		if err := os.WriteFile(to, []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, notes, err := Scan(context.Background(), Places([]string{filepath.Join(home, "nowhere"), "."}, hub))
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "nowhere") {
		t.Errorf("%v, %v", notes, err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.Place+" "+m.Name)
		if (m.Problem != "") != (m.Name == "broken.gguf") || m.Problem == "" && (m.Arch != "qwen3moe" || !m.MoE()) {
			t.Errorf("%+v", m)
		}
	}
	want := []string{". no.gguf", ". broken.gguf", ". three.gguf", "Hugging Face one.gguf", "LM Studio two.gguf", "Ollama four:latest"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Scan(ctx, Places(nil, hub)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What a header tells: the bytes of a token are those of its experts and of what every
// token needs.
func TestDescribe(t *testing.T) {
	path := filepath.Join("..", "demo", "tiny-stories-moe-q8_0.gguf")
	m := Describe(path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.Problem != "" || m.Arch != "qwen3moe" || m.Size != info.Size() || m.Quant != "Q8_0" || !m.MoE() || m.Used <= 0 || m.Used >= m.Experts || m.Layers <= 0 {
		t.Errorf("%+v", m)
	}
	if m.ActiveExperts*int64(m.Experts) != m.ExpertBytes*int64(m.Used) || m.ActiveDense <= 0 || m.ExpertBytes+m.ActiveDense > m.Size || m.ExpertBytes < m.Size/2 {
		t.Errorf("%+v", m)
	}
	tied := Describe(conform.File(t, "models/qwen3moe-tied.gguf"))
	own := Describe(conform.File(t, "models/qwen3moe.gguf"))
	if tied.ActiveDense <= 0 || own.ActiveDense <= 0 {
		t.Errorf("tied %d, own head %d", tied.ActiveDense, own.ActiveDense)
	}
	if m := Describe(filepath.Join(conform.TempDir(t), "none.gguf")); m.Problem == "" || strings.Contains(m.Problem, "\n") {
		t.Errorf("%+v", m)
	}
}

// The estimate is bound by what it is made of: more memory never makes a model slower,
// and what the drive decides is not told without a drive that was measured.
func TestSpeed(t *testing.T) {
	m := &Model{Size: 20 * units.GiB, Experts: 128, Used: 8, Layers: 48, ExpertBytes: 18 * units.GiB, ActiveExperts: 18 * units.GiB / 16, ActiveDense: units.GiB}
	r := Rates{Memory: 20e9, Drive: profile.Some(2e9)}
	before := Speed{}
	for gib := int64(1); gib <= 40; gib++ {
		s, ok := m.Speed(r, gib*units.GiB)
		if !ok || s.Least <= 0 || s.Least > s.Most || s.Least < before.Least || s.Most < before.Most {
			t.Errorf("%d GiB: %+v, %v; with one less %+v", gib, s, ok, before)
		}
		if limit := r.Memory / float64(m.Active()); s.Most > limit {
			t.Errorf("%d GiB: %v is beyond what memory gives, %v", gib, s.Most, limit)
		}
		before = s
	}
	if s, _ := m.Speed(r, units.GiB); s.Least < 0.5 || s.Least > 2e9/float64(m.ActiveExperts)*1.1 {
		t.Errorf("nothing cached: %+v", s)
	}
	if _, ok := m.Speed(Rates{Memory: 20e9}, units.GiB); ok {
		t.Error("told without a drive")
	}
	if s, ok := m.Speed(Rates{Memory: 20e9}, 40*units.GiB); !ok || s != before {
		t.Errorf("all in memory: %+v, %v", s, ok)
	}
	if _, ok := (&Model{Problem: "broken"}).Speed(r, units.GiB); ok {
		t.Error("a speed of what cannot be run")
	}
	if got := (Speed{3.141, 8}).String(); got != "3.1 to 8 tok/s" && got != "3.1 to 8.0 tok/s" {
		t.Error(got)
	}
}

// The probes end and tell figures, or say why not.
func TestProbes(t *testing.T) {
	memory, err := ProbeMemory(context.Background())
	if err != nil || memory < 1e8 {
		t.Errorf("memory %v, %v", memory, err)
	}
	m := Describe(filepath.Join("..", "demo", "tiny-stories-moe-q8_0.gguf"))
	rate, err := ProbeDrive(context.Background(), &m)
	if err == nil && rate <= 0 || err != nil && !errors.Is(err, errCached) {
		t.Errorf("drive %v, %v", rate, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ProbeDrive(ctx, &m); err == nil {
		t.Error("cancelled, and there is a figure")
	}
	small := Describe(conform.File(t, "models/qwen3moe.gguf"))
	if _, err := ProbeDrive(context.Background(), &small); err != nil && strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// A name that tells how much of a model works on a token makes it a MoE; any other is
// taken to need all of it, and so to be slower.
func TestUnseen(t *testing.T) {
	const size = 18 * units.GiB
	r, memory := Rates{Memory: 20e9, Drive: profile.Some(2e9)}, int64(12*units.GiB)
	m := Unseen("gpt-oss-20b-mxfp4.gguf", size)
	dense, ok := m.Speed(r, memory)
	if !ok || m.MoE() || m.Active() != size {
		t.Errorf("%+v, %v", m, ok)
	}
	m = Unseen("Qwen3-30B-A3B-Q4_K_M.gguf", size)
	moe, ok := m.Speed(r, memory)
	if !ok || !m.MoE() || m.Active() < size/11 || m.Active() > size/9 || m.ExpertBytes+m.ActiveDense != size || m.Experts < 50 || m.Experts > 130 {
		t.Errorf("%+v, %v", m, ok)
	}
	if moe.Least <= dense.Most {
		t.Errorf("MoE %v, dense %v", moe, dense)
	}
	for _, name := range []string{"Model-7B-A7B.gguf", "Model-A3B.gguf", "Model-30B-A0B.gguf", "30B-A3Bits.gguf"} {
		if m := Unseen(name, size); m.MoE() {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
