package jinja

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// state is one rendering.
type state struct {
	ctx      context.Context
	limits   Limits
	now      time.Time
	standIns map[rune]rune
	out      *strings.Builder // where output goes: the text, or a macro's result
	line     int              // of the node that is evaluated
	steps    int
	polled   int // steps when ctx was last looked at
	bytes    int
	depth    int
}

// pollSteps is how many steps may pass between looks at the context: well under a
// millisecond.
const pollSteps = 4096

// poll ends the rendering if its context has ended.
func (st *state) poll() {
	st.polled = st.steps
	if err := st.ctx.Err(); err != nil {
		panic(stopped{err})
	}
}

// step counts one evaluated node.
func (st *state) step() { st.charge(1) }

// charge counts work worth n evaluated nodes.
func (st *state) charge(n int) {
	if st.steps += n; st.steps > st.limits.Steps {
		fail(st.line, "stopped after %d steps", st.limits.Steps)
	}
	if st.steps-st.polled >= pollSteps {
		st.poll()
	}
}

// fits fails if a text of n bytes is too long.
func (st *state) fits(n int) {
	if n > st.limits.Text {
		fail(st.line, "stopped at a text of more than %d bytes", st.limits.Text)
	}
}

// alloc counts n bytes that are about to be made.
func (st *state) alloc(n int) {
	st.fits(n)
	st.charge(n / 64)
	if st.bytes += n; st.bytes > st.limits.Bytes {
		fail(st.line, "stopped after making %d bytes of text and lists", st.limits.Bytes)
	}
}

// write adds to the output.
func (st *state) write(s string) {
	st.fits(st.out.Len() + len(s))
	st.alloc(len(s))
	st.out.WriteString(s)
}

// enter counts a level of calls until the function that it returns is called.
func (st *state) enter() func() {
	if st.depth++; st.depth > st.limits.Depth {
		fail(st.line, "macros or loops call each other deeper than %d levels", st.limits.Depth)
	}
	return func() { st.depth-- }
}

// scope holds variables; a name that it does not have is looked up in its parent.
// Most scopes have two or three, so they are a list; a large one gets an index.
type scope struct {
	vars   []variable
	index  map[string]int // of vars; nil while there are few
	parent *scope
}

type variable struct {
	name  string
	value any
}

// fewVars is the number of variables up to which a scope has no index.
const fewVars = 16

func (sc *scope) child() *scope { return &scope{parent: sc} }

