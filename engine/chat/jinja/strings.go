package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethods are the methods of Python's str.
var stringMethods map[string]func(st *state, s string, a *arguments) any

func init() {
	change := func(f func(string) string) func(*state, string, *arguments) any {
		return func(st *state, s string, a *arguments) any {
			st.alloc(len(s))
			return f(s)
		}
	}
	all := func(ok func(rune) bool) func(*state, string, *arguments) any {
		return func(st *state, s string, a *arguments) any {
			st.charge(len(s) / 16)
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
		}
	}
	stringMethods = map[string]func(st *state, s string, a *arguments) any{
		"capitalize": change(capitalize),
		"casefold":   change(strings.ToLower),
		"center":     func(st *state, s string, a *arguments) any { return pad(st, s, a, 0, "width", -1) },
		"count":      methodCount,
		"endswith":   func(st *state, s string, a *arguments) any { return st.affix(s, a, strings.HasSuffix) },
		"find":       func(st *state, s string, a *arguments) any { return st.find(s, a, strings.Index) },
		"format":     func(st *state, s string, a *arguments) any { return st.format(s, a) },
		"index":      func(st *state, s string, a *arguments) any { return st.mustFind(s, a, strings.Index) },
		"isalnum":    all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isalpha":    all(unicode.IsLetter),
		"isascii":    func(st *state, s string, a *arguments) any { return len(s) == strings.IndexFunc(s+"\u0080", notASCII) },
		"isdecimal":  all(unicode.IsDigit),
		"isdigit":    all(unicode.IsDigit),
		"islower":    func(st *state, s string, a *arguments) any { return st.test("lower", s, a) },
		"isnumeric":  all(unicode.IsNumber),
		"isspace":    all(isSpace),
		"isupper":    func(st *state, s string, a *arguments) any { return st.test("upper", s, a) },
		"join":       methodJoin,
		"ljust":      func(st *state, s string, a *arguments) any { return pad(st, s, a, 0, "width", 0) },
		"lower":      change(strings.ToLower),
		"lstrip":     func(st *state, s string, a *arguments) any { return st.strip(s, a, true, false) },
		"partition":  func(st *state, s string, a *arguments) any { return st.partition(s, a, false) },
		"removeprefix": func(st *state, s string, a *arguments) any {
			prefix := st.stringArg(a, 0, "prefix")
			if strings.HasPrefix(st.see(s), st.see(prefix)) {
				return s[len(prefix):]
			}
			return s
		},
		"removesuffix": func(st *state, s string, a *arguments) any {
			suffix := st.stringArg(a, 0, "suffix")
			if strings.HasSuffix(st.see(s), st.see(suffix)) {
				return s[:len(s)-len(suffix)]
			}
			return s
		},
		"replace":    methodReplace,
		"rfind":      func(st *state, s string, a *arguments) any { return st.find(s, a, strings.LastIndex) },
		"rindex":     func(st *state, s string, a *arguments) any { return st.mustFind(s, a, strings.LastIndex) },
		"rjust":      func(st *state, s string, a *arguments) any { return pad(st, s, a, 0, "width", 1) },
		"rpartition": func(st *state, s string, a *arguments) any { return st.partition(s, a, true) },
		"rsplit":     func(st *state, s string, a *arguments) any { return st.split(s, a, true) },
		"rstrip":     func(st *state, s string, a *arguments) any { return st.strip(s, a, false, true) },
		"split":      func(st *state, s string, a *arguments) any { return st.split(s, a, false) },
		"splitlines": methodSplitlines,
		"startswith": func(st *state, s string, a *arguments) any { return st.affix(s, a, strings.HasPrefix) },
		"strip":      func(st *state, s string, a *arguments) any { return st.strip(s, a, true, true) },
		"swapcase":   change(swapCase),
		"title":      change(titleWords),
		"upper":      change(strings.ToUpper),
		"zfill":      methodZfill,
	}
}

func notASCII(r rune) bool { return r >= utf8.RuneSelf }

