package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxDims          = 4       // of a tensor, as in ggml
	maxName          = 1 << 16 // bytes of a key or of a tensor's name; the specification says 65535
	maxNesting       = 8       // of arrays; real files have none
	minKV            = 8 + 4 + 1
	minTensor        = 8 + 4 + 8 + 4 + 8
)

// header is what one file holds before its tensor data.
type header struct {
	version uint32
	meta    *Metadata
	tensors []Tensor // Offset is absolute
	data    int64    // where the tensor data starts
}

// parse reads and checks a file's header.
func parse(r io.ReaderAt, size int64, path string) (*header, error) {
	c := newCursor(r, size, path)
	if size == 0 {
		return nil, fileError(path, "the file is empty; get the file again")
	}
	version, err := c.start()
	if err != nil {
		return nil, err
	}
	tensors, err := c.u64("the tensor count")
	if err != nil {
		return nil, err
	}
	pairs, err := c.u64("the metadata count")
	if err != nil {
		return nil, err
	}
	h := &header{version: version, meta: newMetadata()}
	if err := c.metadata(h.meta, pairs); err != nil {
		return nil, err
	}
	c.section, c.item = "tensor table", ""
	align, err := alignment(h.meta)
	if err != nil {
		return nil, c.bad("%v", err)
	}
	if h.tensors, err = c.tensors(tensors, align); err != nil {
		return nil, err
	}
	h.data = alignUp(c.at(), align)
	return h, placeTensors(h, size, path)
}

// start reads the magic and the version.
func (c *cursor) start() (uint32, error) {
	b, err := c.bytes("the magic", 4)
	if err != nil {
		return 0, err
	}
	if string(b) != magic {
		head := make([]byte, min(c.size, 64))
		n, err := c.r.ReadAt(head, 0)
		if n < len(magic) {
			return 0, fmt.Errorf("read %s: %w", c.path, err)
		}
		return 0, mistaken(c.path, head[:n])
	}
	version, err := c.u32("the version")
	switch {
	case err != nil:
		return 0, err
	case version == 2 || version == 3:
		return version, nil
	case version == 1:
		return 0, fileError(c.path, "GGUF version 1 is not supported (2 and 3 are); convert the model again with a current tool")
	case version&0xffff == 0 && version != 0:
		return 0, fileError(c.path, "big-endian GGUF is not supported; get the little-endian file of this model")
	}
	return 0, fileError(c.path, "GGUF version %d is not supported (2 and 3 are)", version)
}

// metadata reads n pairs of key and value.
func (c *cursor) metadata(m *Metadata, n uint64) error {
	c.section = "metadata"
	if err := c.room("a metadata count", n, minKV); err != nil {
		return err
	}
	for i := range n {
		c.item = fmt.Sprintf("key %d of %d", i+1, n)
		name, err := c.name("the key")
		if err != nil {
			return err
		}
		c.item = "key " + quote(name)
		if m.Has(name) {
			return c.bad("the key is there twice")
		}
		kind, err := c.valueType()
		if err != nil {
			return err
		}
		v, err := c.value(kind, 0)
		if err != nil {
			return err
		}
		m.add(name, v)
	}
	return nil
}

// name reads the name of a key or tensor.
func (c *cursor) name(what string) (string, error) {
	b, err := c.text(what)
	if err != nil {
		return "", err
	}
	if len(b) == 0 || len(b) >= maxName {
		return "", c.bad("%s has %d bytes, not 1 to %d", what, len(b), maxName-1)
	}
	return string(b), nil
}

func (c *cursor) valueType() (ValueType, error) {
	n, err := c.u32("a value type")
	if err != nil {
		return 0, err
	}
	if t := ValueType(n); t.Known() {
		return t, nil
	}
	return 0, c.bad("unknown value type %d", n)
}

