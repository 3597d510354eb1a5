package jinja

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The values of the language are Python's:
//
//	nil            None
//	bool           bool
//	int64          int (errors where it overflows)
//	float64        float
//	string         str
//	*List          list, tuple, and what filters and methods return to iterate over
//	*Dict          dict
//	*Namespace     namespace(...)
//	Undefined      a variable or an attribute that is not there
//	*function      anything that can be called

// Undefined stands for what is not there. It may be printed (as nothing), tested
// and iterated over; everything else with it is an error.
type Undefined struct{ what string } // such as "'tools' is undefined"

// seqKind tells the sequences apart.
type seqKind uint8

const (
	isList  seqKind = iota
	isTuple         // cannot be changed, may be a key
	isView          // dict.items(): has a length, no index
	isIter          // map, select: always true, neither length nor index
)

// List is a sequence.
type List struct {
	Items []any
	kind  seqKind
}

// NewList returns a list of these items.
func NewList(items ...any) *List { return &List{Items: items} }

// Dict is a dict: it keeps the order in which keys were first set.
type Dict struct {
	keys, vals []any
	index      map[any]int
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Clone returns a copy with the same values.
func (d *Dict) Clone() *Dict {
	return &Dict{keys: slices.Clone(d.keys), vals: slices.Clone(d.vals), index: maps.Clone(d.index)}
}

// Get returns the value of a key.
func (d *Dict) Get(key string) (any, bool) { return d.get(key) }

// Set sets the value of a key.
func (d *Dict) Set(key string, value any) { d.set(key, value) }

func (d *Dict) get(key any) (any, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// set takes a key as hashKey returns it; original is how the key prints.
func (d *Dict) setAs(key, original, value any) {
	if i, ok := d.index[key]; ok {
		d.vals[i] = value
		return
	}
	d.index[key] = len(d.keys)
	d.keys = append(d.keys, original)
	d.vals = append(d.vals, value)
}

func (d *Dict) set(key string, value any) { d.setAs(key, key, value) }

// remove takes an entry out.
func (d *Dict) remove(st *state, key any) {
	i, ok := d.index[key]
	if !ok {
		return
	}
	delete(d.index, key)
	d.keys = append(d.keys[:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i], d.vals[i+1:]...)
	st.charge(len(d.keys))
	for k, at := range d.index {
		if at > i {
			d.index[k] = at - 1
		}
	}
}

// Namespace is an object whose attributes a template may set.
type Namespace struct{ attrs *Dict }

// function is a macro, a method bound to its object, or a global.
type function struct {
	name string
	call func(st *state, a *arguments) any
}

// tupleKey stands for a tuple as a key.
type tupleKey struct{ text string }

// hashKey returns a value in the form in which it is a key: 1, 1.0 and True are
// the same key.
func (st *state) hashKey(v any) any {
	switch v := v.(type) {
	case nil, int64:
		return v
	case string:
		return st.see(v)
	case bool:
		return asInt(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v)
		}
		return v
	case *List:
		if v.kind == isTuple {
			return tupleKey{st.repr(v)}
		}
	}
	fail(st.line, "%s cannot be a key", typeName(v))
	return nil
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// typeName says what a value is, in a message.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64:
		return "an int"
	case float64:
		return "a float"
	case string:
		return "a string"
	case *List:
		return [...]string{"a list", "a tuple", "a dict view", "a generator"}[v.kind]
	case *Dict:
		return "a dict"
	case *Namespace:
		return "a namespace"
	case *loop:
		return "the loop"
	case *function:
		return "a function"
	case Undefined:
		return "undefined"
	}
	return "an unknown value"
}

// truth is Python's bool().
func truth(v any) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return v.kind == isIter || len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// str is Python's str(); undefined prints as nothing.
func (st *state) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Undefined:
		return ""
	}
	return st.repr(v)
}

// repr is Python's repr().
func (st *state) repr(v any) string {
	var b strings.Builder
	st.writeRepr(&b, v, 0)
	st.alloc(b.Len())
	return b.String()
}

// maxValueDepth bounds lists and dicts inside each other where they are printed
// or compared: a list may contain itself.
const maxValueDepth = 400

func (st *state) deeper(depth int) int {
	if depth++; depth > maxValueDepth {
		fail(st.line, "a value nested deeper than %d levels", maxValueDepth)
	}
	return depth
}

func (st *state) writeRepr(b *strings.Builder, v any, depth int) {
	st.step()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		st.writeQuoted(b, v)
	case *List:
		ends := "[]"
		if v.kind == isTuple {
			ends = "()"
		}
		st.writeItems(b, ends, v.Items, nil, st.deeper(depth))
	case *Dict:
		st.writeItems(b, "{}", v.keys, v.vals, st.deeper(depth))
	case *Namespace:
		b.WriteString("<Namespace ")
		st.writeItems(b, "{}", v.attrs.keys, v.attrs.vals, st.deeper(depth))
		b.WriteByte('>')
	case Undefined:
		b.WriteString("Undefined")
	default:
		b.WriteString("<" + typeName(v) + ">")
	}
	st.fits(b.Len())
}

