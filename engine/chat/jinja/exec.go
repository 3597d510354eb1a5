package jinja

import (
	"fmt"
	"strings"
)

// block executes statements until one of them leaves the loop around them.
func (st *state) block(body []stmt, sc *scope) control {
	for _, s := range body {
		if c := s.exec(st, sc); c != normal {
			return c
		}
	}
	return normal
}

// capture executes statements and returns what they wrote.
func (st *state) capture(body []stmt, sc *scope) (string, control) {
	outer := st.out
	st.out = new(strings.Builder)
	c := st.block(body, sc)
	text := st.out.String()
	st.out = outer
	return text, c
}

func (s *data) exec(st *state, _ *scope) control {
	st.write(s.text)
	return normal
}

func (s *output) exec(st *state, sc *scope) control {
	text := st.str(s.x.eval(st, sc))
	st.at(s.pos)
	st.write(text)
	return normal
}

func (s *ifStmt) exec(st *state, sc *scope) control {
	for i, cond := range s.conds {
		st.at(s.pos)
		if truth(cond.eval(st, sc)) {
			return st.block(s.bodies[i], sc)
		}
	}
	return st.block(s.other, sc)
}

func (s *jump) exec(st *state, _ *scope) control {
	st.at(s.pos)
	return s.how
}

func (s *scoped) exec(st *state, sc *scope) control { return st.block(s.body, sc.child()) }

func (s *setStmt) exec(st *state, sc *scope) control {
	st.assign(&s.target, s.x.eval(st, sc), sc)
	return normal
}

func (s *setBlock) exec(st *state, sc *scope) control {
	text, c := st.capture(s.body, sc.child())
	st.assign(&s.target, st.filtered(s.filters, text, sc), sc)
	return c
}

func (s *filterBlock) exec(st *state, sc *scope) control {
	text, c := st.capture(s.body, sc.child())
	st.write(st.str(st.filtered(s.filters, text, sc)))
	return c
}

func (s *withStmt) exec(st *state, sc *scope) control {
	inner := sc.child()
	for i := range s.targets {
		// Jinja evaluates all values outside, before the first name is set.
		st.assign(&s.targets[i], s.values[i].eval(st, sc), inner)
	}
	return st.block(s.body, inner)
}

// assign gives a value to a target.
func (st *state) assign(t *target, v any, sc *scope) {
	st.at(t.pos)
	switch {
	case t.many != nil:
		items := st.items(v)
		if len(items) != len(t.many) {
			fail(st.line, "%d values for %d names", len(items), len(t.many))
		}
		for i := range t.many {
			st.assign(&t.many[i], items[i], sc)
		}
	case t.attr != "":
		v0, ok := sc.get(t.name)
		ns, isNS := v0.(*Namespace)
		if !ok || !isNS {
			fail(st.line, "%s is not a namespace: its attribute %s cannot be set", t.name, t.attr)
		}
		ns.attrs.set(t.attr, v)
	default:
		sc.set(t.name, v)
	}
}

// loop is the variable loop inside a for.
type loop struct {
	items   []any
	i       int
	depth   int
	again   func(v any, depth int) any // of a recursive loop
	changed []any
	seen    bool
}

// attr is an attribute of the variable loop.
func (l *loop) attr(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1), true
	case "index0":
		return int64(l.i), true
	case "revindex":
		return int64(n - l.i), true
	case "revindex0":
		return int64(n - l.i - 1), true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth), true
	case "depth0":
		return int64(l.depth - 1), true
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1], true
		}
		return Undefined{"there is no previous item"}, true
	case "nextitem":
		if l.i+1 < n {
			return l.items[l.i+1], true
		}
		return Undefined{"there is no next item"}, true
	case "cycle":
		return &function{name, func(st *state, a *arguments) any {
			if len(a.plain) == 0 {
				fail(st.line, "nothing to cycle through")
			}
			return a.plain[l.i%len(a.plain)]
		}}, true
	case "changed":
		return &function{name, func(st *state, a *arguments) any {
			same := l.seen && st.equal(&List{Items: l.changed}, &List{Items: a.plain}, 0)
			l.changed, l.seen = a.plain, true
			return !same
		}}, true
	}
	return nil, false
}

func (s *forStmt) exec(st *state, sc *scope) control {
	s.run(st, sc, s.iter.eval(st, sc), 1)
	return normal
}

