package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"bmoe/engine/quant"
)

// Writer collects what goes before a model's tensor data: metadata, then the
// tensors' names, types and shapes. Create then makes the files, into which the
// data is streamed, so that a model of any size takes no memory.
type Writer struct {
	version uint32
	align   int64
	meta    *Metadata
	tensors []Tensor
	names   map[string]bool
}

// NewWriter returns a Writer of GGUF version 3.
func NewWriter() *Writer {
	return &Writer{version: 3, align: defaultAlignment, meta: newMetadata(), names: map[string]bool{}}
}

// Set adds a key. x is any type that Value.Any returns, or a Value. Setting
// general.alignment also sets the alignment of the tensor data.
func (w *Writer) Set(key string, x any) error {
	if key == "" || len(key) >= maxName {
		return fmt.Errorf("metadata key %s: the name has %d bytes, not 1 to %d", quote(key), len(key), maxName-1)
	}
	if w.meta.Has(key) {
		return fmt.Errorf("metadata key %s: set twice", key)
	}
	v, ok := x.(Value)
	if !ok {
		var err error
		if v, err = ValueOf(x); err != nil {
			return fmt.Errorf("metadata key %s: %w", key, err)
		}
	}
	w.meta.add(key, v)
	align, err := alignment(w.meta)
	if err != nil {
		return err
	}
	w.align = align
	return nil
}

// Declare adds a tensor of the given shape, the row length first.
func (w *Writer) Declare(name string, kind quant.Type, dims ...int64) error {
	switch {
	case name == "" || len(name) >= maxName:
		return fmt.Errorf("tensor %s: the name has %d bytes, not 1 to %d", quote(name), len(name), maxName-1)
	case w.names[name]:
		return fmt.Errorf("tensor %s: declared twice", name)
	case len(dims) < 1 || len(dims) > maxDims:
		return fmt.Errorf("tensor %s: %d dimensions, not 1 to %d", name, len(dims), maxDims)
	}
	for i, d := range dims {
		if d < 1 {
			return fmt.Errorf("tensor %s: dimension %d is %d", name, i, d)
		}
	}
	size, err := tensorBytes(kind, dims)
	if err != nil {
		return fmt.Errorf("tensor %s: %w", name, err)
	}
	w.names[name] = true
	w.tensors = append(w.tensors, Tensor{Name: name, Type: kind, Dims: append([]int64(nil), dims...), Size: size})
	return nil
}

// DataBytes returns the bytes of all declared tensors with their padding.
func (w *Writer) DataBytes() int64 {
	var sum int64
	for _, t := range w.tensors {
		sum += alignUp(t.Size, w.align)
	}
	return sum
}

// part is one file to be written: its header, and the tensors that it holds.
type part struct {
	header  []byte   // padded to where the data starts
	tensors []Tensor // Offset is absolute
	size    int64    // of the whole file
}

// layOut cuts the tensors into n runs of about equal bytes, in the order of
// their declaration, and makes each file's header.
func (w *Writer) layOut(n int) ([]part, error) {
	if n < 1 || n > max(1, len(w.tensors)) || n > math.MaxUint16 {
		return nil, fmt.Errorf("cannot split %d tensors over %d files", len(w.tensors), n)
	}
	parts := make([]part, n)
	rest, left := w.tensors, w.DataBytes()
	for i := range parts {
		share := left / int64(n-i)
		take, sum := 0, int64(0)
		for take < len(rest)-(n-1-i) && (take == 0 || i == n-1 || sum+rest[take].Size/2 <= share) {
			sum += alignUp(rest[take].Size, w.align)
			take++
		}
		if err := w.layOutPart(&parts[i], rest[:take], i, n); err != nil {
			return nil, err
		}
		rest, left = rest[take:], left-sum
	}
	return parts, nil
}

// layOutPart makes file i of n.
func (w *Writer) layOutPart(p *part, tensors []Tensor, i, n int) error {
	meta := newMetadata()
	if i == 0 {
		for _, k := range w.meta.keys {
			meta.add(k, w.meta.values[k])
		}
	} else if v, ok := w.meta.Get("general.alignment"); ok {
		meta.add("general.alignment", v)
	}
	if n > 1 {
		for _, kv := range []struct {
			key string
			x   any
		}{{keySplitNo, uint16(i)}, {keySplitCount, uint16(n)}, {keySplitTensors, int32(len(w.tensors))}} {
			v, err := ValueOf(kv.x)
			if err != nil {
				return err
			}
			meta.add(kv.key, v)
		}
	}
	p.tensors = append([]Tensor(nil), tensors...)
	offset := int64(0)
	for j := range p.tensors {
		p.tensors[j].Offset, p.tensors[j].Shard = offset, i
		if offset > math.MaxInt64-w.align-p.tensors[j].Size {
			return errors.New("the tensors are too large for one file")
		}
		offset = alignUp(offset+p.tensors[j].Size, w.align)
	}
	var err error
	if p.header, err = encodeHeader(w.version, meta, p.tensors); err != nil {
		return err
	}
	data := alignUp(int64(len(p.header)), w.align)
	p.header = append(p.header, make([]byte, data-int64(len(p.header)))...)
	for j := range p.tensors {
		p.tensors[j].Offset += data
	}
	p.size = data + offset
	return nil
}

// encodeHeader returns a file's header without padding. The tensors' offsets
// are relative to the start of the data.
func encodeHeader(version uint32, m *Metadata, tensors []Tensor) ([]byte, error) {
	le := binary.LittleEndian
	b := append([]byte(nil), magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(m.keys)))
	for _, k := range m.keys {
		v := m.values[k]
		b = appendString(b, k)
		b = le.AppendUint32(b, uint32(v.kind))
		var err error
		if b, err = appendValue(b, v); err != nil {
			return nil, fmt.Errorf("metadata key %s: %w", k, err)
		}
	}
	for _, t := range tensors {
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, uint64(t.Offset))
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a value without its type; an array with its elements'.
func appendValue(b []byte, v Value) ([]byte, error) {
	le := binary.LittleEndian
	if v.kind == TypeArray {
		b = le.AppendUint32(b, uint32(v.elem))
		b = le.AppendUint64(b, uint64(v.Len()))
	}
	switch d := v.data.(type) {
	case string:
		return appendString(b, d), nil
	case []string:
		for _, s := range d {
			b = appendString(b, s)
		}
		return b, nil
	case []Value:
		for _, e := range d {
			if e.kind != TypeArray {
				return nil, fmt.Errorf("an array of arrays holds a %s", e.Kind())
			}
			var err error
			if b, err = appendValue(b, e); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return binary.Append(b, le, v.data)
}

// ShardPaths returns the names of the n files of a model: path itself for one,
// else path without .gguf, with -0000I-of-0000N.gguf.
func ShardPaths(path string, n int) []string {
	if n == 1 {
		return []string{path}
	}
	paths := make([]string, n)
	for i := range paths {
		paths[i] = ShardPath(strings.TrimSuffix(path, ".gguf"), i, n)
	}
	return paths
}