// stringArg returns an argument that must be a string.
func (st *state) stringArg(a *arguments, i int, name string) string {
	v, ok := a.take(i, name)
	if !ok {
		fail(st.line, "argument %s is missing", name)
	}
	s, ok := v.(string)
	if !ok {
		st.mustDefined(v)
		fail(st.line, "argument %s must be a string, not %s", name, typeName(v))
	}
	return s
}

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(s[n:])
}

func titleWords(s string) string {
	word := false
	return strings.Map(func(r rune) rune {
		letter := unicode.IsLetter(r)
		defer func() { word = letter }()
		if letter && !word {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// pad fills up to a width: on the right (0), on the left (1) or on both sides
// (-1).
func pad(st *state, s string, a *arguments, width int64, name string, side int) string {
	width = st.intArg(a, 0, name, width)
	fill := st.textArg(a, 1, "fillchar", " ")
	if utf8.RuneCountInString(fill) != 1 {
		fail(st.line, "the fill must be one character")
	}
	n := width - int64(st.length(s))
	if n <= 0 {
		return s
	}
	st.fits(int(min(n, 1<<40)))
	st.alloc(len(s) + int(n)*len(fill))
	left := int64(0)
	switch side {
	case 1:
		left = n
	case -1:
		left = n/2 + n&width&1 // where Python puts the odd one
	}
	return strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(n-left))
}

func methodZfill(st *state, s string, a *arguments) any {
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, s = s[:1], s[1:]
	}
	width := st.intArg(a, 0, "width", 0) - int64(len(sign))
	return sign + pad(st, s, &arguments{plain: []any{width, "0"}}, 0, "width", 1)
}

func methodCount(st *state, s string, a *arguments) any {
	st.charge(len(s) / 16)
	return int64(strings.Count(st.see(s), st.see(st.stringArg(a, 0, "sub"))))
}

func methodReplace(st *state, s string, a *arguments) any {
	a.check(st, "replace", "old", "new", "count")
	return st.replace(s, st.stringArg(a, 0, "old"), st.stringArg(a, 1, "new"), st.intArg(a, 2, "count", -1))
}

// affix is startswith and endswith: with one string, or a tuple of them.
func (st *state) affix(s string, a *arguments, has func(s, affix string) bool) any {
	if len(a.plain) > 1 {
		var ok bool
		if _, s, ok = st.bounded(s, a); !ok {
			return false
		}
	}
	s = st.see(s)
	v, _ := a.take(0, "prefix")
	if t, ok := v.(*List); ok && t.kind == isTuple {
		for _, item := range t.Items {
			st.step()
			if x, ok := item.(string); ok && has(s, st.see(x)) {
				return true
			}
		}
		return false
	}
	return has(s, st.see(st.stringArg(a, 0, "prefix")))
}

// bounded cuts a string at the arguments start and end, which count characters.
// It reports false if they leave nothing, not even an empty string.
func (st *state) bounded(s string, a *arguments) (before, part string, ok bool) {
	st.alloc(4 * len(s))
	runes := []rune(s)
	n := int64(len(runes))
	start, end := st.intArg(a, 1, "start", 0), st.intArg(a, 2, "end", n)
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n)
	if start > end {
		return "", "", false
	}
	return string(runes[:start]), string(runes[start:end]), true
}

// find returns the place of a substring in characters, or -1.
func (st *state) find(s string, a *arguments, index func(s, sub string) int) any {
	st.charge(len(s) / 16)
	before := ""
	if len(a.plain) > 1 {
		var ok bool
		if before, s, ok = st.bounded(s, a); !ok {
			return int64(-1)
		}
	}
	i := index(st.see(s), st.see(st.stringArg(a, 0, "sub")))
	if i < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(before) + utf8.RuneCountInString(s[:i]))
}

func (st *state) mustFind(s string, a *arguments, index func(s, sub string) int) any {
	i := st.find(s, a, index)
	if i == int64(-1) {
		fail(st.line, "substring not found")
	}
	return i
}

