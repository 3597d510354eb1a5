package gguf

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Output is a model being written. The headers are there; the tensors' data is
// to be written piece by piece, in any order and from any goroutine.
type Output struct {
	paths   []string // where the files will be
	files   []*os.File
	tensors []Tensor
	byName  map[string]int

	mu      sync.Mutex
	written []int64 // bytes of each tensor written so far
}

// partial is what a file's name ends in until it is complete.
const partial = ".part"

// Create makes the files of a model that is split over the given number of
// them (1: not split), named as ShardPaths says. Until Close they bear names
// that end in .part, so that a model which exists is complete.
func (w *Writer) Create(path string, shards int) (*Output, error) {
	parts, err := w.layOut(shards)
	if err != nil {
		return nil, err
	}
	o := &Output{paths: ShardPaths(path, shards), byName: map[string]int{}}
	for i, p := range parts {
		if info, err := os.Stat(o.paths[i]); err == nil && !info.Mode().IsRegular() {
			// Close cannot rename over a directory, and would replace a device by a file.
			what := "not a regular file"
			if info.IsDir() {
				what = "is a directory"
			}
			return nil, errors.Join(fmt.Errorf("write %s: %s", o.paths[i], what), o.Abort())
		}
		f, err := os.Create(o.paths[i] + partial)
		if err != nil {
			return nil, errors.Join(openError(o.paths[i]+partial, err), o.Abort())
		}
		o.files = append(o.files, f)
		if _, err = f.WriteAt(p.header, 0); err == nil {
			err = f.Truncate(p.size) // the padding after the last tensor
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write %s: %w", f.Name(), err), o.Abort())
		}
		for _, t := range p.tensors {
			o.byName[t.Name] = len(o.tensors)
			o.tensors = append(o.tensors, t)
		}
	}
	o.written = make([]int64, len(o.tensors))
	return o, nil
}

// WriteTensor writes a piece of a tensor's data, offset bytes into it. Every
// byte of every tensor is to be written once.
func (o *Output) WriteTensor(name string, offset int64, data []byte) error {
	i, ok := o.byName[name]
	if !ok {
		return fmt.Errorf("write tensor %s: not declared", name)
	}
	t := &o.tensors[i]
	n := int64(len(data))
	if offset < 0 || n > t.Size || offset > t.Size-n {
		return fmt.Errorf("write tensor %s: %d bytes at %d are outside its %d", name, n, offset, t.Size)
	}
	if _, err := o.files[t.Shard].WriteAt(data, t.Offset+offset); err != nil {
		return fmt.Errorf("write tensor %s: %w", name, err)
	}
	o.mu.Lock()
	o.written[i] += n
	o.mu.Unlock()
	return nil
}

// Close completes the files and gives them their names. If a tensor's data is
// not all there, or something else fails, it removes them and says why.
func (o *Output) Close() error {
	for i, t := range o.tensors {
		if o.written[i] != t.Size {
			return errors.Join(fmt.Errorf("tensor %s: %d of %d bytes were written", t.Name, o.written[i], t.Size), o.Abort())
		}
	}
	var err error
	for _, f := range o.files {
		err = errors.Join(err, f.Close())
	}
	for i, f := range o.files {
		if err == nil {
			err = os.Rename(f.Name(), o.paths[i])
		}
	}
	if err != nil {
		return errors.Join(err, o.remove())
	}
	o.files = nil
	return nil
}

// Abort closes and removes the files.
func (o *Output) Abort() error {
	var err error
	for _, f := range o.files {
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, o.remove())
}

// remove removes what bears a temporary name.
func (o *Output) remove() error {
	var all error
	for _, f := range o.files {
		if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	o.files = nil
	return all
}
