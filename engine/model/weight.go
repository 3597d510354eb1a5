package model

import (
	"fmt"
	"unsafe"

	"bmoe/engine/gguf"
	"bmoe/engine/kernel"
	"bmoe/engine/quant"
)

// Range is where a weight lies: bytes of one shard.
type Range struct {
	Shard        int
	Offset, Size int64
}

// Weight is one weight object: what it is, where it lies in the file, and
// where its bytes are in memory.
type Weight struct {
	Name  string
	Range Range
	// Matrix holds type and shape; its Data is the weight's bytes, in the
	// file's mapping or in an anonymous buffer. Vectors are matrices of one row.
	kernel.Matrix
	// F32 is a vector's values, decoded when the weight was bound.
	F32 []float32
	// Streamed marks routed experts: without data of their own, unless they are
	// computed from the mapping.
	Streamed bool
	vector   bool
}

// Pointer returns the address of the weight's bytes, or 0 if it has none.
func (w *Weight) Pointer() uintptr {
	if len(w.Data) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(w.Data)))
}

// Registry holds every distinct weight object. Two objects over one range (a
// tied output head) are both in it, because each has a pointer of its own that
// may be left inside a mapping.
type Registry struct {
	Weights []*Weight
	Unused  int // tensors of the file that the architecture does not use
}

// Bind points every dense weight to its bytes: data is called once for each
// distinct range, and all objects over it share what it returns.
func (r *Registry) Bind(data func(Range) ([]byte, error)) error {
	bound := map[Range][]byte{}
	for _, w := range r.Weights {
		if w.Streamed {
			continue
		}
		b, ok := bound[w.Range]
		if !ok {
			var err error
			if b, err = data(w.Range); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
			bound[w.Range] = b
		}
		w.Data = b
		if w.vector {
			w.F32 = make([]float32, w.Cols*w.Rows)
			if err := quant.Dequantize(w.Type, w.F32, b); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
		}
	}
	return nil
}

// BindStreamed points the routed experts into mappings of the shards.
func (r *Registry) BindStreamed(shards [][]byte) {
	for _, w := range r.Weights {
		if w.Streamed {
			w.Data = shards[w.Range.Shard][w.Range.Offset:][:w.Range.Size]
		}
	}
}

// DenseRanges returns the distinct ranges of all dense weights.
func (r *Registry) DenseRanges() []Range {
	seen := map[Range]bool{}
	var list []Range
	for _, w := range r.Weights {
		if !w.Streamed && !seen[w.Range] {
			seen[w.Range] = true
			list = append(list, w.Range)
		}
	}
	return list
}

// loader finds an architecture's weights in a file. Its methods keep the first
// error and return usable zero values after it, so that a family's builder
// reads as a list; Build reports the error.
type loader struct {
	file   *gguf.File
	prefix string // of metadata keys: the architecture's name and a dot
	reg    *Registry
	used   map[string]bool
	err    error
}

func (l *loader) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// number keeps the error of a metadata getter.
func number[T int64 | float64](l *loader, v T, err error) T {
	if err != nil {
		l.fail(err)
	}
	return v
}

// key returns a required count from the metadata: at least 1 and small enough
// for a shape.
func (l *loader) key(name string) int {
	v, err := l.file.Meta.Int(l.prefix + name)
	return l.count(name, number(l, v, err), err)
}

// keyOr is key with a default.
func (l *loader) keyOr(name string, def int) int {
	v, err := l.file.Meta.IntOr(l.prefix+name, int64(def))
	return l.count(name, number(l, v, err), err)
}

func (l *loader) count(name string, v int64, err error) int {
	if err == nil && (v < 1 || v > 1<<24) {
		l.fail(fmt.Errorf("%s%s is %d, not a sensible count", l.prefix, name, v))
	}
	return int(max(1, min(v, 1<<24)))
}

func (l *loader) floatOr(name string, def float64) float64 {
	v, err := l.file.Meta.FloatOr(l.prefix+name, def)
	return number(l, v, err)
}

func (l *loader) stringOr(name, def string) string {
	v, err := l.file.Meta.StringOr(l.prefix+name, def)
	if err != nil {
		l.fail(err)
	}
	return v
}

// has reports whether the file has the tensor.
func (l *loader) has(name string) bool {
	_, ok := l.file.Tensor(name)
	return ok
}

// weight returns the tensor of the given shape, in ggml's order: the row length
// first.
func (l *loader) weight(name string, dims ...int) *Weight {
	w := &Weight{Name: name}
	t, ok := l.file.Tensor(name)
	if !ok {
		l.fail(fmt.Errorf("tensor %s is missing", name))
		return w
	}
	same := len(t.Dims) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = t.Dims[i] == int64(dims[i])
	}
	if !same {
		l.fail(fmt.Errorf("tensor %s has shape %v, the metadata asks for %v", name, t.Dims, dims))
		return w
	}
	if l.used == nil {
		l.used = map[string]bool{}
	}
	l.used[name] = true
	rows := 1
	for _, d := range dims[1:] {
		rows *= d
	}
	w.Range = Range{Shard: t.Shard, Offset: t.Offset, Size: t.Size}
	w.Matrix = kernel.Matrix{Type: t.Type, Cols: dims[0], Rows: rows}
	l.reg.Weights = append(l.reg.Weights, w)
	return w
}

// matrix returns a dense matrix that the kernels can multiply by.
func (l *loader) matrix(name string, cols, rows int) *Weight {
	w := l.weight(name, cols, rows)
	l.supported(w)
	return w
}

func (l *loader) supported(w *Weight) {
	if l.err != nil {
		return
	}
	if _, err := kernel.FormOf(w.Type, kernel.Fast); err != nil {
		l.fail(fmt.Errorf("tensor %s: %w", w.Name, err))
	}
}

// vector returns a tensor of one dimension as floats.
func (l *loader) vector(name string, n int) *Weight {
	w := l.weight(name, n)
	w.vector = true
	return w
}

// experts returns one matrix of all experts of a layer, [cols x rows x n].
func (l *loader) experts(name string, cols, rows, n int) *Weight {
	w := l.weight(name, cols, rows, n)
	w.Streamed = true
	l.supported(w)
	return w
}
