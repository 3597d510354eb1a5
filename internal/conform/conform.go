// Package conform serves tests: it finds the conformance data, tiny models and
// what llama.cpp computes with them, and makes folders that work everywhere.
package conform

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// root is the module's folder.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// sharedDir is the folder of the shared data: BMOE_SHARED, relative to the
// module's folder, or shared beside that.
func sharedDir() string {
	dir := os.Getenv("BMOE_SHARED")
	switch {
	case dir == "":
		return filepath.Join(root(), "..", "shared")
	case filepath.IsAbs(dir):
		return dir
	}
	return filepath.Join(root(), dir)
}

// HasShared reports whether the shared data is there. It is large and not part
// of the module.
func HasShared() bool {
	_, err := os.Stat(sharedDir())
	return err == nil
}

// Shared returns the path of a file or folder of the shared data, or skips the
// test where the shared data is not there. If the data is there and the file is
// not, the test fails.
func Shared(t testing.TB, name string) string {
	t.Helper()
	if !HasShared() {
		t.Skip("needs the shared data: set BMOE_SHARED")
	}
	path := filepath.Join(sharedDir(), filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// File returns the path of a file of the conformance set: the module's own copy
// of it if there is one, else the shared one.
func File(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(root(), "testdata", "conformance", filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return Shared(t, "conformance/"+name)
}

// Routing is the routed experts of one layer.
type Routing struct {
	Layer   int         `json:"layer"`
	TopK    [][]int32   `json:"topk"`    // by token, best first
	Weights [][]float32 `json:"weights"` // by token, in that order
}

// Run is llama.cpp's greedy continuation under one setting.
type Run struct {
	LogitsFile string    `json:"logits_file"`
	MaxVsMain  float64   `json:"max_abs_diff_vs_kv_f32_fa_off"`
	Greedy     []int32   `json:"greedy"`
	Margin     []float64 `json:"greedy_margin"`
}

// Golden is what llama.cpp computed with one model.
type Golden struct {
	Tokens  []int32        `json:"tokens"`
	Vocab   int            `json:"n_vocab"`
	Embd    int            `json:"n_embd"`
	Runs    map[string]Run `json:"runs"`
	Routing struct {
		Layers []Routing `json:"layers"`
	} `json:"routing"`
	Exact struct {
		Run
		MaxNative float64 `json:"max_abs_diff_native_vs_exact"`
		RMSNative float64 `json:"rms_diff_native_vs_exact"`
		Routing   struct {
			Layers []Routing `json:"layers"`
		} `json:"routing"`
		Hidden struct {
			File string `json:"file"`
		} `json:"hidden"`
	} `json:"exact"`
}

// Load reads the golden of a model.
func Load(t testing.TB, name string) *Golden {
	t.Helper()
	b, err := os.ReadFile(File(t, "golden/"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	g := &Golden{}
	if err := json.Unmarshal(b, g); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return g
}

// Floats reads a golden's raw little-endian float32 file.
func Floats(t testing.TB, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(File(t, "golden/"+name))
	if err != nil {
		t.Fatal(err)
	}
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

// TempDir returns a folder of the test's own, removed at its end. Unlike
// t.TempDir it takes no offence if the folder cannot be removed: Wine cannot.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bmoe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err)
		}
	})
	return dir
}
