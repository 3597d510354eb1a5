package model

import (
	"fmt"
	"strings"
)

// arch returns the architecture's GGUF name.
func (l *loader) arch() string { return strings.TrimSuffix(l.prefix, ".") }

// names returns a function that gives the names of a layer's tensors.
func (l *loader) names(layer int) func(string) string {
	prefix := fmt.Sprintf("blk.%d.", layer)
	return func(s string) string { return prefix + s }
}

// rowsOf returns the number of rows of a matrix whose shape the metadata does
// not fix, such as the vocabulary's.
func (l *loader) rowsOf(name string) int {
	t, ok := l.file.Tensor(name)
	if !ok {
		l.fail(fmt.Errorf("tensor %s is missing", name))
		return 1
	}
	if len(t.Dims) != 2 || t.Dims[1] > 1<<24 {
		l.fail(fmt.Errorf("tensor %s has shape %v, want a matrix", name, t.Dims))
		return 1
	}
	return int(t.Dims[1])
}

// perLayer returns a count that the metadata may give as one number for all
// layers or as an array with one for each, which may be 0. A default of 0 stands for
// none: the key must be there.
func (l *loader) perLayer(name string, layers, def int) []int {
	list := make([]int, layers)
	key := l.prefix + name
	if def != 0 && !l.file.Meta.Has(key) {
		for i := range list {
			list[i] = def
		}
		return list
	}
	v, err := l.file.Meta.PerLayer(key, layers)
	if err != nil {
		l.fail(err)
		return list
	}
	for i, n := range v {
		if n < 0 || n > 1<<24 {
			l.fail(fmt.Errorf("%s is %d in layer %d, not a sensible count", key, n, i))
			return list
		}
		list[i] = int(n)
	}
	return list
}

// allLayers is perLayer for families whose layers are all alike: an array must
// then have equal entries.
func (l *loader) allLayers(name string, layers, def int) int {
	list := l.perLayer(name, layers, def)
	for i, n := range list {
		if l.err == nil && (n != list[0] || n == 0) {
			l.fail(fmt.Errorf("%s%s is %d in layer %d and %d in layer 0: layers that differ are not known in a model of this architecture", l.prefix, name, n, i, list[0]))
		}
	}
	return max(1, list[0])
}

// some returns a count that may be 0, which it also is by default.
func (l *loader) some(name string) int {
	if v, err := l.file.Meta.IntOr(l.prefix+name, 0); err == nil && v == 0 {
		return 0
	}
	return l.key(name)
}

// layers returns the number of layers that are computed: those of a head that
// drafts further tokens, the last ones, are not.
func (l *loader) layers() int {
	n := l.key("block_count")
	if drafts := l.some("nextn_predict_layers"); drafts < n {
		n -= drafts
	} else {
		l.fail(fmt.Errorf("%snextn_predict_layers is %d of %d layers", l.prefix, drafts, n))
	}
	if tensors := len(l.file.Tensors); n > tensors { // before anything is made for each
		l.fail(fmt.Errorf("%sblock_count is %d, but the file has only %d tensors", l.prefix, n, tensors))
		return 1
	}
	return n
}

// flags returns an array of booleans with one for each layer; without the key all
// are false.
func (l *loader) flags(name string, layers int) []bool {
	list := make([]bool, layers)
	if key := l.prefix + name; l.file.Meta.Has(key) {
		all, err := l.file.Meta.Bools(key)
		switch {
		case err != nil:
			l.fail(err)
		case len(all) < layers:
			l.fail(fmt.Errorf("%s has %d elements for %d layers", key, len(all), layers))
		default:
			copy(list, all)
		}
	}
	return list
}

// recurrentLayers returns which layers are recurrent: those that an array of
// booleans names, else all but every interval-th.
func (l *loader) recurrentLayers(layers int) []bool {
	if l.file.Meta.Has(l.prefix + "attention.recurrent_layers") {
		return l.flags("attention.recurrent_layers", layers)
	}
	list := make([]bool, layers)
	interval := l.keyOr("full_attention_interval", 4)
	for i := range list {
		list[i] = (i+1)%interval != 0
	}
	return list
}

// epsilon returns what a norm adds under its root so as not to divide by zero.
func (l *loader) epsilon(name string) float32 {
	e := l.floatOr(name, 1e-6)
	if !(e >= 0 && e < 1) {
		l.fail(fmt.Errorf("%s%s is %v: want a small number, below 1", l.prefix, name, e))
	}
	return float32(e)
}

// limits returns the limit of an activation in each layer: 0, also where the file has
// none, is no limit.
func (l *loader) limits(name string, layers int) []float32 {
	list := make([]float32, layers)
	key := l.prefix + name
	if !l.file.Meta.Has(key) {
		return list
	}
	all, err := l.file.Meta.Floats(key)
	switch {
	case err != nil:
		l.fail(err)
		return list
	case len(all) < layers:
		l.fail(fmt.Errorf("%s has %d elements for %d layers", key, len(all), layers))
		return list
	}
	for i := range list {
		if list[i] = float32(all[i]); !(list[i] >= 0) {
			l.fail(fmt.Errorf("%s is %v in layer %d, not 0 or more", key, all[i], i))
		}
	}
	return list
}
