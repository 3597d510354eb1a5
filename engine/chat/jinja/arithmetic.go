package jinja

import (
	"math"
	"strings"
)

// arithmetic is one of + - * / // % ** between two values that are there.
func (st *state) arithmetic(op string, a, b any) any {
	ai, af, aFloat, aNum := numeric(a)
	bi, bf, bFloat, bNum := numeric(b)
	switch {
	case aNum && bNum && !aFloat && !bFloat:
		return st.integers(op, ai, bi)
	case aNum && bNum:
		if !aFloat {
			af = float64(ai)
		}
		if !bFloat {
			bf = float64(bi)
		}
		return st.floats(op, af, bf)
	case op == "*" && aNum && !aFloat:
		return st.repeat(b, ai)
	case op == "*" && bNum && !bFloat:
		return st.repeat(a, bi)
	}
	switch a := a.(type) {
	case string:
		if op == "%" {
			return st.percent(a, b)
		}
		if b, ok := b.(string); ok && op == "+" {
			st.alloc(len(a) + len(b))
			return a + b
		}
	case *List:
		if b, ok := b.(*List); ok && op == "+" && a.kind == b.kind && a.kind <= isTuple {
			st.alloc(16 * (len(a.Items) + len(b.Items)))
			return &List{Items: append(append([]any(nil), a.Items...), b.Items...), kind: a.kind}
		}
	}
	fail(st.line, "%s %s %s is not possible", typeName(a), op, typeName(b))
	return nil
}

func (st *state) integers(op string, a, b int64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		fail(st.line, "division by zero")
	}
	switch op {
	case "/":
		return float64(a) / float64(b)
	case "+", "-":
		if op == "-" {
			if b == math.MinInt64 {
				fail(st.line, "integer overflow")
			}
			b = -b
		}
		if sum := a + b; (sum > a) == (b > 0) {
			return sum
		}
	case "*":
		if p, ok := multiply(a, b); ok {
			return p
		}
	case "//", "%": // rounded down, as in Python
		if b == -1 {
			if op == "%" {
				return int64(0)
			}
			if a != math.MinInt64 {
				return -a
			}
			break
		}
		q, r := a/b, a%b
		if r != 0 && (r < 0) != (b < 0) {
			q, r = q-1, r+b
		}
		if op == "//" {
			return q
		}
		return r
	case "**":
		if b < 0 {
			return math.Pow(float64(a), float64(b))
		}
		if a >= -1 && a <= 1 { // the bases whose powers never overflow
			if b > 0 && b%2 == 0 {
				a *= a
			} else if b == 0 {
				a = 1
			}
			return a
		}
		p, ok := int64(1), true
		for i := int64(0); i < b && ok; i++ {
			p, ok = multiply(p, a)
		}
		if ok {
			return p
		}
	}
	fail(st.line, "integer overflow")
	return nil
}

// multiply returns a*b, and whether it fits.
func multiply(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	if a == math.MinInt64 || b == math.MinInt64 {
		return a * b, a == 1 || b == 1
	}
	p := a * b
	return p, p/b == a && p != math.MinInt64
}

func (st *state) floats(op string, a, b float64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		fail(st.line, "division by zero")
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	case "%":
		r := math.Mod(a, b)
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r
	}
	return math.Pow(a, b)
}

// repeat is a string or a list times n.
func (st *state) repeat(v any, n int64) any {
	n = max(n, 0)
	size := func(each int) int {
		total, ok := multiply(int64(each), n)
		if !ok || total > math.MaxInt32 {
			fail(st.line, "stopped at a text or list of more than %d bytes", st.limits.Text)
		}
		st.alloc(int(total))
		return int(n)
	}
	switch v := v.(type) {
	case string:
		if v == "" {
			return v
		}
		return strings.Repeat(v, size(len(v)))
	case *List:
		if v.kind <= isTuple {
			var items []any
			if len(v.Items) > 0 {
				for range size(16 * len(v.Items)) {
					items = append(items, v.Items...)
				}
			}
			return &List{Items: items, kind: v.kind}
		}
	}
	fail(st.line, "%s cannot be repeated", typeName(v))
	return nil
}
