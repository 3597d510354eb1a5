package gguf

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoKey is wrapped by the error of a getter whose key is not in the file.
var ErrNoKey = errors.New("missing")

// Metadata is the ordered list of a file's keys and values. Its getters return
// an error that names the key, and the type found if it is not the one asked
// for. A getter with a name in -Or returns a default when the key is absent,
// but still fails on a wrong type.
type Metadata struct {
	keys   []string
	values map[string]Value
}

func newMetadata() *Metadata { return &Metadata{values: map[string]Value{}} }

// add appends a key that is not there yet.
func (m *Metadata) add(key string, v Value) {
	m.keys = append(m.keys, key)
	m.values[key] = v
}

// Keys returns the keys in the file's order. The slice must not be changed.
func (m *Metadata) Keys() []string { return m.keys }

// Has reports whether the key is there.
func (m *Metadata) Has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// Get returns the raw value of a key.
func (m *Metadata) Get(key string) (Value, bool) {
	v, ok := m.values[key]
	return v, ok
}

// lookup returns the value of a key, or an error that wraps ErrNoKey.
func (m *Metadata) lookup(key string) (Value, error) {
	v, ok := m.values[key]
	if !ok {
		return Value{}, fmt.Errorf("metadata key %s: %w", key, ErrNoKey)
	}
	return v, nil
}

func wrongType(key, want string, got Value) error {
	return fmt.Errorf("metadata key %s: want %s, found %s", key, want, got.Kind())
}

// String returns a string.
func (m *Metadata) String(key string) (string, error) {
	v, err := m.lookup(key)
	if err != nil {
		return "", err
	}
	s, ok := v.data.(string)
	if !ok {
		return "", wrongType(key, "a string", v)
	}
	return s, nil
}

// Bool returns a bool.
func (m *Metadata) Bool(key string) (bool, error) {
	v, err := m.lookup(key)
	if err != nil {
		return false, err
	}
	b, ok := v.data.(bool)
	if !ok {
		return false, wrongType(key, "a bool", v)
	}
	return b, nil
}

// Int returns an integer of any width and sign.
func (m *Metadata) Int(key string) (int64, error) {
	v, err := m.lookup(key)
	if err != nil {
		return 0, err
	}
	n, ok, err := v.integer()
	switch {
	case !ok:
		return 0, wrongType(key, "an integer", v)
	case err != nil:
		return 0, fmt.Errorf("metadata key %s: %w", key, err)
	}
	return n, nil
}

// Uint32 returns an integer of any width that lies in 0 to 2^32-1.
func (m *Metadata) Uint32(key string) (uint32, error) {
	n, err := m.Int(key)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxUint32 {
		return 0, fmt.Errorf("metadata key %s: %d is not in 0 to %d", key, n, uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// Float returns a float of either width, or an integer as a float.
func (m *Metadata) Float(key string) (float64, error) {
	v, err := m.lookup(key)
	if err != nil {
		return 0, err
	}
	f, ok := v.float()
	if !ok {
		return 0, wrongType(key, "a number", v)
	}
	return f, nil
}

// or turns a missing key into the default.
func or[T any](v T, err error, def T) (T, error) {
	if errors.Is(err, ErrNoKey) {
		return def, nil
	}
	return v, err
}

// StringOr returns a string, or def if the key is absent.
func (m *Metadata) StringOr(key, def string) (string, error) {
	v, err := m.String(key)
	return or(v, err, def)
}

// BoolOr returns a bool, or def if the key is absent.
func (m *Metadata) BoolOr(key string, def bool) (bool, error) {
	v, err := m.Bool(key)
	return or(v, err, def)
}

// IntOr returns an integer of any width and sign, or def if the key is absent.
func (m *Metadata) IntOr(key string, def int64) (int64, error) {
	v, err := m.Int(key)
	return or(v, err, def)
}

// Uint32Or returns an integer in 0 to 2^32-1, or def if the key is absent.
func (m *Metadata) Uint32Or(key string, def uint32) (uint32, error) {
	v, err := m.Uint32(key)
	return or(v, err, def)
}

// FloatOr returns a number as a float, or def if the key is absent.
func (m *Metadata) FloatOr(key string, def float64) (float64, error) {
	v, err := m.Float(key)
	return or(v, err, def)
}

// Strings returns an array of strings. The slice is shared and must not be
// changed.
func (m *Metadata) Strings(key string) ([]string, error) {
	v, err := m.lookup(key)
	if err != nil {
		return nil, err
	}
	if s, ok := v.data.([]string); ok {
		return s, nil
	}
	return nil, wrongType(key, "an array of strings", v)
}

// Bools returns an array of bools. The slice is shared and must not be changed.
func (m *Metadata) Bools(key string) ([]bool, error) {
	v, err := m.lookup(key)
	if err != nil {
		return nil, err
	}
	if b, ok := v.data.([]bool); ok {
		return b, nil
	}
	return nil, wrongType(key, "an array of bools", v)
}

// Ints returns an array of integers of any width, as a new slice.
func (m *Metadata) Ints(key string) ([]int64, error) {
	v, err := m.lookup(key)
	if err != nil {
		return nil, err
	}
	switch d := v.data.(type) {
	case []uint8:
		return widen[int64](d), nil
	case []int8:
		return widen[int64](d), nil
	case []uint16:
		return widen[int64](d), nil
	case []int16:
		return widen[int64](d), nil
	case []uint32:
		return widen[int64](d), nil
	case []int32:
		return widen[int64](d), nil
	case []int64:
		return widen[int64](d), nil
	case []uint64:
		for i, x := range d {
			if x > math.MaxInt64 {
				return nil, fmt.Errorf("metadata key %s: element %d: %d does not fit in 64 bits with a sign", key, i, x)
			}
		}
		return widen[int64](d), nil
	}
	return nil, wrongType(key, "an array of integers", v)
}

// Floats returns an array of floats or integers of any width, as a new slice.
func (m *Metadata) Floats(key string) ([]float64, error) {
	v, err := m.lookup(key)
	if err != nil {
		return nil, err
	}
	switch d := v.data.(type) {
	case []float32:
		return widen[float64](d), nil
	case []float64:
		return widen[float64](d), nil
	case []uint8:
		return widen[float64](d), nil
	case []int8:
		return widen[float64](d), nil
	case []uint16:
		return widen[float64](d), nil
	case []int16:
		return widen[float64](d), nil
	case []uint32:
		return widen[float64](d), nil
	case []int32:
		return widen[float64](d), nil
	case []int64:
		return widen[float64](d), nil
	case []uint64:
		return widen[float64](d), nil
	}
	return nil, wrongType(key, "an array of numbers", v)
}

// PerLayer returns n integers from a key that holds either one integer for all
// layers or an array with an integer for each, as head_count_kv does.
func (m *Metadata) PerLayer(key string, n int) ([]int64, error) {
	v, err := m.lookup(key)
	if err != nil {
		return nil, err
	}
	if v.kind != TypeArray {
		one, err := m.Int(key)
		if err != nil {
			return nil, err
		}
		all := make([]int64, n)
		for i := range all {
			all[i] = one
		}
		return all, nil
	}
	all, err := m.Ints(key)
	if err != nil {
		return nil, err
	}
	if len(all) < n {
		return nil, fmt.Errorf("metadata key %s: has %d elements for %d layers", key, len(all), n)
	}
	return all[:n], nil
}

type number interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64
}

func widen[To, From number](from []From) []To {
	to := make([]To, len(from))
	for i, x := range from {
		to[i] = To(x)
	}
	return to
}
