package gguf

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"bmoe/engine/quant"
)

// Tensor is one entry of the tensor table. The data may start at any multiple
// of the file's alignment (32 by default), so it is not aligned to a block.
type Tensor struct {
	Name   string
	Type   quant.Type
	Dims   []int64 // in elements, the row length first (ggml's ne order); 1 to 4 of them, none zero
	Shard  int     // index in File.Shards
	Offset int64   // of the data, in bytes from the start of the shard's file
	Size   int64   // of the data, in bytes, without padding
}

// tensors reads the tensor table. The offsets it returns are still relative to
// the start of the tensor data.
func (c *cursor) tensors(n uint64, align int64) ([]Tensor, error) {
	if err := c.room("a tensor count", n, minTensor); err != nil {
		return nil, err
	}
	var list []Tensor
	seen := map[string]bool{}
	for i := range n {
		c.item = fmt.Sprintf("tensor %d of %d", i+1, n)
		t, err := c.tensor(align)
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, c.bad("the tensor is there twice")
		}
		seen[t.Name] = true
		list = append(list, t)
	}
	c.item = ""
	return list, nil
}

// tensor reads one entry of the tensor table.
func (c *cursor) tensor(align int64) (t Tensor, err error) {
	if t.Name, err = c.name("the tensor's name"); err != nil {
		return t, err
	}
	c.item = "tensor " + quote(t.Name)
	dims, err := c.u32("the number of dimensions")
	if err != nil {
		return t, err
	}
	if dims < 1 || dims > maxDims {
		return t, c.bad("%d dimensions, not 1 to %d", dims, maxDims)
	}
	t.Dims = make([]int64, dims)
	for i := range t.Dims {
		d, err := c.u64("a dimension")
		if err != nil {
			return t, err
		}
		if d == 0 || d > math.MaxInt64 {
			return t, c.bad("dimension %d is %d", i, d)
		}
		t.Dims[i] = int64(d)
	}
	kind, err := c.u32("the tensor's type")
	if err != nil {
		return t, err
	}
	if t.Type = quant.Type(kind); !t.Type.Known() {
		return t, c.bad("unknown tensor type %d; this build cannot read the model, another quantisation of it may do", kind)
	}
	if t.Size, err = tensorBytes(t.Type, t.Dims); err != nil {
		return t, c.bad("%v", err)
	}
	offset, err := c.u64("the tensor's offset")
	if err != nil {
		return t, err
	}
	if offset > math.MaxInt64 || int64(offset)%align != 0 {
		return t, c.bad("offset %d is not a multiple of the alignment %d", offset, align)
	}
	t.Offset = int64(offset)
	return t, nil
}

// tensorBytes returns the bytes of a tensor of the given shape.
func tensorBytes(kind quant.Type, dims []int64) (int64, error) {
	size, err := kind.RowBytes(dims[0])
	if err != nil {
		return 0, err
	}
	elems := dims[0]
	for _, d := range dims[1:] {
		if size > math.MaxInt64/d || elems > math.MaxInt64/d {
			return 0, fmt.Errorf("a tensor of %d x %s is too large", dims, kind)
		}
		size *= d
		elems *= d
	}
	return size, nil
}

// placeTensors makes offsets absolute and checks that every tensor lies in the
// file and that none overlap.
func placeTensors(h *header, size int64, path string) error {
	for i := range h.tensors {
		t := &h.tensors[i]
		room := size - h.data
		if t.Offset > room || t.Size > room-t.Offset {
			return fileError(path, "truncated in the tensor data: tensor %s needs %d bytes at offset %d of the data, which starts at byte %d, but the file has %d bytes; get the file again",
				quote(t.Name), t.Size, t.Offset, h.data, size)
		}
		t.Offset += h.data
	}
	order := make([]*Tensor, len(h.tensors))
	for i := range h.tensors {
		order[i] = &h.tensors[i]
	}
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a.Offset+a.Size > b.Offset {
			return fileError(path, "bad data in the tensor table: tensors %s and %s overlap at byte %d", quote(a.Name), quote(b.Name), b.Offset)
		}
	}
	return nil
}
