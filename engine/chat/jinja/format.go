package jinja

import (
	"math"
	"strconv"
	"strings"
)

// spec is how a value is laid out: [[fill]align][sign][#][0][width][,][.precision][type].
type spec struct {
	fill      string
	align     byte // < > ^ =, or 0
	sign      byte // + - or a space
	alternate bool // #
	group     byte // , or _
	width     int
	precision int // -1: not given
	verb      byte
}

// parseSpec reads the part of a {} field behind the colon.
func (st *state) parseSpec(s string) spec {
	f := spec{fill: " ", precision: -1}
	r := []rune(s)
	isAlign := func(i int) bool { return i < len(r) && strings.ContainsRune("<>^=", r[i]) }
	i := 0
	if isAlign(1) {
		f.fill, f.align, i = string(r[0]), byte(r[1]), 2
	} else if isAlign(0) {
		f.align, i = byte(r[0]), 1
	}
	take := func(set string) byte {
		if i < len(r) && strings.ContainsRune(set, r[i]) {
			i++
			return byte(r[i-1])
		}
		return 0
	}
	digits := func() (n int, any bool) {
		for i < len(r) && r[i] >= '0' && r[i] <= '9' {
			n, any = min(n*10+int(r[i]-'0'), math.MaxInt32), true
			i++
		}
		return n, any
	}
	f.sign = take("+- ")
	f.alternate = take("#") != 0
	if take("0") != 0 && f.align == 0 {
		f.fill, f.align = "0", '='
	}
	f.width, _ = digits()
	f.group = take(",_")
	if take(".") != 0 {
		f.precision, _ = digits()
	}
	f.verb = take("sdfFeEgGxXobc%nr")
	if i != len(r) {
		fail(st.line, "format: %q is not understood", s)
	}
	return f
}

// apply lays out a value.
func (st *state) apply(f spec, v any) string {
	i, fl, isFloat, ok := numeric(v)
	_, isBool := v.(bool)
	if f.verb == 0 && isBool || f.verb == 's' {
		ok = false
	}
	if !ok {
		s := st.str(v)
		if f.precision >= 0 {
			st.alloc(4 * len(s))
			r := []rune(s)
			s = string(r[:min(f.precision, len(r))])
		}
		return st.layout(f, "", s, '<')
	}
	if f.precision > 1000 {
		fail(st.line, "format: a precision of more than 1000 digits")
	}
	sign, body := "", ""
	switch {
	case f.verb == 'c' && !isFloat:
		return st.layout(f, "", string(rune(i)), '<')
	case isFloat || f.verb != 0 && strings.IndexByte("fFeEgG%", f.verb) >= 0:
		if !isFloat {
			fl = float64(i)
		}
		body = formatReal(f, math.Abs(fl))
		if math.Signbit(fl) {
			sign = "-"
		}
	default:
		body = strconv.FormatUint(uint64(max(i, -i)), radix(f.verb))
		if f.verb == 'X' {
			body = strings.ToUpper(body)
		}
		if f.alternate && radix(f.verb) != 10 {
			sign = "0" + string(rune(f.verb))
		}
		if i < 0 {
			sign = "-" + sign
		}
	}
	if !strings.HasPrefix(sign, "-") && (f.sign == '+' || f.sign == ' ') {
		sign = string(rune(f.sign)) + sign
	}
	if f.group != 0 {
		body = grouped(body, f.group)
	}
	return st.layout(f, sign, body, '>')
}

// radix is the base of an integer's digits.
func radix(verb byte) int {
	switch verb {
	case 'x', 'X':
		return 16
	case 'o':
		return 8
	case 'b':
		return 2
	}
	return 10
}

func formatReal(f spec, v float64) string {
	precision := f.precision
	if precision < 0 {
		precision = 6
	}
	switch f.verb {
	case 'f', 'F':
		return strconv.FormatFloat(v, 'f', precision, 64)
	case '%':
		return strconv.FormatFloat(v*100, 'f', precision, 64) + "%"
	case 'e', 'E':
		return strconv.FormatFloat(v, f.verb, precision, 64)
	case 'g', 'G', 'n':
		return strconv.FormatFloat(v, 'g', max(precision, 1), 64)
	}
	if f.precision >= 0 {
		return strconv.FormatFloat(v, 'g', max(precision, 1), 64)
	}
	return formatFloat(v)
}

// grouped puts separators between thousands.
func grouped(s string, sep byte) string {
	whole, rest := s, ""
	if i := strings.IndexAny(s, ".e%"); i >= 0 {
		whole, rest = s[:i], s[i:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + string(rune(sep)) + whole[i:]
	}
	return whole + rest
}

// layout fills up to the width.
func (st *state) layout(f spec, sign, body string, align byte) string {
	if f.align != 0 {
		align = f.align
	}
	n := f.width - st.length(sign) - st.length(body)
	if n <= 0 {
		return sign + body
	}
	st.alloc(f.width * len(f.fill))
	switch align {
	case '<':
		return sign + body + strings.Repeat(f.fill, n)
	case '^':
		return strings.Repeat(f.fill, n/2) + sign + body + strings.Repeat(f.fill, n-n/2)
	case '=':
		return sign + strings.Repeat(f.fill, n) + body
	}
	return strings.Repeat(f.fill, n) + sign + body
}

// format is str.format.
func (st *state) format(s string, a *arguments) string {
	var b strings.Builder
	auto := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] { // {{ or }}
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			fail(st.line, "format: a single brace")
		}
		b.WriteString(st.field(s[i+1:i+end], a, &auto))
		st.fits(b.Len())
		s = s[i+end+1:]
	}
	st.alloc(b.Len())
	return b.String()
}

