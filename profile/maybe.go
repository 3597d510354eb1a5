// Package profile holds what a token cost: the record of one token, the live
// snapshot that a screen draws, and the result of a run.
package profile

import (
	"encoding/json"
	"math"

	"bmoe/internal/units"
)

// Maybe is a figure that the host or the run may not have. What was not
// measured is null in JSON and n/a on a screen, never 0.
type Maybe[T int64 | float64 | bool | string] struct {
	Value T
	OK    bool
}

// Some returns a figure that was measured.
func Some[T int64 | float64 | bool | string](v T) Maybe[T] { return Maybe[T]{v, true} }

// maybe returns a figure that may have been measured.
func maybe[T int64 | float64](v T, ok bool) Maybe[T] { return Maybe[T]{v, ok} }

// MarshalJSON writes null for what was not measured and for floats that JSON
// cannot hold.
func (m Maybe[T]) MarshalJSON() ([]byte, error) {
	if !m.OK {
		return []byte("null"), nil
	}
	if f, ok := any(m.Value).(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return []byte("null"), nil
	}
	return json.Marshal(m.Value)
}

// UnmarshalJSON reads null as not measured.
func (m *Maybe[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = Maybe[T]{}
		return nil
	}
	m.OK = true
	return json.Unmarshal(b, &m.Value)
}

// Text formats a figure, with its unit, or says that it was not measured.
func (m Maybe[T]) Text(f func(T) string, unit string) string {
	if !m.OK {
		return units.NotMeasured
	}
	return f(m.Value) + unit
}

// In returns a figure in another unit, which is so many of its own.
func In[T int64 | float64](m Maybe[T], unit float64) Maybe[float64] {
	return Maybe[float64]{float64(m.Value) / unit, m.OK}
}

// Ratio returns a/b, or nothing when b is zero.
func Ratio(a, b float64) Maybe[float64] {
	if b == 0 {
		return Maybe[float64]{}
	}
	return Some(a / b)
}
