package gguf

import (
	"fmt"
	"math"
)

// ValueType is the type of a metadata value, numbered as in GGUF files (enum
// gguf_type of the format's specification, ggml/docs/gguf.md).
type ValueType uint32

// The value types of GGUF versions 2 and 3.
const (
	TypeUint8   ValueType = 0
	TypeInt8    ValueType = 1
	TypeUint16  ValueType = 2
	TypeInt16   ValueType = 3
	TypeUint32  ValueType = 4
	TypeInt32   ValueType = 5
	TypeFloat32 ValueType = 6
	TypeBool    ValueType = 7
	TypeString  ValueType = 8
	TypeArray   ValueType = 9
	TypeUint64  ValueType = 10
	TypeInt64   ValueType = 11
	TypeFloat64 ValueType = 12
)

// valueTypes gives each type its name and the fewest bytes that a value of it
// takes in a file.
var valueTypes = [...]struct {
	name string
	size int64
}{
	TypeUint8: {"uint8", 1}, TypeInt8: {"int8", 1}, TypeUint16: {"uint16", 2}, TypeInt16: {"int16", 2},
	TypeUint32: {"uint32", 4}, TypeInt32: {"int32", 4}, TypeFloat32: {"float32", 4}, TypeBool: {"bool", 1},
	TypeString: {"string", 8}, TypeArray: {"array", 12}, TypeUint64: {"uint64", 8}, TypeInt64: {"int64", 8},
	TypeFloat64: {"float64", 8},
}

// Known reports whether the type is one that the format defines.
func (t ValueType) Known() bool { return int(t) < len(valueTypes) }

// String returns the type's name, as in uint32.
func (t ValueType) String() string {
	if !t.Known() {
		return fmt.Sprintf("value type %d", uint32(t))
	}
	return valueTypes[t].name
}

// minBytes returns the fewest bytes that one value of a known type takes.
func (t ValueType) minBytes() int64 { return valueTypes[t].size }

// Value is one metadata value. The zero Value holds nothing and is not valid.
type Value struct {
	kind ValueType
	elem ValueType // of an array
	data any       // uint8 ... float64, bool, string; []uint8 ... []float64, []bool, []string; []Value for an array of arrays
}

// Len returns the number of elements of an array, and 1 for any other value.
func (v Value) Len() int {
	switch d := v.data.(type) {
	case []uint8:
		return len(d)
	case []int8:
		return len(d)
	case []uint16:
		return len(d)
	case []int16:
		return len(d)
	case []uint32:
		return len(d)
	case []int32:
		return len(d)
	case []uint64:
		return len(d)
	case []int64:
		return len(d)
	case []float32:
		return len(d)
	case []float64:
		return len(d)
	case []bool:
		return len(d)
	case []string:
		return len(d)
	case []Value:
		return len(d)
	}
	return 1
}

// Kind describes the value's type in words, as in "array of 3 int32".
func (v Value) Kind() string {
	if v.kind == TypeArray {
		return fmt.Sprintf("array of %d %v", v.Len(), v.elem)
	}
	return v.kind.String()
}

// ValueOf wraps a Go value: uint8 to float64, bool or string; a slice of those for an
// array; []Value for an array of arrays. A slice is shared and must not be changed.
func ValueOf(x any) (Value, error) {
	switch x.(type) {
	case uint8:
		return Value{kind: TypeUint8, data: x}, nil
	case int8:
		return Value{kind: TypeInt8, data: x}, nil
	case uint16:
		return Value{kind: TypeUint16, data: x}, nil
	case int16:
		return Value{kind: TypeInt16, data: x}, nil
	case uint32:
		return Value{kind: TypeUint32, data: x}, nil
	case int32:
		return Value{kind: TypeInt32, data: x}, nil
	case uint64:
		return Value{kind: TypeUint64, data: x}, nil
	case int64:
		return Value{kind: TypeInt64, data: x}, nil
	case float32:
		return Value{kind: TypeFloat32, data: x}, nil
	case float64:
		return Value{kind: TypeFloat64, data: x}, nil
	case bool:
		return Value{kind: TypeBool, data: x}, nil
	case string:
		return Value{kind: TypeString, data: x}, nil
	case []uint8:
		return arrayOf(TypeUint8, x), nil
	case []int8:
		return arrayOf(TypeInt8, x), nil
	case []uint16:
		return arrayOf(TypeUint16, x), nil
	case []int16:
		return arrayOf(TypeInt16, x), nil
	case []uint32:
		return arrayOf(TypeUint32, x), nil
	case []int32:
		return arrayOf(TypeInt32, x), nil
	case []uint64:
		return arrayOf(TypeUint64, x), nil
	case []int64:
		return arrayOf(TypeInt64, x), nil
	case []float32:
		return arrayOf(TypeFloat32, x), nil
	case []float64:
		return arrayOf(TypeFloat64, x), nil
	case []bool:
		return arrayOf(TypeBool, x), nil
	case []string:
		return arrayOf(TypeString, x), nil
	case []Value:
		return arrayOf(TypeArray, x), nil
	}
	return Value{}, fmt.Errorf("a GGUF value cannot hold a %T", x)
}

func arrayOf(elem ValueType, data any) Value {
	return Value{kind: TypeArray, elem: elem, data: data}
}

// integer returns an integer of any width as int64. ok is false if the value is
// not an integer; err is set if it does not fit.
func (v Value) integer() (n int64, ok bool, err error) {
	switch d := v.data.(type) {
	case uint8:
		return int64(d), true, nil
	case int8:
		return int64(d), true, nil
	case uint16:
		return int64(d), true, nil
	case int16:
		return int64(d), true, nil
	case uint32:
		return int64(d), true, nil
	case int32:
		return int64(d), true, nil
	case int64:
		return d, true, nil
	case uint64:
		if d > math.MaxInt64 {
			return 0, true, fmt.Errorf("%d does not fit in 64 bits with a sign", d)
		}
		return int64(d), true, nil
	}
	return 0, false, nil
}

// float returns a float or an integer as float64. ok is false for other types.
func (v Value) float() (f float64, ok bool) {
	switch d := v.data.(type) {
	case float32:
		return float64(d), true
	case float64:
		return d, true
	case uint64:
		return float64(d), true
	}
	n, ok, _ := v.integer() // only uint64 can fail, and it is done above
	return float64(n), ok
}