// run executes the loop over a value. Each turn has a scope of its own.
func (s *forStmt) run(st *state, sc *scope, over any, depth int) {
	st.at(s.pos)
	items := st.items(over)
	// The body may change the list that it goes over.
	st.alloc(16 * len(items))
	items = append([]any(nil), items...)
	if s.cond != nil {
		kept := items[:0]
		for _, item := range items {
			inner := sc.child()
			st.assign(&s.target, item, inner)
			if truth(s.cond.eval(st, inner)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	l := &loop{items: items, depth: depth}
	if s.recursive {
		l.again = func(v any, depth int) any {
			defer st.enter()()
			outer := st.out
			st.out = new(strings.Builder)
			s.run(st, sc, v, depth)
			text := st.out.String()
			st.out = outer
			return text
		}
	}
	for l.i = range items {
		st.charge(4) // the scope of a turn
		inner := sc.child()
		inner.set("loop", l)
		st.assign(&s.target, items[l.i], inner)
		if st.block(s.body, inner) == broke {
			return
		}
	}
	if len(items) == 0 {
		st.block(s.other, sc.child())
	}
}

// arguments are the evaluated arguments of a call.
type arguments struct {
	plain []any
	names []string
	named []any
}

// evalArgs evaluates the arguments of a call.
func (st *state) evalArgs(a *args, sc *scope) *arguments {
	out := &arguments{plain: evalAll(st, sc, a.plain), names: a.names, named: evalAll(st, sc, a.named)}
	if a.star != nil {
		out.plain = append(out.plain, st.items(a.star.eval(st, sc))...)
	}
	if a.kwStar != nil {
		d, ok := a.kwStar.eval(st, sc).(*Dict)
		if !ok {
			fail(st.line, "** needs a dict")
		}
		out.names = append([]string(nil), out.names...)
		for i, k := range d.keys {
			name, ok := k.(string)
			if !ok {
				fail(st.line, "** needs strings as keys")
			}
			out.names = append(out.names, name)
			out.named = append(out.named, d.vals[i])
		}
	}
	return out
}

// take returns the argument at a place or with a name, if it was given.
func (a *arguments) take(i int, name string) (any, bool) {
	if i < len(a.plain) {
		return a.plain[i], true
	}
	for j, n := range a.names {
		if n == name {
			return a.named[j], true
		}
	}
	return nil, false
}

// check fails if there are more plain arguments than max, or a name that is none
// of those known.
func (a *arguments) check(st *state, what string, known ...string) {
	if len(a.plain) > len(known) {
		fail(st.line, "%s takes at most %d arguments, not %d", what, len(known), len(a.plain))
	}
	for _, n := range a.names {
		found := false
		for _, k := range known {
			found = found || k == n
		}
		if !found {
			fail(st.line, "%s has no argument %s", what, n)
		}
	}
}

func (x *call) eval(st *state, sc *scope) any {
	fn := x.fn.eval(st, sc)
	a := st.evalArgs(&x.args, sc)
	st.at(x.pos)
	return st.call(fn, a)
}

// call calls what can be called: a function, or the variable loop of a recursive
// loop.
func (st *state) call(fn any, a *arguments) any {
	switch fn := fn.(type) {
	case *function:
		return fn.call(st, a)
	case *loop:
		if fn.again == nil {
			fail(st.line, "the loop is not recursive")
		}
		if v, ok := a.take(0, "iterable"); ok {
			return fn.again(v, fn.depth+1)
		}
		fail(st.line, "loop() needs what to go over")
	}
	st.mustDefined(fn)
	fail(st.line, "%s cannot be called", typeName(fn))
	return nil
}

func (s *macroStmt) exec(st *state, sc *scope) control {
	st.at(s.pos)
	sc.set(s.def.name, st.macro(s.def, sc))
	return normal
}

func (s *callBlock) exec(st *state, sc *scope) control {
	st.at(s.pos)
	a := st.evalArgs(&s.call.args, sc)
	a.names = append(append([]string(nil), a.names...), "caller")
	a.named = append(a.named, st.macro(s.caller, sc))
	st.write(st.str(st.call(s.call.fn.eval(st, sc), a)))
	return normal
}

// macro makes the function of a macro. Its body sees the names of the place where
// it was defined.
func (st *state) macro(def *macroDef, sc *scope) *function {
	return &function{def.name, func(st *state, a *arguments) any {
		defer st.enter()()
		inner := sc.child()
		st.bind(def, inner, a)
		text, _ := st.capture(def.body, inner)
		return text
	}}
}

// bind gives the arguments of a call to a macro's parameters. What is left goes
// to varargs and kwargs.
func (st *state) bind(def *macroDef, inner *scope, a *arguments) {
	kwargs := NewDict()
	for i, n := range a.names {
		kwargs.set(n, a.named[i])
	}
	firstDefault := len(def.params) - len(def.defaults)
	for i, p := range def.params {
		v, named := kwargs.get(p)
		switch {
		case i < len(a.plain):
			if named {
				fail(st.line, "macro %s gets its argument %s twice", def.name, p)
			}
			v = a.plain[i]
		case named:
			kwargs.remove(st, p)
		case i >= firstDefault:
			v = def.defaults[i-firstDefault].eval(st, inner)
		default:
			v = Undefined{fmt.Sprintf("parameter %q was not provided", p)}
		}
		inner.set(p, v)
	}
	if caller, ok := kwargs.get("caller"); ok {
		kwargs.remove(st, "caller")
		inner.set("caller", caller)
	}
	rest := &List{kind: isTuple}
	if len(a.plain) > len(def.params) {
		rest.Items = a.plain[len(def.params):]
	}
	inner.set("varargs", rest)
	inner.set("kwargs", kwargs)
}
