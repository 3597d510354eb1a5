//go:build !windows

// Not on Windows, where a file that is made longer is given all its blocks.

package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bmoe/internal/conform"
)

// Tensors past 4 and 16 GiB of a real file are found where they are.
func TestSparseFile(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "big.gguf")
	o, err := bigWriter(t).Create(path, 1)
	must(t, err)
	defer func() { must(t, o.Abort()) }()
	for _, x := range o.tensors {
		mark := append([]byte("here is "), x.Name...)
		must(t, o.WriteTensor(x.Name, x.Size-int64(len(mark)), mark))
	}
	f, err := Open(path + partial)
	must(t, err)
	r, err := os.Open(path + partial)
	must(t, err)
	defer r.Close()
	past4, past16 := 0, 0
	for _, x := range f.Tensors {
		want := append([]byte("here is "), x.Name...)
		got := make([]byte, len(want))
		_, err := r.ReadAt(got, x.Offset+x.Size-int64(len(want)))
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("at the end of %s (offset %d) lies %q", x.Name, x.Offset, got)
		}
		if x.Offset > 4<<30 {
			past4++
		}
		if x.Offset > 16<<30 {
			past16++
		}
	}
	if past4 < 10 || past16 < 4 {
		t.Errorf("only %d tensors past 4 GiB, %d past 16 GiB", past4, past16)
	}
}
