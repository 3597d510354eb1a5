package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	kEOF kind = iota
	kData
	kVarBegin
	kVarEnd
	kBlockBegin
	kBlockEnd
	kName
	kString
	kInt
	kFloat
	kOp
)

// token is a word of a template. text is its spelling, for a string its value.
type token struct {
	kind kind
	text string
	line int
}

// lexer cuts a template into tokens. White space around tags is settled here:
// with trim_blocks the line end behind a block tag or comment goes, with
// lstrip_blocks the blanks before one that stands first in its line; a - in a tag
// takes all white space on its side, a + keeps it.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token
}

// lex returns the tokens of a template, the last one of kind kEOF.
func lex(src string) []token {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n") // Jinja's default: one line end at the end is dropped
	l := &lexer{src: src, line: 1}
	for l.pos < len(l.src) {
		l.data()
	}
	l.add(kEOF, "")
	return l.tokens
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// advance moves on by n bytes and counts the lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

// data takes the text up to the next tag, and that tag.
func (l *lexer) data() {
	start, fresh := l.pos, l.pos == 0 || l.src[l.pos-1] == '\n'
	at := len(l.src)
	for i := l.pos; i+1 < len(l.src); i++ {
		if l.src[i] == '{' && strings.IndexByte("{%#", l.src[i+1]) >= 0 {
			at = i
			break
		}
	}
	text := l.src[start:at]
	if at == len(l.src) {
		l.addData(text)
		l.advance(len(text))
		return
	}
	tag, sign := l.src[at+1], byte(0)
	if at+2 < len(l.src) {
		sign = l.src[at+2]
	}
	l.addData(before(text, tag, sign, fresh))
	l.advance(len(text) + 2)
	if sign == '-' || sign == '+' && tag != '{' {
		l.advance(1)
	}
	switch tag {
	case '#':
		l.comment()
	case '{':
		l.add(kVarBegin, "{{")
		l.expression("}}", kVarEnd)
	default:
		if l.raw() {
			return
		}
		l.add(kBlockBegin, "{%")
		l.expression("%}", kBlockEnd)
	}
}

func (l *lexer) addData(text string) {
	if text != "" {
		l.add(kData, text)
	}
}

// before is what is left of the text before a tag. fresh tells that the text
// begins a line.
func before(text string, tag, sign byte, fresh bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, unicode.IsSpace)
	case sign == '+' || tag == '{':
		return text
	}
	lineStart := strings.LastIndexByte(text, '\n') + 1
	if (lineStart > 0 || fresh) && strings.TrimFunc(text[lineStart:], unicode.IsSpace) == "" {
		return text[:lineStart]
	}
	return text
}

// close passes the end of a tag, which lies at the position, and the white space
// that goes with it.
func (l *lexer) close(sign byte, trimLine bool) {
	n := 2
	if sign != 0 {
		n++
	}
	l.advance(n)
	rest := l.src[l.pos:]
	switch {
	case sign == '-':
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace)))
	case sign == 0 && trimLine && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

func (l *lexer) comment() {
	n := strings.Index(l.src[l.pos:], "#}")
	if n < 0 {
		fail(l.line, "comment without an end")
	}
	sign := byte(0)
	if n > 0 {
		if c := l.src[l.pos+n-1]; c == '-' || c == '+' {
			sign = c
			n--
		}
	}
	l.advance(n)
	l.close(sign, true)
}

// raw takes a raw block, if the tag that was opened begins one.
func (l *lexer) raw() bool {
	sign, n, ok := tagNamed(l.src[l.pos:], "raw")
	if !ok {
		return false
	}
	l.advance(n)
	l.close(sign, false)
	for from := l.pos; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			fail(l.line, "raw block without an end")
		}
		at, open := from+i, byte(0)
		body := at + 2
		if body < len(l.src) && (l.src[body] == '-' || l.src[body] == '+') {
			open = l.src[body]
			body++
		}
		sign, n, ok := tagNamed(l.src[body:], "endraw")
		if !ok {
			from = at + 2
			continue
		}
		text := l.src[l.pos:at]
		l.addData(before(text, '%', open, l.src[l.pos-1] == '\n'))
		l.advance(body + n - l.pos)
		l.close(sign, true)
		return true
	}
}

// tagNamed reports whether s goes on with a name and the end of a tag, and how
// many bytes before that end (and its sign) there are.
func tagNamed(s, name string) (sign byte, n int, ok bool) {
	rest := strings.TrimLeftFunc(s, unicode.IsSpace)
	if !strings.HasPrefix(rest, name) {
		return 0, 0, false
	}
	rest = strings.TrimLeftFunc(rest[len(name):], unicode.IsSpace)
	n = len(s) - len(rest)
	switch {
	case strings.HasPrefix(rest, "%}"):
		return 0, n, true
	case strings.HasPrefix(rest, "-%}"), strings.HasPrefix(rest, "+%}"):
		return rest[0], n, true
	}
	return 0, 0, false
}

