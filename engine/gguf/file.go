// Package gguf reads and writes GGUF, the file format of llama.cpp's models:
// metadata, the tensor table, and sets split over several files. It reads no
// tensor data; it says where the data lies.
//
// The format is described in ggml/docs/gguf.md. Versions 2 and 3 are the same
// on little-endian hosts.
package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is the parsed header of a model: one file, or all shards of a split set.
type File struct {
	Version uint32    // of the first shard
	Meta    *Metadata // of the first shard, which holds all that concerns the model
	Tensors []Tensor  // of all shards, in file order
	Shards  []Shard   // at least one; a Tensor's Shard is an index into it
	byName  map[string]int
}

// Shard is one file of a model.
type Shard struct {
	Path       string
	Size       int64 // of the file, in bytes
	DataOffset int64 // where the tensor data starts, in bytes
}

// Tensor returns the tensor of the given name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// Open reads the header of a model. For a split set any of its shards will do;
// the others are found by their names, -0000K-of-0000N.gguf. No file stays
// open. A file that cannot be used ends in a *FormatError; one that is not
// there, in an error that names it and wraps fs.ErrNotExist.
//
// The time taken grows with the metadata and the number of tensors, not with
// the size of the files.
func Open(path string) (*File, error) {
	h, shard, err := openShard(path)
	if err != nil {
		return nil, err
	}
	no, count, err := splitOf(h.meta, path)
	if err != nil {
		return nil, err
	}
	f := &File{byName: map[string]int{}}
	if count <= 1 {
		return f, f.add(h, shard)
	}
	paths, err := shardPaths(path, no, count)
	if err != nil {
		return nil, err
	}
	total := int64(-1)
	for i, p := range paths {
		sh, ss := h, shard
		if i != no {
			if sh, ss, err = openShard(p); errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("shard %d of %d of %s is missing: %w", i+1, count, filepath.Base(path), err)
			} else if err != nil {
				return nil, err
			}
			n, c, err := splitOf(sh.meta, p)
			if err != nil {
				return nil, err
			}
			if n != i || c != count {
				return nil, fileError(p, "says that it is shard %d of %d, not %d of %d of one set; get the set again", n+1, c, i+1, count)
			}
		}
		if i == 0 {
			if total, err = sh.meta.IntOr(keySplitTensors, -1); err != nil {
				return nil, fileError(p, "%v", err)
			}
		}
		if err := f.add(sh, ss); err != nil {
			return nil, err
		}
	}
	if total >= 0 && total != int64(len(f.Tensors)) {
		return nil, fileError(paths[0], "the set should have %d tensors, but its %d shards hold %d; get the set again", total, count, len(f.Tensors))
	}
	return f, nil
}

// add appends a shard.
func (f *File) add(h *header, s Shard) error {
	if len(f.Shards) == 0 {
		f.Version, f.Meta = h.version, h.meta
	}
	for _, t := range h.tensors {
		t.Shard = len(f.Shards)
		if i, ok := f.byName[t.Name]; ok {
			return fileError(s.Path, "tensor %s is also in %s", quote(t.Name), f.Shards[f.Tensors[i].Shard].Path)
		}
		f.byName[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	f.Shards = append(f.Shards, s)
	return nil
}

// openShard reads one file's header.
func openShard(path string) (*header, Shard, error) {
	s := Shard{Path: path}
	// Look before opening: opening a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, s, openError(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, s, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, s, openError(path, err)
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	if info, err = f.Stat(); err != nil {
		return nil, s, openError(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, s, err
	}
	h, err := parse(f, info.Size(), path)
	if err != nil {
		if _, ok := errors.AsType[*FormatError](err); ok {
			if piece := pieceError(path); piece != nil {
				return nil, s, piece
			}
		}
		return nil, s, err
	}
	s.Size, s.DataOffset = info.Size(), h.data
	return h, s, nil
}

func regular(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fileError(path, "is a directory; name a .gguf file in it")
	case !info.Mode().IsRegular():
		return fileError(path, "is not a regular file")
	}
	return nil
}

// openError says that a file could not be opened, in one form for all causes.
func openError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// The keys of a split set (llama.cpp, tools/gguf-split).
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// splitOf returns a shard's index and the number of shards; 0 and 1 for a file
// that is not part of a set.
func splitOf(m *Metadata, path string) (no, count int, err error) {
	c, err := m.IntOr(keySplitCount, 1)
	if err != nil {
		return 0, 0, fileError(path, "%v", err)
	}
	n, err := m.IntOr(keySplitNo, 0)
	if err != nil {
		return 0, 0, fileError(path, "%v", err)
	}
	if c == 0 {
		c = 1
	}
	if c < 0 || c > 99999 || n < 0 || n >= c {
		return 0, 0, fileError(path, "bad metadata: %s is %d and %s is %d", keySplitNo, n, keySplitCount, c)
	}
	return int(n), int(c), nil
}

// ShardPath returns the name of shard i (from 0) of n: prefix and
// -0000I-of-0000N.gguf, counted from 1.
func ShardPath(prefix string, i, n int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, i+1, n)
}

// shardPaths returns the paths of a set of which one is given.
func shardPaths(path string, no, count int) ([]string, error) {
	prefix, ok := strings.CutSuffix(path, ShardPath("", no, count))
	if !ok {
		return nil, fileError(path, "is shard %d of %d, so its name must end in %s for the others to be found; rename it", no+1, count, ShardPath("", no, count))
	}
	paths := make([]string, count)
	for i := range paths {
		paths[i] = ShardPath(prefix, i, count)
	}
	return paths, nil
}