// writeItems writes items, with the values of a dict behind its keys.
func (st *state) writeItems(b *strings.Builder, ends string, items, vals []any, depth int) {
	b.WriteByte(ends[0])
	for i, item := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		st.writeRepr(b, item, depth)
		if vals != nil {
			b.WriteString(": ")
			st.writeRepr(b, vals[i], depth)
		}
	}
	if ends == "()" && len(items) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(ends[1])
}

// formatFloat is Python's repr of a float: the shortest text that reads back
// equal, with an exponent below 1e-4 and from 1e16 on.
func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// writeQuoted is Python's repr of a str.
func (st *state) writeQuoted(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case st.isStandIn(r):
			b.WriteRune(r)
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	b.WriteByte(quote)
}

func hex(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(width-len(s), 0)) + s
}

// length is Python's len() of what has one.
func (st *state) length(v any) int {
	switch v := v.(type) {
	case string:
		st.charge(len(v) / 16)
		return utf8.RuneCountInString(v)
	case *List:
		if v.kind != isIter {
			return len(v.Items)
		}
	case *Dict:
		return v.Len()
	case Undefined:
		return 0
	}
	fail(st.line, "%s has no length", typeName(v))
	return 0
}

// items returns what iterating over a value gives: items, keys or characters. The
// slice must not be changed.
func (st *state) items(v any) []any {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Dict:
		return v.keys
	case Undefined:
		return nil
	case string:
		st.alloc(16 * len(v))
		all := make([]any, 0, len(v))
		for _, r := range v {
			all = append(all, string(r))
		}
		return all
	}
	fail(st.line, "%s cannot be iterated over", typeName(v))
	return nil
}

// number returns a bool, an int or a float as int or float.
func numeric(v any) (i int64, f float64, isFloat, ok bool) {
	switch v := v.(type) {
	case bool:
		return asInt(v), 0, false, true
	case int64:
		return v, 0, false, true
	case float64:
		return 0, v, true, true
	}
	return 0, 0, false, false
}

// equal is Python's ==.
func (st *state) equal(a, b any, depth int) bool {
	st.step()
	ai, af, aFloat, aNum := numeric(a)
	bi, bf, bFloat, bNum := numeric(b)
	if aNum != bNum {
		return false
	}
	if aNum {
		switch {
		case !aFloat && !bFloat:
			return ai == bi
		case !aFloat:
			af = float64(ai)
		case !bFloat:
			bf = float64(bi)
		}
		return af == bf
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		st.charge(min(len(a), len(b)) / 64)
		return ok && st.same(a, b)
	case *List:
		b, ok := b.(*List)
		if !ok || a.kind != b.kind || len(a.Items) != len(b.Items) {
			return false
		}
		depth = st.deeper(depth)
		for i := range a.Items {
			if !st.equal(a.Items[i], b.Items[i], depth) {
				return false
			}
		}
		return true
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		depth = st.deeper(depth)
		for key, i := range a.index {
			if v, ok := b.get(key); !ok || !st.equal(a.vals[i], v, depth) {
				return false
			}
		}
		return true
	case Undefined:
		_, ok := b.(Undefined)
		return ok
	}
	return a == b // pointers
}

// less is Python's <.
func (st *state) less(a, b any) bool {
	st.step()
	ai, af, aFloat, aNum := numeric(a)
	bi, bf, bFloat, bNum := numeric(b)
	if aNum && bNum {
		switch {
		case !aFloat && !bFloat:
			return ai < bi
		case !aFloat:
			af = float64(ai)
		case !bFloat:
			bf = float64(bi)
		}
		return af < bf
	}
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			st.charge(min(len(a), len(b)) / 64)
			return st.see(a) < st.see(b) // UTF-8 keeps the order of code points
		}
	case *List:
		if b, ok := b.(*List); ok && a.kind == b.kind {
			for i := range min(len(a.Items), len(b.Items)) {
				if !st.equal(a.Items[i], b.Items[i], 0) {
					return st.less(a.Items[i], b.Items[i])
				}
			}
			return len(a.Items) < len(b.Items)
		}
	}
	st.mustDefined(a)
	st.mustDefined(b)
	fail(st.line, "%s and %s have no order", typeName(a), typeName(b))
	return false
}

// mustDefined fails on what is not there.
func (st *state) mustDefined(v any) {
	if u, ok := v.(Undefined); ok {
		fail(st.line, "%s", u.what)
	}
}

// contains is Python's "a in b".
func (st *state) contains(b, a any) bool {
	switch b := b.(type) {
	case string:
		s, ok := a.(string)
		if !ok {
			st.mustDefined(a)
			fail(st.line, "%s cannot be in a string", typeName(a))
		}
		st.charge(len(b) / 16)
		return strings.Contains(st.see(b), st.see(s))
	case *Dict:
		_, ok := b.get(st.hashKey(a))
		return ok
	}
	for _, item := range st.items(b) {
		if st.equal(item, a, 0) {
			return true
		}
	}
	return false
}