// operators, the longer ones first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}",
	">", "<", "=", ".", ":", "|", ",", ";"}

// expression takes the tokens up to the end of a tag. An end inside brackets does
// not count: {{ {'a': {}} }}.
func (l *lexer) expression(end string, endKind kind) {
	var open []byte
	opened := l.line
	for {
		rest := l.src[l.pos:]
		trimmed := strings.TrimLeftFunc(rest, unicode.IsSpace)
		l.advance(len(rest) - len(trimmed))
		rest = trimmed
		if rest == "" {
			fail(opened, "tag without an end: %s is missing", end)
		}
		if len(open) == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && end == "%}" {
				sign = rest[0]
			}
			if strings.HasPrefix(rest, end) {
				l.add(endKind, end)
				l.close(0, end == "%}")
				return
			}
			if sign != 0 && strings.HasPrefix(rest[1:], end) {
				l.add(endKind, end)
				l.close(sign, end == "%}")
				return
			}
		}
		switch c := rest[0]; {
		case c == '\'' || c == '"':
			l.str()
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
			l.name()
		default:
			open = l.operator(open)
		}
	}
}

// operator takes an operator and keeps account of the open brackets.
func (l *lexer) operator(open []byte) []byte {
	rest := l.src[l.pos:]
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch c := op[0]; c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			want := byte(c - 1)
			if c != ')' {
				want = c - 2
			}
			if len(open) == 0 || open[len(open)-1] != want {
				fail(l.line, "unexpected %q", op)
			}
			open = open[:len(open)-1]
		}
		l.add(kOp, op)
		l.advance(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	fail(l.line, "unexpected character %q", r)
	return nil
}

func (l *lexer) name() {
	rest := l.src[l.pos:]
	n := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	if n < 0 {
		n = len(rest)
	}
	if n == 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		fail(l.line, "unexpected character %q", r)
	}
	l.add(kName, rest[:n])
	l.advance(n)
}

// number takes an integer (with _, 0x, 0o or 0b) or a float.
func (l *lexer) number() {
	rest := l.src[l.pos:]
	digits := func(i int, ok func(byte) bool) int {
		for i < len(rest) && (ok(rest[i]) || rest[i] == '_') {
			i++
		}
		return i
	}
	decimal := func(c byte) bool { return c >= '0' && c <= '9' }
	n, k := 0, kInt
	if len(rest) > 2 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		n = digits(2, func(c byte) bool { return decimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' })
	} else {
		n = digits(0, decimal)
		// a.0.1 is an index into an index, not a float.
		indexed := len(l.tokens) > 0 && l.tokens[len(l.tokens)-1] == token{kOp, ".", l.line}
		if !indexed && n+1 < len(rest) && rest[n] == '.' && decimal(rest[n+1]) {
			k, n = kFloat, digits(n+1, decimal)
		}
		if n < len(rest) && rest[n]|0x20 == 'e' {
			e := n + 1
			if e < len(rest) && (rest[e] == '+' || rest[e] == '-') {
				e++
			}
			if e < len(rest) && decimal(rest[e]) {
				k, n = kFloat, digits(e, decimal)
			}
		}
	}
	l.add(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

// str takes a string literal; its token holds the value.
func (l *lexer) str() {
	rest := l.src[l.pos:]
	quote := rest[0]
	var b strings.Builder
	for i := 1; i < len(rest); {
		switch c := rest[i]; c {
		case quote:
			l.add(kString, b.String())
			l.advance(i + 1)
			return
		case '\\':
			i += 1 + unescape(&b, rest[i+1:])
		default:
			b.WriteByte(c)
			i++
		}
	}
	fail(l.line, "string without an end")
}

// unescape writes what an escape stands for, as in Python, and returns how many
// bytes behind the backslash belong to it. An unknown escape stands for itself.
func unescape(b *strings.Builder, s string) int {
	if s == "" {
		return 0
	}
	if i := strings.IndexByte("abfnrtv\\'\"\n", s[0]); i >= 0 {
		b.WriteString([]string{"\a", "\b", "\f", "\n", "\r", "\t", "\v", "\\", "'", "\"", ""}[i])
		return 1
	}
	digits := 0
	switch c := s[0]; {
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '7':
		r, i := rune(0), 0
		for i < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7' {
			r = r*8 + rune(s[i]-'0')
			i++
		}
		b.WriteRune(r)
		return i
	}
	r := rune(0)
	for i := 1; i <= digits; i++ {
		v := -1
		if i < len(s) {
			v = strings.IndexByte("0123456789abcdef", s[i]|0x20) // digits have this bit already
		}
		if v < 0 || r > unicode.MaxRune {
			digits = 0
			break
		}
		r = r*16 + rune(v)
	}
	if digits == 0 {
		b.WriteByte('\\')
		b.WriteByte(s[0])
		return 1
	}
	b.WriteRune(r)
	return 1 + digits
}
