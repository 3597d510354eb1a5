package gguf

import (
	"compress/bzip2"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// Every file of the shared set opens, and its tensors fill it to the end.
func TestSharedFiles(t *testing.T) {
	var paths []string
	for _, dir := range []string{"conformance/models", "conformance/quants", "conformance/split", "demo"} {
		found, err := filepath.Glob(filepath.Join(conform.Shared(t, dir), "*.gguf"))
		must(t, err)
		if len(found) == 0 {
			t.Errorf("no files in %s", dir)
		}
		paths = append(paths, found...)
	}
	for _, p := range paths {
		f, err := Open(p)
		if err != nil {
			t.Error(err)
			continue
		}
		end := make([]int64, len(f.Shards))
		for _, x := range f.Tensors {
			end[x.Shard] = max(end[x.Shard], x.Offset+x.Size)
		}
		for i, s := range f.Shards {
			if rest := s.Size - end[i]; rest < 0 || rest >= 32 {
				t.Errorf("%s: tensors end at %d of %d", s.Path, end[i], s.Size)
			}
		}
		arch, err := f.Meta.String("general.architecture")
		must(t, err)
		experts, err := f.Meta.Int(arch + ".expert_count")
		if x, ok := f.Tensor("token_embd.weight"); !ok || len(x.Dims) != 2 || experts < 2 {
			t.Errorf("%s: %d experts (%v), embedding %+v", p, experts, err, x)
		}
	}
}

// The split set is the whole model, cut: same tensors, same bytes.
func TestSplitSetEqualsWhole(t *testing.T) {
	whole, err := Open(conform.Shared(t, "conformance/models/qwen3moe.gguf"))
	must(t, err)
	set, err := Open(conform.Shared(t, "conformance/split/qwen3moe-00001-of-00003.gguf"))
	must(t, err)
	if len(set.Shards) != 3 || len(set.Tensors) != len(whole.Tensors) {
		t.Fatalf("%d tensors in %d shards, want %d in 3", len(set.Tensors), len(set.Shards), len(whole.Tensors))
	}
	read := func(f *File, x *Tensor) string {
		r, err := os.Open(f.Shards[x.Shard].Path)
		must(t, err)
		defer r.Close()
		b := make([]byte, x.Size)
		_, err = r.ReadAt(b, x.Offset)
		must(t, err)
		return string(b)
	}
	for i := range whole.Tensors {
		a := &whole.Tensors[i]
		if b, ok := set.Tensor(a.Name); !ok || read(whole, a) != read(set, b) {
			t.Errorf("tensor %s differs or is missing", a.Name)
		}
	}
}

func TestSharedVocabularies(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/tokenizers"), "*.gguf.bz2"))
	must(t, err)
	if len(paths) == 0 {
		t.Error("no vocabularies")
	}
	for _, p := range paths {
		in, err := os.Open(p)
		must(t, err)
		b, err := io.ReadAll(bzip2.NewReader(in))
		must(t, err)
		must(t, in.Close())
		f, err := parseWhole(strings.NewReader(string(b)), int64(len(b)), p)
		if err != nil {
			t.Error(err)
			continue
		}
		tokens, err := f.Meta.Strings("tokenizer.ggml.tokens")
		must(t, err)
		types, err := f.Meta.Ints("tokenizer.ggml.token_type")
		must(t, err)
		if len(f.Tensors) != 0 || len(tokens) < 10000 || len(types) != len(tokens) {
			t.Errorf("%s: %d tensors, %d tokens, %d types", p, len(f.Tensors), len(tokens), len(types))
		}
	}
}

func TestRealVocabulary(t *testing.T) {
	f, err := Open(unzipped(t, conform.Shared(t, "tokenizers/vocab-qwen3.gguf.gz")))
	must(t, err)
	tokens, err := f.Meta.Strings("tokenizer.ggml.tokens")
	must(t, err)
	merges, err := f.Meta.Strings("tokenizer.ggml.merges")
	must(t, err)
	if len(tokens) != 151669 || tokens[0] != "!" || tokens[151645] != "<|im_end|>" || len(merges) != 151387 || merges[0] != "Ġ Ġ" {
		t.Errorf("%d tokens, %d merges; %q %q %q", len(tokens), len(merges), tokens[0], tokens[151645], merges[0])
	}
}