// find returns the place of a name in this scope alone, or -1.
func (sc *scope) find(name string) int {
	if sc.index != nil {
		if i, ok := sc.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range sc.vars {
		if sc.vars[i].name == name {
			return i
		}
	}
	return -1
}

func (sc *scope) get(name string) (any, bool) {
	for ; sc != nil; sc = sc.parent {
		if i := sc.find(name); i >= 0 {
			return sc.vars[i].value, true
		}
	}
	return nil, false
}

func (sc *scope) set(name string, v any) {
	if i := sc.find(name); i >= 0 {
		sc.vars[i].value = v
		return
	}
	if sc.index != nil {
		sc.index[name] = len(sc.vars)
	}
	sc.vars = append(sc.vars, variable{name, v})
	if sc.index == nil && len(sc.vars) > fewVars {
		sc.index = make(map[string]int, 2*len(sc.vars))
		for i := range sc.vars {
			sc.index[sc.vars[i].name] = i
		}
	}
}

// at moves the rendering to a node.
func (st *state) at(p pos) {
	st.line = p.line
	st.step()
}

func (x *constant) eval(*state, *scope) any { return x.value }

func (x *name) eval(st *state, sc *scope) any {
	st.at(x.pos)
	if v, ok := sc.get(x.text); ok {
		return v
	}
	return Undefined{fmt.Sprintf("%q is undefined", x.text)}
}

func evalAll(st *state, sc *scope, all []expr) []any {
	st.alloc(16 * len(all))
	vals := make([]any, len(all))
	for i, x := range all {
		vals[i] = x.eval(st, sc)
	}
	return vals
}

func (x *list) eval(st *state, sc *scope) any { return &List{Items: evalAll(st, sc, x.items)} }
func (x *tuple) eval(st *state, sc *scope) any {
	return &List{Items: evalAll(st, sc, x.items), kind: isTuple}
}

func (x *dict) eval(st *state, sc *scope) any {
	st.alloc(64 * len(x.keys))
	d := NewDict()
	for i := range x.keys {
		key := x.keys[i].eval(st, sc)
		d.setAs(st.hashKey(key), key, x.vals[i].eval(st, sc))
	}
	return d
}

func (x *attr) eval(st *state, sc *scope) any {
	v := x.x.eval(st, sc)
	st.at(x.pos)
	return st.attr(v, x.name)
}

// attr is v.name: a method, else an entry of a dict.
func (st *state) attr(v any, name string) any {
	switch v := v.(type) {
	case *Namespace:
		if a, ok := v.attrs.get(name); ok {
			return a
		}
	case *loop:
		if a, ok := v.attr(name); ok {
			return a
		}
	case *Dict:
		if m := dictMethods[name]; m != nil {
			return &function{name, func(st *state, a *arguments) any { return m(st, v, a) }}
		}
		if a, ok := v.get(name); ok {
			return a
		}
	case *List:
		if m := listMethods[name]; m != nil && v.kind == isList {
			return &function{name, func(st *state, a *arguments) any { return m(st, v, a) }}
		}
	case string:
		if m := stringMethods[name]; m != nil {
			return &function{name, func(st *state, a *arguments) any { return m(st, v, a) }}
		}
	}
	st.mustDefined(v)
	return Undefined{fmt.Sprintf("%s has no attribute %q", typeName(v), name)}
}

func (x *index) eval(st *state, sc *scope) any {
	v, key := x.x.eval(st, sc), x.key.eval(st, sc)
	st.at(x.pos)
	return st.index(v, key)
}

// index is v[key]: an entry, an item, a character, else an attribute.
func (st *state) index(v, key any) any {
	st.mustDefined(v)
	switch v := v.(type) {
	case *Dict:
		if _, ok := key.(Undefined); ok {
			break
		}
		if a, ok := v.get(st.hashKey(key)); ok {
			return a
		}
	case *List:
		if i, _, isFloat, ok := numeric(key); ok && !isFloat && v.kind <= isTuple {
			if i < 0 {
				i += int64(len(v.Items))
			}
			if i >= 0 && i < int64(len(v.Items)) {
				return v.Items[i]
			}
			return Undefined{fmt.Sprintf("%s has no item %d", typeName(v), i)}
		}
	case string:
		if i, _, isFloat, ok := numeric(key); ok && !isFloat {
			return st.character(v, i)
		}
	}
	if name, ok := key.(string); ok {
		return st.attr(v, name)
	}
	return Undefined{fmt.Sprintf("%s has no item %s", typeName(v), st.repr(key))}
}

// character is the i-th character of a string.
func (st *state) character(s string, i int64) any {
	st.charge(len(s) / 16)
	n := int64(utf8.RuneCountInString(s))
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return Undefined{fmt.Sprintf("a string of %d characters has no item %d", n, i)}
	}
	if n == int64(len(s)) {
		return s[i : i+1]
	}
	for at := range s {
		if i == 0 {
			_, w := utf8.DecodeRuneInString(s[at:])
			return s[at : at+w]
		}
		i--
	}
	return ""
}

