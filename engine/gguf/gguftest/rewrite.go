// Package gguftest serves tests: it makes models out of others, with tensors
// and keys changed.
package gguftest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

// Tensor is a tensor with its data.
type Tensor struct {
	Name string
	Type quant.Type
	Dims []int64 // the row length first
	Data []byte
}

// F32 returns a tensor of floats.
func F32(name string, x []float32, dims ...int64) Tensor {
	b := make([]byte, 4*len(x))
	if err := quant.Quantize(quant.F32, b, x); err != nil {
		panic(err)
	}
	return Tensor{name, quant.F32, dims, b}
}

// Model is the content of a file.
type Model struct {
	Keys    map[string]gguf.Value // as they are
	Tensors []Tensor
	Set     map[string]any // keys to add or to replace, or with nil to leave out
}

// Take removes the tensor of the given name and returns it.
func (m *Model) Take(t testing.TB, name string) Tensor {
	t.Helper()
	i := slices.IndexFunc(m.Tensors, func(x Tensor) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("the model has no %s", name)
	}
	x := m.Tensors[i]
	m.Tensors = slices.Delete(m.Tensors, i, i+1)
	return x
}

// Add appends tensors.
func (m *Model) Add(xs ...Tensor) { m.Tensors = append(m.Tensors, xs...) }

// Rewrite writes what edit makes of a model to a file of the test's own and
// returns its path.
func Rewrite(t testing.TB, from string, edit func(m *Model)) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := gguf.Open(from)
	must(err)
	m := &Model{Set: map[string]any{}, Keys: map[string]gguf.Value{}}
	for _, k := range f.Meta.Keys() {
		m.Keys[k], _ = f.Meta.Get(k)
	}
	for _, x := range f.Tensors {
		b, err := os.ReadFile(f.Shards[x.Shard].Path)
		must(err)
		m.Add(Tensor{x.Name, x.Type, slices.Clone(x.Dims), slices.Clone(b[x.Offset:][:x.Size])})
	}
	edit(m)
	w := gguf.NewWriter()
	for _, k := range f.Meta.Keys() {
		_, replaced := m.Set[k]
		if v, ok := f.Meta.Get(k); ok && !replaced {
			must(w.Set(k, v))
		}
	}
	for k, x := range m.Set {
		if x != nil {
			must(w.Set(k, x))
		}
	}
	for _, x := range m.Tensors {
		must(w.Declare(x.Name, x.Type, x.Dims...))
	}
	path := filepath.Join(conform.TempDir(t), "m.gguf")
	out, err := w.Create(path, 1)
	must(err)
	for _, x := range m.Tensors {
		must(out.WriteTensor(x.Name, 0, x.Data))
	}
	must(out.Close())
	return path
}
