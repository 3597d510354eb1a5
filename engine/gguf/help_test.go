package gguf

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"bmoe/engine/quant"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// everyKind is one key of each type that metadata can have.
var everyKind = []struct {
	key string
	x   any
}{
	{"general.architecture", "qwen3moe"},
	{"k.uint8", uint8(200)}, {"k.int8", int8(-100)}, {"k.uint16", uint16(60000)}, {"k.int16", int16(-30000)},
	{"k.uint32", uint32(4e9)}, {"k.int32", int32(-2e9)}, {"k.uint64", uint64(1 << 63)}, {"k.int64", int64(-1 << 62)},
	{"k.float32", float32(1.5)}, {"k.float64", 0.1}, {"k.true", true}, {"k.false", false},
	{"k.empty", ""}, {"k.text", "héllo\x00\xff"},
	{"k.uint8s", []uint8{1, 255}}, {"k.int8s", []int8{-1, 1}}, {"k.uint16s", []uint16{1, 65535}}, {"k.int16s", []int16{-1, 2}},
	{"k.uint32s", []uint32{1, 1 << 31}}, {"k.int32s", []int32{-1, 2, 3}}, {"k.uint64s", []uint64{1, 1 << 63}}, {"k.int64s", []int64{-1, 1 << 40}},
	{"k.float32s", []float32{1.5, -2}}, {"k.float64s", []float64{0.1}}, {"k.bools", []bool{true, false, true}},
	{"k.strings", []string{"a", "", "ccc"}}, {"k.none", []string{}}, {"k.no_ints", []int32{}},
	{"k.nested", []Value{arrayOf(TypeInt32, []int32{1, 2}), arrayOf(TypeString, []string{"x"}), arrayOf(TypeArray, []Value{arrayOf(TypeBool, []bool{true})})}},
}

// smallWriter returns a writer with a key of every type and three tensors.
func smallWriter(t testing.TB) *Writer {
	w := NewWriter()
	for _, kv := range everyKind {
		must(t, w.Set(kv.key, kv.x))
	}
	must(t, w.Declare("token_embd.weight", quant.Q8_0, 32, 3))
	must(t, w.Declare("norm.weight", quant.F32, 5))
	must(t, w.Declare("blk.0.ffn_up_exps.weight", quant.Q4_K, 256, 2, 2))
	return w
}

// file returns the bytes of the model that a writer describes, its data zero.
func file(t testing.TB, w *Writer) []byte {
	t.Helper()
	parts, err := w.layOut(1)
	must(t, err)
	return append(parts[0].header, make([]byte, parts[0].size-int64(len(parts[0].header)))...)
}

func parseBytes(b []byte) (*File, error) {
	return parseWhole(bytes.NewReader(b), int64(len(b)), "model.gguf")
}

// wantBad checks that parsing fails as bad input does: with a FormatError, in
// one line that names the file and holds the given words.
func wantBad(t *testing.T, err error, words ...string) {
	t.Helper()
	var fe *FormatError
	if !errors.As(err, &fe) {
		t.Fatalf("want a FormatError about %q, got %v", words, err)
	}
	msg := err.Error()
	for _, w := range append(words, ".gguf") {
		if !strings.Contains(msg, w) {
			t.Errorf("%q does not mention %q", msg, w)
		}
	}
	if strings.Contains(msg, "\n") || len(msg) > 500 {
		t.Errorf("not one readable line: %q", msg)
	}
}

// parseWhole reads the header of a model that is one file, as Open would.
func parseWhole(r io.ReaderAt, size int64, name string) (*File, error) {
	h, err := parse(r, size, name)
	if err != nil {
		return nil, err
	}
	f := &File{byName: map[string]int{}}
	return f, f.add(h, Shard{Path: name, Size: size, DataOffset: h.data})
}