func methodJoin(st *state, s string, a *arguments) any {
	v, _ := a.take(0, "iterable")
	items := st.items(v)
	texts := make([]string, len(items))
	total := 0
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			fail(st.line, "join needs strings, not %s", typeName(item))
		}
		texts[i] = text
		total += len(text) + len(s)
		st.fits(total)
	}
	st.alloc(total)
	return strings.Join(texts, s)
}

// strip takes white space, or the characters of the argument, off the ends.
func (st *state) strip(s string, a *arguments, left, right bool) any {
	st.charge(len(s) / 64)
	if chars, ok := a.take(0, "chars"); ok && chars != nil {
		return st.trim(s, st.stringArg(a, 0, "chars"), left, right)
	}
	if left {
		s = strings.TrimLeftFunc(s, isSpace)
	}
	if right {
		s = strings.TrimRightFunc(s, isSpace)
	}
	return s
}

// trim takes the characters of a set off the ends.
func (st *state) trim(s, set string, left, right bool) string {
	seen, set := st.see(s), st.see(set)
	if left {
		kept := strings.TrimLeft(seen, set)
		s, seen = s[len(s)-len(kept):], kept
	}
	if right {
		s = s[:len(strings.TrimRight(seen, set))]
	}
	return s
}

func (st *state) partition(s string, a *arguments, last bool) any {
	sep := st.stringArg(a, 0, "sep")
	if sep == "" {
		fail(st.line, "empty separator")
	}
	st.charge(len(s) / 16)
	seen, seenSep := st.see(s), st.see(sep)
	i, parts := strings.Index(seen, seenSep), []any{s, "", ""}
	if last {
		i, parts = strings.LastIndex(seen, seenSep), []any{"", "", s}
	}
	if i >= 0 {
		parts = []any{s[:i], sep, s[i+len(sep):]}
	}
	return &List{Items: parts, kind: isTuple}
}

// split is split, and rsplit with right set.
func (st *state) split(s string, a *arguments, right bool) any {
	limit := st.intArg(a, 1, "maxsplit", -1)
	st.charge(len(s) / 16)
	var parts []string
	if sep, ok := a.take(0, "sep"); !ok || sep == nil {
		parts = splitSpace(s, limit, right)
	} else {
		parts = splitText(st, s, st.stringArg(a, 0, "sep"), limit, right)
	}
	st.alloc(16 * len(parts))
	items := make([]any, len(parts))
	for i, p := range parts {
		items[i] = p
	}
	return &List{Items: items}
}

func splitText(st *state, s, sep string, limit int64, right bool) []string {
	if sep == "" {
		fail(st.line, "empty separator")
	}
	n := int64(strings.Count(st.see(s), st.see(sep)))
	if limit < 0 || limit >= n {
		return st.splitIn(s, sep, -1)
	}
	if !right {
		return st.splitIn(s, sep, int(limit)+1)
	}
	parts := make([]string, limit+1)
	seen, seenSep := st.see(s), st.see(sep)
	for i := limit; i > 0; i-- {
		at := strings.LastIndex(seen[:len(s)], seenSep)
		parts[i], s = s[at+len(sep):], s[:at]
	}
	parts[0] = s
	return parts
}

// splitSpace splits at runs of white space. Where the limit is reached, the rest
// stays as it is.
func splitSpace(s string, limit int64, right bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	var parts []string
	if !right {
		for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
			i := strings.IndexFunc(s, isSpace)
			if i < 0 || int64(len(parts)) == limit {
				return append(parts, s)
			}
			parts, s = append(parts, s[:i]), s[i:]
		}
		return parts
	}
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		i := strings.LastIndexFunc(s, isSpace)
		if i < 0 || int64(len(parts)) == limit {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		parts, s = append(parts, s[i+n:]), s[:i]
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

func methodSplitlines(st *state, s string, a *arguments) any {
	keep := boolArg(a, 0, "keepends")
	out := &List{}
	for s != "" {
		st.alloc(16)
		i := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if i < 0 {
			out.Items = append(out.Items, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		line := s[:i]
		if keep {
			line = s[:i+n]
		}
		out.Items = append(out.Items, line)
		s = s[i+n:]
	}
	return out
}