// field is one {} of str.format: name, !conversion and :spec, all optional.
func (st *state) field(s string, a *arguments, auto *int) string {
	st.step()
	s, layout, _ := strings.Cut(s, ":")
	s, conversion, _ := strings.Cut(s, "!")
	end := strings.IndexAny(s, ".[")
	if end < 0 {
		end = len(s)
	}
	name, rest := s[:end], s[end:]
	if name == "" {
		name = strconv.Itoa(*auto)
		*auto++
	}
	at, err := strconv.Atoi(name)
	if err != nil {
		at = math.MaxInt
	}
	v, ok := a.take(at, name)
	if !ok || at < 0 {
		fail(st.line, "format: there is no argument %s", name)
	}
	for rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			v, rest = st.attr(v, rest[1:end+1]), rest[end+1:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			fail(st.line, "format: %q is not understood", s)
		}
		var key any = rest[1:end]
		if n, err := strconv.ParseInt(rest[1:end], 10, 64); err == nil {
			key = n
		}
		v, rest = st.index(v, key), rest[end+1:]
	}
	switch conversion {
	case "r":
		v = st.repr(v)
	case "s":
		v = st.str(v)
	}
	return st.apply(st.parseSpec(layout), v)
}

// percent is str % values.
func (st *state) percent(s string, values any) string {
	list := []any{values}
	if t, ok := values.(*List); ok && t.kind == isTuple {
		list = t.Items
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if strings.HasPrefix(s, "%") {
			b.WriteByte('%')
			s = s[1:]
			continue
		}
		var v any
		if strings.HasPrefix(s, "(") {
			d, ok := values.(*Dict)
			end := strings.IndexByte(s, ')')
			if !ok || end < 0 {
				fail(st.line, "%%(name) needs a dict")
			}
			if v, ok = d.get(s[1:end]); !ok {
				fail(st.line, "%%(%s): no such key", s[1:end])
			}
			s = s[end+1:]
		} else {
			if len(list) == 0 {
				fail(st.line, "more %% than values")
			}
			v, list = list[0], list[1:]
		}
		n := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("#0- +.123456789", r) })
		if n < 0 {
			fail(st.line, "an incomplete %%")
		}
		b.WriteString(st.apply(st.percentSpec(s[:n], s[n]), st.percentValue(v, s[n])))
		st.fits(b.Len())
		s = s[n+1:]
	}
	_, isDict := values.(*Dict)
	if l, ok := values.(*List); !isDict && (!ok || l.kind == isTuple) && len(list) > 0 {
		fail(st.line, "more values than %%")
	}
	st.alloc(b.Len())
	return b.String()
}

// percentSpec reads the flags of a % conversion.
func (st *state) percentSpec(flags string, verb byte) spec {
	f := spec{fill: " ", align: '>', precision: -1, verb: verb}
	rest := strings.TrimLeft(flags, "#0- +")
	set := flags[:len(flags)-len(rest)]
	f.alternate = strings.Contains(set, "#")
	switch {
	case strings.Contains(set, "-"):
		f.align = '<'
	case strings.Contains(set, "0"):
		f.fill, f.align = "0", '='
	}
	switch {
	case strings.Contains(set, "+"):
		f.sign = '+'
	case strings.Contains(set, " "):
		f.sign = ' '
	}
	width, precision, dot := strings.Cut(rest, ".")
	var err error
	if width != "" {
		f.width, err = strconv.Atoi(width)
	}
	if dot && err == nil {
		f.precision = 0
		if precision != "" {
			f.precision, err = strconv.Atoi(precision)
		}
	}
	if err != nil || f.width > math.MaxInt32 {
		fail(st.line, "%%: %q is not understood", flags)
	}
	return f
}

// percentValue turns a value into what a conversion takes.
func (st *state) percentValue(v any, verb byte) any {
	switch verb {
	case 's':
		return st.str(v)
	case 'r', 'a':
		return st.repr(v)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		i, f, isFloat, ok := numeric(v)
		switch {
		case !ok:
			st.mustDefined(v)
			fail(st.line, "%%%c needs a number, not %s", verb, typeName(v))
		case isFloat:
			return int64(f)
		}
		return i
	case 'f', 'F', 'e', 'E', 'g', 'G':
		f, ok := st.toFloat(v)
		if _, isText := v.(string); !ok || isText {
			fail(st.line, "%%%c needs a number, not %s", verb, typeName(v))
		}
		return f
	case 'c':
		return v
	}
	fail(st.line, "unknown conversion %%%c", verb)
	return nil
}