func (x *slice) eval(st *state, sc *scope) any {
	v := x.x.eval(st, sc)
	var bounds [3]*int64
	for i, part := range x.parts {
		if part == nil {
			continue
		}
		p := part.eval(st, sc)
		if p == nil {
			continue
		}
		n, _, isFloat, ok := numeric(p)
		st.at(x.pos)
		if !ok || isFloat {
			st.mustDefined(p)
			fail(st.line, "a slice needs integers, not %s", typeName(p))
		}
		bounds[i] = &n
	}
	st.at(x.pos)
	switch v := v.(type) {
	case *List:
		if v.kind <= isTuple {
			var items []any
			st.alloc(16 * len(v.Items))
			st.eachIndex(len(v.Items), bounds, func(i int) { items = append(items, v.Items[i]) })
			return &List{Items: items, kind: v.kind}
		}
	case string:
		st.alloc(4 * len(v))
		runes := []rune(v)
		var b strings.Builder
		st.eachIndex(len(runes), bounds, func(i int) { b.WriteRune(runes[i]) })
		return b.String()
	}
	st.mustDefined(v)
	fail(st.line, "%s cannot be sliced", typeName(v))
	return nil
}

// eachIndex calls f for the indices of start:stop:step in a sequence of n, as
// Python's slice.indices does.
func (st *state) eachIndex(n int, bounds [3]*int64, f func(int)) {
	step, size := int64(1), int64(n)
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		fail(st.line, "a slice's step is 0")
	}
	lo, hi := int64(0), size // the range of a bound
	if step < 0 {
		lo, hi = -1, size-1
	}
	bound := func(p *int64, def int64) int64 {
		if p == nil {
			return def
		}
		v := *p
		if v < 0 {
			v += size
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		for i, stop := bound(bounds[0], lo), bound(bounds[1], hi); i < stop; i += step {
			f(int(i))
			if step > size {
				break // i+step could overflow
			}
		}
		return
	}
	for i, stop := bound(bounds[0], hi), bound(bounds[1], lo); i > stop; i += step {
		f(int(i))
		if step < -size {
			break
		}
	}
}

func (x *condExpr) eval(st *state, sc *scope) any {
	st.at(x.pos)
	switch {
	case truth(x.cond.eval(st, sc)):
		return x.then.eval(st, sc)
	case x.other != nil:
		return x.other.eval(st, sc)
	}
	return Undefined{"the value of an if without an else is undefined"}
}

func (x *logic) eval(st *state, sc *scope) any {
	st.at(x.pos)
	left := x.left.eval(st, sc)
	if truth(left) == x.or {
		return left
	}
	return x.right.eval(st, sc)
}

func (x *not) eval(st *state, sc *scope) any {
	st.at(x.pos)
	return !truth(x.x.eval(st, sc))
}

func (x *compare) eval(st *state, sc *scope) any {
	left := x.first.eval(st, sc)
	for _, o := range x.ops {
		right := o.x.eval(st, sc)
		st.at(x.pos)
		if !st.holds(o.op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (st *state) holds(op string, a, b any) bool {
	switch op {
	case "==":
		return st.equal(a, b, 0)
	case "!=":
		return !st.equal(a, b, 0)
	case "<":
		return st.less(a, b)
	case ">":
		return st.less(b, a)
	case "<=":
		return !st.less(b, a)
	case ">=":
		return !st.less(a, b)
	case "in":
		return st.contains(b, a)
	}
	return !st.contains(b, a)
}

func (x *unary) eval(st *state, sc *scope) any {
	v := x.x.eval(st, sc)
	st.at(x.pos)
	i, f, isFloat, ok := numeric(v)
	switch {
	case !ok:
		st.mustDefined(v)
		fail(st.line, "%s has no sign", typeName(v))
	case isFloat && x.op == "-":
		return -f
	case isFloat:
		return f
	case x.op == "-":
		if i == math.MinInt64 {
			fail(st.line, "integer overflow")
		}
		return -i
	}
	return i
}

func (x *binary) eval(st *state, sc *scope) any {
	left, right := x.left.eval(st, sc), x.right.eval(st, sc)
	st.at(x.pos)
	if x.op == "~" {
		a, b := st.str(left), st.str(right)
		st.alloc(len(a) + len(b))
		return a + b
	}
	st.mustDefined(left)
	st.mustDefined(right)
	return st.arithmetic(x.op, left, right)
}
