package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// FromJSON reads a value: an object becomes a *Dict in the order of its members,
// an array a *List, a number without fraction and exponent an int64.
func FromJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, fmt.Errorf("json: offset %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("json: offset %d: more behind the value", d.InputOffset())
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxValueDepth)
	}
	t, err := d.Token()
	if err == io.EOF {
		return nil, errors.New("unexpected end")
	}
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		return strconv.ParseFloat(t.String(), 64)
	case json.Delim:
		if t == '[' {
			l := &List{}
			for d.More() {
				v, err := readJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := d.Token()
			return l, err
		}
		obj := NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			obj.Set(key.(string), v) // the decoder lets no other key through
		}
		_, err := d.Token()
		return obj, err
	}
	return t, nil // nil, bool, string
}

func filterFromJSON(st *state, v any, a *arguments) any {
	s := st.str(v)
	st.alloc(16 * len(s))
	for r := range st.standIns {
		if r < ' ' { // JSON knows control characters as escapes only
			s = strings.ReplaceAll(s, string(r), `\u`+hex(r, 4))
		}
	}
	out, err := FromJSON([]byte(s))
	if err != nil {
		fail(st.line, "from_json: %v", err)
	}
	return out
}

// encoder writes JSON as Python's json.dumps does.
type encoder struct {
	st       *state
	b        strings.Builder
	ascii    bool
	sorted   bool
	indent   string // one level's; lines are broken if broken is set
	broken   bool
	itemSep  string
	valueSep string
}

func filterToJSON(st *state, v any, a *arguments) any {
	e := &encoder{st: st, itemSep: ", ", valueSep: ": "}
	if ascii, ok := a.take(0, "ensure_ascii"); ok {
		e.ascii = truth(ascii)
	}
	if indent, ok := a.take(1, "indent"); ok && indent != nil {
		e.broken, e.itemSep = true, ","
		if s, ok := indent.(string); ok {
			e.indent = s
		} else {
			n := min(max(st.intArg(a, 1, "indent", 0), 0), 1<<20)
			e.indent = strings.Repeat(" ", int(n))
		}
	}
	if seps, ok := a.take(2, "separators"); ok && seps != nil {
		items := st.items(seps)
		if len(items) != 2 {
			fail(st.line, "separators needs two strings")
		}
		e.itemSep, e.valueSep = st.str(items[0]), st.str(items[1])
	}
	e.sorted = boolArg(a, 3, "sort_keys")
	e.value(v, 0)
	st.alloc(e.b.Len())
	return e.b.String()
}

func (e *encoder) value(v any, depth int) {
	e.st.step()
	switch v := v.(type) {
	case nil:
		e.b.WriteString("null")
	case bool:
		e.b.WriteString(strconv.FormatBool(v))
	case int64:
		e.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		e.b.WriteString(jsonFloat(v))
	case string:
		e.str(v)
	case *List:
		if v.kind > isTuple {
			fail(e.st.line, "tojson: %s is not possible", typeName(v))
		}
		e.container('[', ']', len(v.Items), depth, func(i, depth int) { e.value(v.Items[i], depth) })
	case *Dict:
		e.dict(v, depth)
	default:
		e.st.mustDefined(v)
		fail(e.st.line, "tojson: %s is not possible", typeName(v))
	}
	e.st.fits(e.b.Len())
}

func (e *encoder) dict(d *Dict, depth int) {
	order := make([]any, d.Len())
	for i := range order {
		order[i] = int64(i)
	}
	if e.sorted {
		order = e.st.sortBy(order, false, func(i any) any { return d.keys[i.(int64)] })
	}
	e.container('{', '}', len(order), depth, func(i, depth int) {
		at := order[i].(int64)
		switch k := d.keys[at].(type) {
		case string:
			e.str(k)
		case nil:
			e.str("null")
		case bool:
			e.str(strconv.FormatBool(k))
		case int64:
			e.str(strconv.FormatInt(k, 10))
		case float64:
			e.str(jsonFloat(k))
		default:
			fail(e.st.line, "tojson: %s cannot be a key", typeName(k))
		}
		e.b.WriteString(e.valueSep)
		e.value(d.vals[at], depth)
	})
}

// container writes n items between brackets.
func (e *encoder) container(open, end byte, n, depth int, item func(i, depth int)) {
	depth = e.st.deeper(depth)
	e.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			e.b.WriteString(e.itemSep)
		}
		e.line(depth)
		item(i, depth)
	}
	if n > 0 {
		e.line(depth - 1)
	}
	e.b.WriteByte(end)
}

// line begins a line, if lines are broken.
func (e *encoder) line(depth int) {
	if !e.broken {
		return
	}
	e.st.fits(e.b.Len() + depth*len(e.indent))
	e.b.WriteByte('\n')
	for range depth {
		e.b.WriteString(e.indent)
	}
}

// str writes a string. Only what JSON does not allow is escaped, and with ascii
// all beyond ASCII too.
func (e *encoder) str(s string) {
	e.st.alloc(len(s))
	e.b.WriteByte('"')
	for _, r := range s {
		switch {
		case e.st.isStandIn(r):
			e.b.WriteRune(r)
		case r == '"' || r == '\\':
			e.b.WriteByte('\\')
			e.b.WriteRune(r)
		case r == '\n':
			e.b.WriteString(`\n`)
		case r == '\r':
			e.b.WriteString(`\r`)
		case r == '\t':
			e.b.WriteString(`\t`)
		case r == '\b':
			e.b.WriteString(`\b`)
		case r == '\f':
			e.b.WriteString(`\f`)
		case r < 0x20 || e.ascii && r >= 0x7F && r < 0x10000:
			e.b.WriteString(`\u` + hex(r, 4))
		case e.ascii && r >= 0x10000:
			r -= 0x10000
			e.b.WriteString(`\u` + hex(0xD800+r>>10, 4) + `\u` + hex(0xDC00+r&0x3FF, 4))
		default:
			e.b.WriteRune(r)
		}
	}
	e.b.WriteByte('"')
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}
