package gguf

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestEveryValueTypeSurvives(t *testing.T) {
	for _, version := range []uint32{2, 3} {
		w := smallWriter(t)
		w.version = version
		f, err := parseBytes(file(t, w))
		must(t, err)
		if f.Version != version {
			t.Errorf("version %d, want %d", f.Version, version)
		}
		if got := f.Meta.Keys(); len(got) != len(everyKind) {
			t.Fatalf("%d keys, want %d", len(got), len(everyKind))
		}
		for i, kv := range everyKind {
			if got := f.Meta.Keys()[i]; got != kv.key {
				t.Errorf("key %d is %q, want %q", i, got, kv.key)
			}
			if got, _ := f.Meta.Get(kv.key); !reflect.DeepEqual(got.data, kv.x) {
				t.Errorf("%s: %#v, want %#v", kv.key, got.data, kv.x)
			}
		}
	}
}

// metaOf returns metadata with the given keys.
func metaOf(t *testing.T, kv ...any) *Metadata {
	m := newMetadata()
	for i := 0; i < len(kv); i += 2 {
		v, err := ValueOf(kv[i+1])
		must(t, err)
		m.add(kv[i].(string), v)
	}
	return m
}

func TestGetters(t *testing.T) {
	m := newMetadata()
	for _, kv := range everyKind {
		v, err := ValueOf(kv.x)
		must(t, err)
		m.add(kv.key, v)
	}
	for _, c := range []struct {
		name string
		get  func() (any, error)
		want any // nil: an error
		text string
	}{
		{"string", func() (any, error) { return m.String("general.architecture") }, "qwen3moe", ""},
		{"string of a number", func() (any, error) { return m.String("k.int8") }, nil, "metadata key k.int8: want a string, found int8"},
		{"bool", func() (any, error) { return m.Bool("k.true") }, true, ""},
		{"bool of an integer", func() (any, error) { return m.Bool("k.uint8") }, nil, "metadata key k.uint8: want a bool, found uint8"},
		{"int of uint8", func() (any, error) { return m.Int("k.uint8") }, int64(200), ""},
		{"int of int8", func() (any, error) { return m.Int("k.int8") }, int64(-100), ""},
		{"int of uint16", func() (any, error) { return m.Int("k.uint16") }, int64(60000), ""},
		{"int of int16", func() (any, error) { return m.Int("k.int16") }, int64(-30000), ""},
		{"int of uint32", func() (any, error) { return m.Int("k.uint32") }, int64(4e9), ""},
		{"int of int32", func() (any, error) { return m.Int("k.int32") }, int64(-2e9), ""},
		{"int of int64", func() (any, error) { return m.Int("k.int64") }, int64(-1 << 62), ""},
		{"int of 2^63", func() (any, error) { return m.Int("k.uint64") }, nil, "9223372036854775808 does not fit"},
		{"int of a float", func() (any, error) { return m.Int("k.float32") }, nil, "want an integer, found float32"},
		{"int of an array", func() (any, error) { return m.Int("k.int32s") }, nil, "found array of 3 int32"},
		{"uint32", func() (any, error) { return m.Uint32("k.uint32") }, uint32(4e9), ""},
		{"uint32 of a negative", func() (any, error) { return m.Uint32("k.int8") }, nil, "-100 is not in 0 to 4294967295"},
		{"float of float32", func() (any, error) { return m.Float("k.float32") }, 1.5, ""},
		{"float of float64", func() (any, error) { return m.Float("k.float64") }, 0.1, ""},
		{"float of an integer", func() (any, error) { return m.Float("k.int16") }, -30000.0, ""},
		{"float of uint64", func() (any, error) { return m.Float("k.uint64") }, float64(1 << 63), ""},
		{"float of a string", func() (any, error) { return m.Float("k.text") }, nil, "want a number, found string"},
		{"strings", func() (any, error) { return m.Strings("k.strings") }, []string{"a", "", "ccc"}, ""},
		{"strings of a string", func() (any, error) { return m.Strings("k.text") }, nil, "want an array of strings, found string"},
		{"bools", func() (any, error) { return m.Bools("k.bools") }, []bool{true, false, true}, ""},
		{"bools of ints", func() (any, error) { return m.Bools("k.int8s") }, nil, "want an array of bools, found array of 2 int8"},
		{"ints of uint8", func() (any, error) { return m.Ints("k.uint8s") }, []int64{1, 255}, ""},
		{"ints of int8", func() (any, error) { return m.Ints("k.int8s") }, []int64{-1, 1}, ""},
		{"ints of uint16", func() (any, error) { return m.Ints("k.uint16s") }, []int64{1, 65535}, ""},
		{"ints of int16", func() (any, error) { return m.Ints("k.int16s") }, []int64{-1, 2}, ""},
		{"ints of uint32", func() (any, error) { return m.Ints("k.uint32s") }, []int64{1, 1 << 31}, ""},
		{"ints of int32", func() (any, error) { return m.Ints("k.int32s") }, []int64{-1, 2, 3}, ""},
		{"ints of int64", func() (any, error) { return m.Ints("k.int64s") }, []int64{-1, 1 << 40}, ""},
		{"ints of 2^63", func() (any, error) { return m.Ints("k.uint64s") }, nil, "element 1: 9223372036854775808 does not fit"},
		{"ints of floats", func() (any, error) { return m.Ints("k.float32s") }, nil, "found array of 2 float32"},
		{"floats", func() (any, error) { return m.Floats("k.float32s") }, []float64{1.5, -2}, ""},
		{"floats of float64", func() (any, error) { return m.Floats("k.float64s") }, []float64{0.1}, ""},
		{"floats of ints", func() (any, error) { return m.Floats("k.int32s") }, []float64{-1, 2, 3}, ""},
		{"floats of bools", func() (any, error) { return m.Floats("k.bools") }, nil, "found array of 3 bool"},
		{"missing", func() (any, error) { return m.String("k.nothing") }, nil, "metadata key k.nothing: missing"},
		{"string or", func() (any, error) { return m.StringOr("k.nothing", "d") }, "d", ""},
		{"string or, there", func() (any, error) { return m.StringOr("k.empty", "d") }, "", ""},
		{"string or, wrong type", func() (any, error) { return m.StringOr("k.true", "d") }, nil, "found bool"},
		{"bool or", func() (any, error) { return m.BoolOr("k.nothing", true) }, true, ""},
		{"int or", func() (any, error) { return m.IntOr("k.nothing", -7) }, int64(-7), ""},
		{"uint32 or", func() (any, error) { return m.Uint32Or("k.nothing", 7) }, uint32(7), ""},
		{"float or", func() (any, error) { return m.FloatOr("k.nothing", 0.5) }, 0.5, ""},
		{"per layer, one", func() (any, error) { return m.PerLayer("k.uint8", 3) }, []int64{200, 200, 200}, ""},
		{"per layer, each", func() (any, error) { return m.PerLayer("k.int32s", 3) }, []int64{-1, 2, 3}, ""},
		{"per layer, fewer", func() (any, error) { return m.PerLayer("k.int32s", 2) }, []int64{-1, 2}, ""},
		{"per layer, too few", func() (any, error) { return m.PerLayer("k.int32s", 4) }, nil, "has 3 elements for 4 layers"},
		{"per layer, a string", func() (any, error) { return m.PerLayer("k.text", 4) }, nil, "found string"},
	} {
		got, err := c.get()
		switch {
		case c.want != nil && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		case c.want == nil && (err == nil || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.text)
		}
	}
	if _, err := m.Int("k.nothing"); !errors.Is(err, ErrNoKey) {
		t.Errorf("a missing key gives %v", err)
	}
	if _, err := m.Int("k.true"); errors.Is(err, ErrNoKey) {
		t.Errorf("a wrong type gives %v", err)
	}
}

func TestValueKind(t *testing.T) {
	m := metaOf(t, "a", []uint16{1, 2}, "b", []Value{}, "c", math.Pi)
	for key, want := range map[string]string{"a": "array of 2 uint16", "b": "array of 0 array", "c": "float64"} {
		if v, _ := m.Get(key); v.Kind() != want {
			t.Errorf("%s is %s, want %s", key, v.Kind(), want)
		}
	}
	if _, err := ValueOf(3); err == nil { // an int has no fixed width
		t.Error("an int was taken")
	}
}
