package gguf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/quant"
)

// FuzzParse feeds damaged headers to the parser: it must end in a FormatError
// or in a file whose every tensor lies inside it, and must not allocate out of
// proportion to the input.
func FuzzParse(f *testing.F) {
	f.Add(file(f, smallWriter(f)))
	tiny := NewWriter()
	must(f, tiny.Set("general.alignment", uint32(64)))
	must(f, tiny.Set("k", []string{"a", "bb"}))
	must(f, tiny.Declare("v", quant.F32, 4))
	must(f, tiny.Declare("w", quant.Q4_0, 32, 2))
	f.Add(file(f, tiny))
	parts, err := tiny.layOut(2)
	must(f, err)
	f.Add(append(parts[1].header, make([]byte, 64)...))
	f.Add(file(f, NewWriter()))
	f.Add(raw(u32(3), u64(1<<60), u64(1<<60)))
	f.Add(pad(raw(u32(3), u64(0), u64(1), "k", uint32(TypeArray), uint32(TypeArray), u64(2), uint32(TypeInt8), u64(1), u64(0)), 32))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got *File
		var err error
		if n := allocated(func() { got, err = parseBytes(b) }); n > 64*uint64(len(b))+1<<20 {
			t.Errorf("allocated %d bytes for %d", n, len(b))
		}
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("not one clean FormatError: %q", err)
			}
			return
		}
		for _, x := range got.Tensors {
			if x.Offset < got.Shards[0].DataOffset || x.Size <= 0 || x.Offset > int64(len(b))-x.Size || slices.Min(x.Dims) < 1 {
				t.Errorf("tensor %+v of a file of %d bytes", x, len(b))
			}
		}
		for _, k := range got.Meta.Keys() {
			v, _ := got.Meta.Get(k)
			if v.Len() < 0 || v.Kind() == "" {
				t.Errorf("key %q holds %+v", k, v)
			}
		}
	})
}
