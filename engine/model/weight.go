package model

import (
	"fmt"
	"strings"
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
	// Gathered marks a table of which each token takes a few rows: it is read by rows
	// and never has data of its own.
	Gathered bool
	vector   bool

	// What the matrix's product is changed by; nil where the file has no such
	// tensor. Of experts it is one row or one number each.
	scale, bias *Weight
}

// affine returns the scale and bias of the matrix's product.
func (w *Weight) affine() kernel.Affine {
	var a kernel.Affine
	if w.scale != nil {
		a.Scale = w.scale.F32
	}
	if w.bias != nil {
		a.Bias = w.bias.F32
	}
	return a
}

// gated returns the matrix as one of a gated feed-forward network.
func (w *Weight) gated(num kernel.Numerics) kernel.Gated {
	return kernel.Gated{Matrix: w.Matrix, Affine: w.affine(), Form: formOf(w, num)}
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
	Unused  int // tensors outside the layers that the architecture does not use
}

// Bind points every dense weight to its bytes: data is called once for each
// distinct range, and all objects over it share what it returns.
func (r *Registry) Bind(data func(Range) ([]byte, error)) error {
	bound := map[Range][]byte{}
	for _, w := range r.Weights {
		if w.Streamed || w.Gathered {
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

// LongestRow returns the bytes of the longest row of the tables that are gathered from;
// 0: there is none.
func (r *Registry) LongestRow() int {
	n := 0
	for _, w := range r.Weights {
		if w.Gathered {
			n = max(n, w.RowBytes())
		}
	}
	return n
}

// DenseRanges returns the distinct ranges of all dense weights.
func (r *Registry) DenseRanges() []Range {
	seen := map[Range]bool{}
	var list []Range
	for _, w := range r.Weights {
		if !w.Streamed && !w.Gathered && !seen[w.Range] {
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
	topK   int // experts of a token; 0: as the file says
	err    error

	model  *decoder                           // that is being built
	mixers func(layer int, norm string) mixer // of families whose residual is several streams
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

func (l *loader) boolOr(name string, def bool) bool {
	v, err := l.file.Meta.BoolOr(l.prefix+name, def)
	if err != nil {
		l.fail(err)
	}
	return v
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

// leave says that the model does without tensors that a file may have.
func (l *loader) leave(names ...string) {
	for _, name := range names {
		l.use(name)
	}
}

func (l *loader) use(name string) {
	if l.used == nil {
		l.used = map[string]bool{}
	}
	l.used[name] = true
}

// tensor returns the tensor of the given shape, in ggml's order: the row length
// first. It is then used, and ok, unless there was an error.
func (l *loader) tensor(name string, dims ...int) (t *gguf.Tensor, ok bool) {
	t, ok = l.file.Tensor(name)
	if !ok {
		l.fail(fmt.Errorf("tensor %s is missing", name))
		return nil, false
	}
	same := len(t.Dims) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = t.Dims[i] == int64(dims[i])
	}
	if !same {
		l.fail(fmt.Errorf("tensor %s has shape %v, the metadata asks for %v", name, t.Dims, dims))
		return nil, false
	}
	l.use(name)
	return t, true
}

// add enters a weight over rows row0 to row0+rows-1 of a tensor, which has been
// found to have them.
func (l *loader) add(t *gguf.Tensor, cols, row0, rows int) *Weight {
	w := &Weight{Name: t.Name, Matrix: kernel.Matrix{Type: t.Type, Cols: cols, Rows: rows}}
	w.Range = Range{Shard: t.Shard, Offset: t.Offset + int64(row0)*int64(w.RowBytes()), Size: int64(rows) * int64(w.RowBytes())}
	l.reg.Weights = append(l.reg.Weights, w)
	return w
}

// weight returns the tensor of the given shape.
func (l *loader) weight(name string, dims ...int) *Weight {
	t, ok := l.tensor(name, dims...)
	if !ok {
		return &Weight{Name: name}
	}
	rows := 1
	for _, d := range dims[1:] {
		rows *= d
	}
	return l.add(t, dims[0], 0, rows)
}

// vector returns a tensor of one dimension as floats.
func (l *loader) vector(name string, n int) *Weight { return l.numbers(name, n) }

// numbers returns a tensor of any shape as floats.
func (l *loader) numbers(name string, dims ...int) *Weight {
	w := l.weight(name, dims...)
	w.vector = true
	return w
}

// floats returns a tensor of any shape as floats if the file has it, else nil.
func (l *loader) floats(name string, dims ...int) *Weight {
	if !l.has(name) {
		return nil
	}
	return l.numbers(name, dims...)
}

// matrix returns a dense matrix that the kernels can multiply by, with the scale
// and bias that the file has for it: stem is the tensors' name without ending.
func (l *loader) matrix(stem string, cols, rows int) *Weight {
	w := l.weight(stem+".weight", cols, rows)
	l.supported(w)
	w.scale, w.bias = l.floats(stem+".scale", 1), l.floats(stem+".bias", rows)
	return w
}

// matrices returns dense matrices that stand one upon the other in a fused
// tensor if the file has that, else each in a tensor of its own.
func (l *loader) matrices(fused string, cols int, stems []string, rows ...int) []*Weight {
	ws := make([]*Weight, len(stems))
	if !l.has(fused + ".weight") {
		for i, stem := range stems {
			ws[i] = l.matrix(stem, cols, rows[i])
		}
		return ws
	}
	all := 0
	for _, r := range rows {
		all += r
	}
	t, ok := l.tensor(fused+".weight", cols, all)
	scale := l.floats(fused+".scale", 1)
	var bias *gguf.Tensor
	if l.has(fused + ".bias") {
		bias, _ = l.tensor(fused+".bias", all)
	}
	row0 := 0
	for i, stem := range stems {
		if l.has(stem + ".weight") {
			l.fail(fmt.Errorf("the file has both %s.weight and %s.weight", fused, stem))
		}
		if !ok || l.err != nil {
			ws[i] = &Weight{Name: fused}
			continue
		}
		ws[i] = l.add(t, cols, row0, rows[i])
		l.supported(ws[i])
		ws[i].scale = scale
		if bias != nil {
			if bias.Type.BlockLen() != 1 {
				l.fail(fmt.Errorf("tensor %s has type %v, want floats", bias.Name, bias.Type))
				continue
			}
			ws[i].bias = l.add(bias, rows[i], 0, 1)
			ws[i].bias.Range.Offset += int64(row0) * int64(bias.Type.BlockBytes())
			ws[i].bias.vector = true
		}
		row0 += rows[i]
	}
	return ws
}

// table returns a tensor of 32-bit integers, which nothing is multiplied by.
func (l *loader) table(name string, cols, rows int) *Weight {
	w := l.weight(name, cols, rows)
	if l.err == nil && w.Type != quant.I32 {
		l.fail(fmt.Errorf("tensor %s has type %v, want I32", name, w.Type))
	}
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

// unused refuses a file with a tensor that the model's layers or its head hold
// and the family did not ask for: to leave it out would give wrong answers. What
// lies outside (another head, a vision tower, layers for drafts) is counted. layers
// are those that are computed.
func (l *loader) unused(layers int) (outside int, err error) {
	for i := range l.file.Tensors {
		name := l.file.Tensors[i].Name
		// The range of activations in the quantised arithmetic of other engines says
		// nothing about the weights.
		if l.used[name] || strings.HasSuffix(name, ".input_scale") {
			continue
		}
		var layer int
		inside := strings.HasPrefix(name, "output") || strings.HasPrefix(name, "token_embd") || strings.HasPrefix(name, "rope_")
		if _, e := fmt.Sscanf(name, "blk.%d.", &layer); e == nil {
			inside = layer < layers
		}
		if inside {
			return 0, fmt.Errorf("tensor %q is not known in a model of this architecture (%s): without it the answers would be wrong; "+
				"get a file of the model as it was published, or a newer bmoe", name, l.arch())
		}
		outside++
	}
	return outside, nil
}
