package gguf

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"bmoe/internal/conform"
)

// unzipped writes a compressed file of the shared data to a temporary folder.
func unzipped(t testing.TB, path string) string {
	in, err := os.Open(path)
	must(t, err)
	defer in.Close()
	z, err := gzip.NewReader(in)
	must(t, err)
	b, err := io.ReadAll(z)
	must(t, err)
	out := filepath.Join(conform.TempDir(t), "vocab.gguf")
	must(t, os.WriteFile(out, b, 0o644))
	return out
}

// BenchmarkOpen opens a file with a vocabulary of 151,669 tokens and as many
// merges.
func BenchmarkOpen(b *testing.B) {
	path := unzipped(b, conform.Shared(b, "tokenizers/vocab-qwen3.gguf.gz"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(path); err != nil {
			b.Fatal(err)
		}
	}
}
