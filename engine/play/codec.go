package play

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// The states of a recording are structs written as what has changed since the one
// before, leaf by leaf. The file's header names the leaves, so that a program whose
// structs have others reads what it knows and passes over the rest.

// shape is the leaves of a struct type.
type shape struct {
	names []string // path and kind, as in "Cache.Budget:i"
	at    [][]int  // steps to the leaf: numbers of fields and elements
}

// Kinds of leaves.
const (
	kindInt    = 'i'
	kindUint   = 'u'
	kindFloat  = 'f'
	kindBool   = 'b'
	kindString = 's'
)

// mostLeaves and mostText bound what a hostile file can ask for.
const (
	mostLeaves = 1 << 14
	mostText   = 1 << 16
)

var errShort = errors.New("it ends in the middle of a value")

// shapeOf lists the leaves of a type. Fields of the names in skip are left out.
func shapeOf(t reflect.Type, skip ...string) *shape {
	s := &shape{}
	s.walk(t, "", nil, skip)
	return s
}

func (s *shape) walk(t reflect.Type, path string, at []int, skip []string) {
	kind := byte(0)
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			name := t.Field(i).Name
			for _, out := range skip {
				if path == "" && name == out {
					name = ""
				}
			}
			if name != "" {
				s.walk(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), append(at[:len(at):len(at)], i), skip)
			}
		}
		return
	case reflect.Array:
		for i := range t.Len() {
			s.walk(t.Elem(), path+"."+strconv.Itoa(i), append(at[:len(at):len(at)], i), skip)
		}
		return
	case reflect.Bool:
		kind = kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		kind = kindInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		kind = kindUint
	case reflect.Float32, reflect.Float64:
		kind = kindFloat
	case reflect.String:
		kind = kindString
	default:
		panic("play: a field of kind " + t.Kind().String() + " cannot be recorded: " + path)
	}
	s.names = append(s.names, path+":"+string(rune(kind)))
	s.at = append(s.at, at)
}

// leaf returns a leaf of a struct.
func (s *shape) leaf(v reflect.Value, i int) reflect.Value {
	for _, step := range s.at[i] {
		if v.Kind() == reflect.Array {
			v = v.Index(step)
		} else {
			v = v.Field(step)
		}
	}
	return v
}

// encoder writes structs of one type, each as its changes.
type encoder struct {
	*shape
	last reflect.Value
}

func newEncoder(s *shape, t reflect.Type) *encoder { return &encoder{s, reflect.New(t).Elem()} }

// add appends the changes of *v since the last one.
func (e *encoder) add(b []byte, v reflect.Value) []byte {
	var changed []byte
	n, gap := 0, 0
	for i := range e.names {
		now, last := e.leaf(v, i), e.leaf(e.last, i)
		if now.Equal(last) {
			gap++
			continue
		}
		changed = binary.AppendUvarint(changed, uint64(gap))
		n, gap = n+1, 0
		switch now.Kind() {
		case reflect.Bool:
			changed = append(changed, boolByte(now.Bool()))
		case reflect.Float32, reflect.Float64:
			changed = binary.LittleEndian.AppendUint64(changed, math.Float64bits(now.Float()))
		case reflect.String:
			text := now.String()
			text = text[:min(len(text), mostText)]
			changed = append(binary.AppendUvarint(changed, uint64(len(text))), text...)
		case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			changed = binary.AppendUvarint(changed, now.Uint())
		default:
			changed = binary.AppendVarint(changed, now.Int())
		}
		last.Set(now)
	}
	return append(binary.AppendUvarint(b, uint64(n)), changed...)
}

func boolByte(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// decoder applies changes that a file of some shape tells of.
type decoder struct {
	own   *shape
	kinds []byte // of the file's leaves
	to    []int  // the file's leaf as one of our own; -1: there is none
}

// newDecoder matches a file's leaves with those of a type.
func newDecoder(own *shape, names []string) (*decoder, error) {
	if len(names) > mostLeaves {
		return nil, fmt.Errorf("%d fields, at most %d are read", len(names), mostLeaves)
	}
	at := map[string]int{}
	for i, name := range own.names {
		at[name] = i
	}
	d := &decoder{own: own}
	for _, name := range names {
		_, kind, ok := strings.Cut(name, ":")
		if !ok || len(kind) != 1 || !strings.Contains("iufbs", kind) {
			return nil, fmt.Errorf("a field %q", name)
		}
		to, known := at[name]
		if !known {
			to = -1
		}
		d.kinds, d.to = append(d.kinds, kind[0]), append(d.to, to)
	}
	return d, nil
}

// apply reads changes into v and returns what comes behind them.
func (d *decoder) apply(b []byte, v reflect.Value) ([]byte, error) {
	in := input{b: b}
	n := in.uvarint()
	at := 0
	for range n {
		gap := in.uvarint()
		if in.err != nil {
			return nil, in.err
		}
		if gap >= uint64(len(d.kinds)-at) {
			return nil, fmt.Errorf("a change of field %d of %d", uint64(at)+gap, len(d.kinds))
		}
		at += int(gap)
		var leaf reflect.Value
		if d.to[at] >= 0 {
			leaf = d.own.leaf(v, d.to[at])
		}
		switch d.kinds[at] {
		case kindInt:
			if x := in.varint(); leaf.IsValid() && !leaf.OverflowInt(x) {
				leaf.SetInt(x)
			}
		case kindUint:
			if x := in.uvarint(); leaf.IsValid() && !leaf.OverflowUint(x) {
				leaf.SetUint(x)
			}
		case kindFloat:
			if x := in.float(); leaf.IsValid() {
				leaf.SetFloat(x)
			}
		case kindBool:
			if x := in.byte(); leaf.IsValid() {
				leaf.SetBool(x != 0)
			}
		case kindString:
			if x := in.text(); leaf.IsValid() {
				leaf.SetString(x)
			}
		}
		at++
		if in.err != nil {
			return nil, in.err
		}
	}
	return in.b, in.err
}

// input takes values off the front of a frame. After an error all are zero.
type input struct {
	b   []byte
	err error
}

func (in *input) take(n uint64) []byte {
	if in.err == nil && n > uint64(len(in.b)) {
		in.err = errShort
	}
	if in.err != nil {
		return nil
	}
	out := in.b[:n]
	in.b = in.b[n:]
	return out
}

func (in *input) uvarint() uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 && in.err == nil {
		in.err = errShort
	}
	if in.err != nil {
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) varint() int64 {
	v := in.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// number is a value that is at most most.
func (in *input) number(most uint64) int {
	v := in.uvarint()
	if v > most && in.err == nil {
		in.err = fmt.Errorf("%d where at most %d makes sense", v, most)
	}
	if in.err != nil {
		return 0
	}
	return int(v)
}

func (in *input) float() float64 {
	if b := in.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (in *input) byte() byte {
	if b := in.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) text() string { return string(in.take(uint64(in.number(mostText)))) }
