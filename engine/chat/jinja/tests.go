package jinja

import "strings"

func (x *test) eval(st *state, sc *scope) any {
	v := x.x.eval(st, sc)
	a := st.evalArgs(&x.args, sc)
	st.at(x.pos)
	return st.test(x.name, v, a)
}

// comparisons are the tests that stand for an operator.
var comparisons = map[string]string{"eq": "==", "equalto": "==", "==": "==", "ne": "!=", "!=": "!=", "lt": "<", "lessthan": "<", "<": "<",
	"le": "<=", "<=": "<=", "gt": ">", "greaterthan": ">", ">": ">", "ge": ">=", ">=": ">=", "in": "in"}

func (st *state) test(name string, v any, a *arguments) bool {
	if op := comparisons[name]; op != "" {
		if len(a.plain) != 1 {
			fail(st.line, "test %s needs one argument", name)
		}
		return st.holds(op, v, a.plain[0])
	}
	_, _, isFloat, isNum := numeric(v)
	_, isBool := v.(bool)
	seq, _ := v.(*List)
	switch name {
	case "defined", "undefined":
		_, missing := v.(Undefined)
		return missing == (name == "undefined")
	case "none":
		return v == nil
	case "true":
		return v == true
	case "false":
		return v == false
	case "boolean":
		return isBool
	case "integer":
		return isNum && !isFloat && !isBool
	case "float":
		return isFloat
	case "number":
		return isNum
	case "string":
		_, ok := v.(string)
		return ok
	case "mapping":
		_, ok := v.(*Dict)
		return ok
	case "sequence", "iterable":
		switch v.(type) {
		case string, *Dict, Undefined:
			return true
		}
		return seq != nil && (name == "iterable" || seq.kind <= isTuple)
	case "callable":
		_, ok := v.(*function)
		return ok
	case "even", "odd", "divisibleby":
		st.mustDefined(v)
		var by any = int64(2)
		if name == "divisibleby" {
			by = st.arg(a, 0, "num")
		}
		rest := st.arithmetic("%", v, by)
		if name == "odd" {
			return st.equal(rest, int64(1), 0)
		}
		return st.equal(rest, int64(0), 0)
	case "lower":
		s := st.str(v)
		return s == strings.ToLower(s) && s != strings.ToUpper(s)
	case "upper":
		s := st.str(v)
		return s == strings.ToUpper(s) && s != strings.ToLower(s)
	case "sameas":
		if len(a.plain) != 1 {
			fail(st.line, "test sameas needs one argument")
		}
		return typeName(v) == typeName(a.plain[0]) && st.equal(v, a.plain[0], 0)
	case "filter":
		return filters[st.str(v)] != nil
	case "escaped":
		return false
	}
	fail(st.line, "unknown test %q", name)
	return false
}
