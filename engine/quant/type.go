// Package quant holds the block formats in which GGUF stores weights: their
// sizes, and readable reference code that turns blocks into floats and back.
package quant

import (
	"fmt"
	"math"
)

// Type is a tensor's element type, numbered as in GGUF files (enum ggml_type
// of ggml.h).
type Type uint32

// The types that GGUF files hold today. Numbers that are missing were removed
// from the format.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
)

// layout is the shape of one block of a type.
type layout struct {
	name  string
	elems int // elements in a block
	bytes int // bytes of a block
	// values turns consecutive blocks into floats; nil where there are none. dst and
	// src have exactly the lengths that the layout asks for.
	values func(dst []float32, src []byte)
}

// layouts is indexed by type: a new type is a line here, and its values in a file of
// its own. It is an array because kernels ask it for every call; types that are not
// there have no name.
var layouts = [64]layout{
	F32:     {"F32", 1, 4, dequantF32},
	F16:     {"F16", 1, 2, dequantF16},
	BF16:    {"BF16", 1, 2, dequantBF16},
	F64:     {"F64", 1, 8, dequantF64},
	I8:      {"I8", 1, 1, nil},
	I16:     {"I16", 1, 2, nil},
	I32:     {"I32", 1, 4, nil},
	I64:     {"I64", 1, 8, nil},
	Q4_0:    {"Q4_0", 32, 18, dequantQ4_0},
	Q4_1:    {"Q4_1", 32, 20, dequantQ4_1},
	Q5_0:    {"Q5_0", 32, 22, dequantQ5_0},
	Q5_1:    {"Q5_1", 32, 24, dequantQ5_1},
	Q8_0:    {"Q8_0", 32, 34, dequantQ8_0},
	Q8_1:    {"Q8_1", 32, 36, nil},
	IQ4_NL:  {"IQ4_NL", 32, 18, dequantIQ4NL},
	MXFP4:   {"MXFP4", 32, 17, dequantMXFP4},
	NVFP4:   {"NVFP4", 64, 36, dequantNVFP4},
	Q2_K:    {"Q2_K", 256, 84, dequantQ2K},
	Q3_K:    {"Q3_K", 256, 110, dequantQ3K},
	Q4_K:    {"Q4_K", 256, 144, dequantQ4K},
	Q5_K:    {"Q5_K", 256, 176, dequantQ5K},
	Q6_K:    {"Q6_K", 256, 210, dequantQ6K},
	Q8_K:    {"Q8_K", 256, 292, nil},
	IQ1_S:   {"IQ1_S", 256, 50, dequantIQ1S},
	IQ1_M:   {"IQ1_M", 256, 56, dequantIQ1M},
	IQ2_XXS: {"IQ2_XXS", 256, 66, dequantIQ2XXS},
	IQ2_XS:  {"IQ2_XS", 256, 74, dequantIQ2XS},
	IQ2_S:   {"IQ2_S", 256, 82, dequantIQ2S},
	IQ3_XXS: {"IQ3_XXS", 256, 98, dequantIQ3XXS},
	IQ3_S:   {"IQ3_S", 256, 110, dequantIQ3S},
	IQ4_XS:  {"IQ4_XS", 256, 136, dequantIQ4XS},
	TQ1_0:   {"TQ1_0", 256, 54, dequantTQ1},
	TQ2_0:   {"TQ2_0", 256, 66, dequantTQ2},
}

// Known reports whether the type is one whose size is known.
func (t Type) Known() bool {
	return t.layout().name != ""
}

// HasValues reports whether Dequantize knows the type.
func (t Type) HasValues() bool { return t.layout().values != nil }

// layout returns the type's layout, zero for an unknown type.
func (t Type) layout() layout {
	if int(t) < len(layouts) {
		return layouts[t]
	}
	return layout{}
}

// String returns the type's usual name, as in Q4_K.
func (t Type) String() string {
	if t.Known() {
		return t.layout().name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// BlockLen returns the number of elements in a block, or 0 for an unknown type.
func (t Type) BlockLen() int { return t.layout().elems }

// BlockBytes returns the size of a block in bytes, or 0 for an unknown type.
func (t Type) BlockBytes() int { return t.layout().bytes }

// RowBytes returns the bytes that a row of n elements takes. It is an error if
// the type is unknown, or if n is negative, not a whole number of blocks, or
// so large that the size overflows.
func (t Type) RowBytes(n int64) (int64, error) {
	l := t.layout()
	switch {
	case !t.Known():
		return 0, fmt.Errorf("unknown tensor %v", t)
	case n < 0 || n%int64(l.elems) != 0:
		return 0, fmt.Errorf("row of %d elements is not a whole number of %s blocks of %d", n, l.name, l.elems)
	case n/int64(l.elems) > math.MaxInt64/int64(l.bytes):
		return 0, fmt.Errorf("row of %d %s elements is too large", n, l.name)
	}
	return n / int64(l.elems) * int64(l.bytes), nil
}
