package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

// dataOf returns bytes that tell a tensor and a position apart.
func dataOf(t *Tensor) []byte {
	b := make([]byte, t.Size)
	for i := range b {
		b[i] = byte(i*7 + len(t.Name)*31 + int(t.Size))
	}
	return b
}

// writeAll writes a model in pieces, from several goroutines.
func writeAll(t *testing.T, w *Writer, path string, shards int) {
	t.Helper()
	o, err := w.Create(path, shards)
	must(t, err)
	var wg sync.WaitGroup
	for _, x := range o.tensors {
		wg.Go(func() {
			b := dataOf(&x)
			for at := 0; at < len(b); at += 50 {
				if err := o.WriteTensor(x.Name, int64(at), b[at:min(at+50, len(b))]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, o.Close())
}

// checkData compares every tensor's bytes in the files with what writeAll wrote.
func checkData(t *testing.T, f *File) {
	t.Helper()
	for _, x := range f.Tensors {
		r, err := os.Open(f.Shards[x.Shard].Path)
		must(t, err)
		got := make([]byte, x.Size)
		_, err = r.ReadAt(got, x.Offset)
		must(t, err)
		must(t, r.Close())
		if !bytes.Equal(got, dataOf(&x)) {
			t.Errorf("tensor %s of shard %d came back different", x.Name, x.Shard)
		}
	}
}

func manyTensors(t *testing.T) *Writer {
	w := NewWriter()
	must(t, w.Set("general.architecture", "test"))
	for i := range 20 {
		must(t, w.Declare(fmt.Sprintf("blk.%d.w", i), quant.Q6_K, 256, int64(1+i%4)))
		must(t, w.Declare(fmt.Sprintf("blk.%d.norm", i), quant.F32, int64(3+i)))
	}
	return w
}

func TestWriteAndOpen(t *testing.T) {
	for _, align := range []uint32{0, 32, 4096} {
		for _, shards := range []int{1, 2, 3, 40} {
			t.Run(fmt.Sprintf("align %d, %d shards", align, shards), func(t *testing.T) {
				w := manyTensors(t)
				if align != 0 {
					must(t, w.Set("general.alignment", align))
				}
				dir := conform.TempDir(t)
				writeAll(t, w, filepath.Join(dir, "m.gguf"), shards)
				paths := ShardPaths(filepath.Join(dir, "m.gguf"), shards)
				for _, p := range []string{paths[0], paths[len(paths)-1]} { // any shard will do
					f, err := Open(p)
					must(t, err)
					if len(f.Tensors) != 40 || len(f.Shards) != shards {
						t.Fatalf("%d tensors in %d shards", len(f.Tensors), len(f.Shards))
					}
					if s, err := f.Meta.String("general.architecture"); s != "test" {
						t.Errorf("architecture %q, %v", s, err)
					}
					for _, x := range f.Tensors {
						if x.Offset%int64(max(align, 32)) != 0 {
							t.Errorf("%s is at %d", x.Name, x.Offset)
						}
						if y, ok := f.Tensor(x.Name); !ok || y.Offset != x.Offset || y.Shard != x.Shard {
							t.Errorf("%s is not found by its name", x.Name)
						}
					}
					if _, ok := f.Tensor("nothing"); ok {
						t.Error("found a tensor that is not there")
					}
					checkData(t, f)
				}
				if left, _ := filepath.Glob(filepath.Join(dir, "*"+partial)); left != nil {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

func TestShardsAreAboutEqual(t *testing.T) {
	w := NewWriter()
	for i := range 100 {
		must(t, w.Declare(fmt.Sprintf("t.%d", i), quant.F32, int64(100+i%7)))
	}
	parts, err := w.layOut(4)
	must(t, err)
	for i, p := range parts {
		if share := float64(p.size-int64(len(p.header))) / float64(w.DataBytes()); share < 0.23 || share > 0.27 {
			t.Errorf("shard %d has %.2f of the data", i, share)
		}
	}
}

func TestBrokenSets(t *testing.T) {
	set := func(t *testing.T) (dir string, paths []string) {
		dir = conform.TempDir(t)
		writeAll(t, manyTensors(t), filepath.Join(dir, "m.gguf"), 3)
		return dir, ShardPaths(filepath.Join(dir, "m.gguf"), 3)
	}
	t.Run("missing shard", func(t *testing.T) {
		_, paths := set(t)
		must(t, os.Remove(paths[1]))
		_, err := Open(paths[0])
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "shard 2 of 3") || !strings.Contains(err.Error(), paths[1]) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("truncated shard", func(t *testing.T) {
		_, paths := set(t)
		must(t, os.Truncate(paths[2], 2000))
		_, err := Open(paths[0])
		wantBad(t, err, "truncated", paths[2])
	})
	t.Run("renamed", func(t *testing.T) {
		dir, paths := set(t)
		must(t, os.Rename(paths[0], filepath.Join(dir, "m.gguf")))
		_, err := Open(filepath.Join(dir, "m.gguf"))
		wantBad(t, err, "shard 1 of 3", "-00001-of-00003.gguf")
	})
	t.Run("shards swapped", func(t *testing.T) {
		dir, paths := set(t)
		must(t, os.Rename(paths[1], filepath.Join(dir, "x")))
		must(t, os.Rename(paths[2], paths[1]))
		must(t, os.Rename(filepath.Join(dir, "x"), paths[2]))
		_, err := Open(paths[0])
		wantBad(t, err, paths[1], "shard 3 of 3", "not 2 of 3")
	})
	t.Run("shard of another set", func(t *testing.T) {
		dir, paths := set(t)
		w := NewWriter()
		for i := range 3 {
			must(t, w.Declare(fmt.Sprintf("other.%d", i), quant.F32, 8))
		}
		writeAll(t, w, filepath.Join(dir, "m.gguf"), 3) // overwrites all three
		writeAll(t, manyTensors(t), filepath.Join(dir, "n.gguf"), 3)
		must(t, os.Rename(ShardPaths(filepath.Join(dir, "n.gguf"), 3)[1], paths[1]))
		_, err := Open(paths[0])
		wantBad(t, err, "should have 3 tensors")
	})
	t.Run("tensor in two shards", func(t *testing.T) {
		_, paths := set(t)
		parts, err := manyTensors(t).layOut(3)
		must(t, err)
		m := metaOf(t, keySplitNo, uint16(1), keySplitCount, uint16(3))
		head, err := encodeHeader(3, m, parts[0].tensors)
		must(t, err)
		must(t, os.WriteFile(paths[1], pad(head, int(parts[0].size)), 0o644))
		_, err = Open(paths[0])
		wantBad(t, err, "is also in", paths[0])
	})
	t.Run("bad numbers", func(t *testing.T) {
		for _, kv := range [][]any{
			{keySplitNo, uint16(5), keySplitCount, uint16(3)},
			{keySplitNo, int16(-1), keySplitCount, uint16(3)},
			{keySplitNo, uint16(0), keySplitCount, uint32(1 << 31)},
			{keySplitNo, "zero", keySplitCount, uint16(3)},
			{keySplitNo, uint16(0), keySplitCount, "three"},
		} {
			head, err := encodeHeader(3, metaOf(t, kv...), nil)
			must(t, err)
			p := filepath.Join(conform.TempDir(t), "m-00001-of-00003.gguf")
			must(t, os.WriteFile(p, head, 0o644))
			_, err = Open(p)
			wantBad(t, err, "split.")
		}
	})
}

func TestOpenWhatIsNoFile(t *testing.T) {
	dir := conform.TempDir(t)
	_, err := Open(filepath.Join(dir, "none.gguf"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.gguf") {
		t.Errorf("not there: %v", err)
	}
	sub := filepath.Join(dir, "dir.gguf")
	must(t, os.Mkdir(sub, 0o755))
	_, err = Open(sub)
	wantBad(t, err, "is a directory")
	empty := filepath.Join(dir, "empty.gguf")
	must(t, os.WriteFile(empty, nil, 0o644))
	_, err = Open(empty)
	wantBad(t, err, "empty")
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter()
	must(t, w.Set("k", uint32(1)))
	must(t, w.Declare("t", quant.F32, 8))
	for name, err := range map[string]error{
		"key twice":      w.Set("k", uint32(2)),
		"empty key":      w.Set("", uint32(2)),
		"an int":         w.Set("i", 2),
		"alignment 33":   w.Set("general.alignment", uint32(33)),
		"tensor twice":   w.Declare("t", quant.F32, 8),
		"empty name":     w.Declare("", quant.F32, 8),
		"no dimensions":  w.Declare("n", quant.F32),
		"zero dimension": w.Declare("z", quant.F32, 0),
		"half a block":   w.Declare("h", quant.Q8_0, 16),
		"unknown type":   w.Declare("u", quant.Type(99), 16),
		"too many files": func() error { _, err := w.layOut(2); return err }(),
		"a scalar among arrays": func() error {
			_, err := encodeHeader(3, metaOf(t, "k", []Value{{kind: TypeInt8, data: int8(1)}}), nil)
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestOutputRefusesAndCleansUp(t *testing.T) {
	dir := conform.TempDir(t)
	w := NewWriter()
	must(t, w.Declare("t", quant.F32, 8))
	must(t, w.Declare("s", quant.F32, 8))
	o, err := w.Create(filepath.Join(dir, "m.gguf"), 2)
	must(t, err)
	if o.WriteTensor("none", 0, nil) == nil || o.WriteTensor("t", 1, make([]byte, 32)) == nil || o.WriteTensor("t", -1, make([]byte, 2)) == nil {
		t.Error("bytes outside a tensor were taken")
	}
	must(t, o.WriteTensor("t", 0, make([]byte, 32)))
	if err := o.Close(); err == nil || !strings.Contains(err.Error(), "tensor s: 0 of 32") {
		t.Errorf("closing without all data: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := w.Create(filepath.Join(dir, "no", "such", "m.gguf"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
	if _, err := w.Create(dir, 1); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder: %v", err)
	}
}
