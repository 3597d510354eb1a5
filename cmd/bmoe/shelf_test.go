package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
)

// shelfOf is the shelf of a command line, and what it was started with.
func shelfOf(t *testing.T, args ...string) (*shelf, backend.Backend) {
	t.Helper()
	o, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	o.far.AnyModel, o.both = true, true
	start, err := o.begun()
	if err != nil {
		t.Fatal(err)
	}
	b, err := start.finish(context.Background(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(o, start, func(backend.Backend) {})
	s.took(b)
	return s, b
}

// list is the last that the shelf tells.
func (s *shelf) list(t *testing.T) (last backend.Shelf) {
	t.Helper()
	if err := s.List(context.Background(), false, func(l backend.Shelf) { last = l }); err != nil {
		t.Fatal(err)
	}
	return last
}

// change opens another model of the list in place of one.
func (s *shelf) change(t *testing.T, from backend.Backend, name string) backend.Backend {
	t.Helper()
	all := s.list(t).Models
	i := slices.IndexFunc(all, func(m backend.Model) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, all)
	}
	to, err := s.Prepare(context.Background(), all[i].ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := to.Finish(context.Background(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A server's models stand in the list beside those of this machine, and one can go from
// the one to the other and back.
func TestModelsOfAServerOnTheShelf(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"data":[{"id":"far-one"},{"id":"far-two"}]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	folder := conform.TempDir(t)
	for _, name := range []string{"HOME", "USERPROFILE", "HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"} {
		t.Setenv(name, folder)
	}
	small := temp(t, "small.gguf", readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe.gguf")))
	s, b := shelfOf(t, "--connect", server.URL, "--models-dir", filepath.Dir(small))
	if s.startID != ofServer+"far-one" || b.Info().Model != "far-one" {
		t.Errorf("started with %q", s.startID)
	}
	b = s.change(t, b, "far-two")
	if b.Info().Model != "far-two" {
		t.Errorf("open: %+v", b.Info())
	}
	b = s.change(t, b, "small.gguf")
	if b.Info().Arch != "qwen3moe" || b.Info().Engine != "" {
		t.Errorf("open: %+v", b.Info())
	}
	b = s.change(t, b, "far-one")
	server.Close()
	if notes := strings.Join(s.list(t).Notes, "\n"); !strings.Contains(notes, server.Listener.Addr().String()) {
		t.Errorf("of a server that is gone: %q", notes)
	}
	if _, err := s.Prepare(context.Background(), ofServer+"far-two"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("opened on a server that is gone: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Where a file is about one model, the model stays; and what cannot be opened is refused
// while the other is open.
func TestShelfThatKeepsItsModel(t *testing.T) {
	small := temp(t, "small.gguf", readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe.gguf")))
	other := temp(t, "other.gguf", readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe-tied.gguf")))
	s, b := shelfOf(t, small, "--csv", filepath.Join(conform.TempDir(t), "a.csv"))
	defer b.Close()
	if _, err := s.Prepare(context.Background(), s.file(other)); err == nil || !strings.Contains(err.Error(), "--csv") {
		t.Errorf("%v", err)
	}
	if _, err := s.Prepare(context.Background(), s.startID); err != nil {
		t.Errorf("the way back: %v", err)
	}
	s, c := shelfOf(t, small)
	defer c.Close()
	broken := temp(t, "broken.gguf", []byte("no model"))
	if _, err := s.Prepare(context.Background(), s.file(broken)); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	facts, err := s.Facts(context.Background(), s.file(other))
	if err != nil || !slices.ContainsFunc(facts, func(f backend.Fact) bool { return strings.Contains(f.Value, "of all experts") }) {
		t.Errorf("%v, %v", facts, err)
	}
	if _, err := s.Facts(context.Background(), s.file(broken)); err == nil {
		t.Error("facts of what is no model")
	}
}
