package tokenizer

import (
	"compress/bzip2"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/internal/conform"
)

// fakeMeta is metadata written down in a test.
type fakeMeta map[string]any

func get[T any](m fakeMeta, key string) (T, error) {
	v, ok := m[key]
	if !ok {
		var none T
		return none, fmt.Errorf("metadata key %s: %w", key, gguf.ErrNoKey)
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("metadata key %s: wrong type %T", key, v)
	}
	return t, nil
}

func (m fakeMeta) Has(key string) bool                  { _, ok := m[key]; return ok }
func (m fakeMeta) String(key string) (string, error)    { return get[string](m, key) }
func (m fakeMeta) Bool(key string) (bool, error)        { return get[bool](m, key) }
func (m fakeMeta) Strings(key string) ([]string, error) { return get[[]string](m, key) }
func (m fakeMeta) Ints(key string) ([]int64, error)     { return get[[]int64](m, key) }
func (m fakeMeta) Floats(key string) ([]float64, error) { return get[[]float64](m, key) }
func (m fakeMeta) StringOr(key, def string) (string, error) {
	if !m.Has(key) {
		return def, nil
	}
	return m.String(key)
}
func (m fakeMeta) IntOr(key string, def int64) (int64, error) {
	if !m.Has(key) {
		return def, nil
	}
	return get[int64](m, key)
}

// file is a vocabulary of testdata: a part of a real one, small enough to keep.
// IDs tells the real id of each token.
type file struct {
	Model, Pre string
	BOS, EOS   int64
	AddBOS     bool
	Tokens     []string
	Types      []int64
	IDs        []int32
	Merges     []string
	Cases      []testCase
}

type testCase struct {
	Text         string  `json:"text"`
	IDs          []int32 `json:"ids"`
	ParseSpecial []int32 `json:"ids_parse_special,omitempty"`
}

func (f *file) meta() fakeMeta {
	return fakeMeta{keyModel: f.Model, keyPre: f.Pre, keyTokens: f.Tokens, keyTokenType: f.Types, keyMerges: f.Merges,
		keyBOS: f.BOS, keyEOS: f.EOS, keyAddBOS: f.AddBOS}
}

// real translates ids of the part into those of the whole.
func (f *file) real(ids []int32) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = f.IDs[id]
	}
	return out
}

func readJSON(tb testing.TB, path string, v any) {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// openGGUF parses a GGUF that may be packed.
func openGGUF(tb testing.TB, path string) *gguf.File {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	switch {
	case strings.HasSuffix(path, ".bz2"):
		r = bzip2.NewReader(f)
	case strings.HasSuffix(path, ".gz"):
		if r, err = gzip.NewReader(f); err != nil {
			tb.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := gguf.Open(written(tb, b))
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// written is the path of a file that holds b.
func written(tb testing.TB, b []byte) string {
	tb.Helper()
	path := filepath.Join(conform.TempDir(tb), "vocab.gguf")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		tb.Fatal(err)
	}
	return path
}

var qwen3 struct {
	sync.Once
	*Tokenizer
}

// openQwen3 returns the real vocabulary of Qwen3, read once.
func openQwen3(tb testing.TB) *Tokenizer {
	tb.Helper()
	path := conform.Shared(tb, "tokenizers/vocab-qwen3.gguf.gz")
	qwen3.Do(func() { qwen3.Tokenizer = mustNew(tb, openGGUF(tb, path).Meta) })
	return qwen3.Tokenizer
}

func mustNew(tb testing.TB, m Metadata) *Tokenizer {
	tb.Helper()
	t, err := New(m)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}