// value reads one value inside depth arrays.
func (c *cursor) value(kind ValueType, depth int) (Value, error) {
	v := Value{kind: kind}
	switch kind {
	case TypeString:
		b, err := c.text("a string")
		if err != nil {
			return v, err
		}
		v.data = string(b)
		return v, nil
	case TypeArray:
		return c.array(depth + 1)
	}
	b, err := c.bytes("a "+kind.String(), kind.minBytes())
	if err != nil {
		return v, err
	}
	le := binary.LittleEndian
	switch kind {
	case TypeUint8:
		v.data = b[0]
	case TypeInt8:
		v.data = int8(b[0])
	case TypeBool:
		v.data = b[0] != 0
	case TypeUint16:
		v.data = le.Uint16(b)
	case TypeInt16:
		v.data = int16(le.Uint16(b))
	case TypeUint32:
		v.data = le.Uint32(b)
	case TypeInt32:
		v.data = int32(le.Uint32(b))
	case TypeFloat32:
		v.data = math.Float32frombits(le.Uint32(b))
	case TypeUint64:
		v.data = le.Uint64(b)
	case TypeInt64:
		v.data = int64(le.Uint64(b))
	case TypeFloat64:
		v.data = math.Float64frombits(le.Uint64(b))
	}
	return v, nil
}

// array reads an array, itself the depth-th of nested ones.
func (c *cursor) array(depth int) (Value, error) {
	var v Value
	if depth > maxNesting {
		return v, c.bad("arrays nested more than %d deep", maxNesting)
	}
	elem, err := c.valueType()
	if err != nil {
		return v, err
	}
	n, err := c.u64("an array's length")
	if err != nil {
		return v, err
	}
	if err := c.room("an array of "+elem.String(), n, elem.minBytes()); err != nil {
		return v, err
	}
	v.kind, v.elem = TypeArray, elem
	switch elem {
	case TypeUint8:
		v.data, err = numbers[uint8](c, elem, n)
	case TypeInt8:
		v.data, err = numbers[int8](c, elem, n)
	case TypeUint16:
		v.data, err = numbers[uint16](c, elem, n)
	case TypeInt16:
		v.data, err = numbers[int16](c, elem, n)
	case TypeUint32:
		v.data, err = numbers[uint32](c, elem, n)
	case TypeInt32:
		v.data, err = numbers[int32](c, elem, n)
	case TypeFloat32:
		v.data, err = numbers[float32](c, elem, n)
	case TypeBool:
		v.data, err = numbers[bool](c, elem, n)
	case TypeUint64:
		v.data, err = numbers[uint64](c, elem, n)
	case TypeInt64:
		v.data, err = numbers[int64](c, elem, n)
	case TypeFloat64:
		v.data, err = numbers[float64](c, elem, n)
	case TypeString:
		v.data, err = c.strings(n)
	case TypeArray:
		v.data, err = c.arrays(n, depth)
	}
	return v, err
}

// numbers reads n values of one fixed size, for which there is room.
func numbers[T any](c *cursor, elem ValueType, n uint64) ([]T, error) {
	b, err := c.bytes("an array of "+elem.String(), int64(n)*elem.minBytes())
	if err != nil {
		return nil, err
	}
	out := make([]T, n)
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		return nil, c.bad("an array of %v: %v", elem, err)
	}
	return out, nil
}

// strings reads n strings. Their text shares one allocation: a vocabulary has
// hundreds of thousands.
func (c *cursor) strings(n uint64) ([]string, error) {
	var all strings.Builder
	// Both start at a usual size and grow only with what is really there.
	all.Grow(int(min(8*n, 1<<20)))
	ends := make([]uint32, 0, min(n, 1<<17)) // maxHeader fits in 32 bits
	for range n {
		b, ok := c.quickText()
		if !ok {
			var err error
			if b, err = c.text("a string"); err != nil {
				return nil, err
			}
		}
		all.Write(b)
		ends = append(ends, uint32(all.Len()))
	}
	text, start := all.String(), uint32(0)
	out := make([]string, n)
	for i, end := range ends {
		out[i] = text[start:end]
		start = end
	}
	return out, nil
}

// arrays reads n arrays.
func (c *cursor) arrays(n uint64, depth int) ([]Value, error) {
	var out []Value
	for range n {
		v, err := c.array(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// alignment returns the alignment of a file's tensor data.
func alignment(m *Metadata) (int64, error) {
	n, err := m.Uint32Or("general.alignment", defaultAlignment)
	if err != nil {
		return 0, err
	}
	if n == 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("general.alignment is %d, not a power of two", n)
	}
	return int64(n), nil
}

// alignUp rounds n up to a multiple of a power of two.
func alignUp(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }
