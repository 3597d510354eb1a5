package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// filterFunc is a filter; v is what stands before it.
type filterFunc func(st *state, v any, a *arguments) any

func (x *filter) eval(st *state, sc *scope) any {
	v := x.x.eval(st, sc)
	return st.filtered([]*filter{x}, v, sc)
}

// filtered passes a value through a row of filters.
func (st *state) filtered(row []*filter, v any, sc *scope) any {
	for _, f := range row {
		a := st.evalArgs(&f.args, sc)
		st.at(f.pos)
		v = st.filter(f.name, v, a)
	}
	return v
}

func (st *state) filter(name string, v any, a *arguments) any {
	f := filters[name]
	if f == nil {
		fail(st.line, "unknown filter %q", name)
	}
	return f(st, v, a)
}

// filters are the filters by name. It is filled in by init, since map and select
// look filters up again.
var filters map[string]filterFunc

func init() {
	text := func(f func(string) string) filterFunc {
		return func(st *state, v any, a *arguments) any {
			s := st.str(v)
			st.alloc(len(s))
			return f(s)
		}
	}
	filters = map[string]filterFunc{
		"abs":        filterAbs,
		"attr":       func(st *state, v any, a *arguments) any { return st.attr(v, st.textArg(a, 0, "name", "")) },
		"batch":      filterBatch,
		"capitalize": text(capitalize),
		"center":     func(st *state, v any, a *arguments) any { return pad(st, st.str(v), a, 80, "width", -1) },
		"count":      filterLength,
		"d":          filterDefault,
		"default":    filterDefault,
		"dictsort":   filterDictsort,
		"e":          filterEscape,
		"escape":     filterEscape,
		"first":      func(st *state, v any, a *arguments) any { return edge(st, v, true) },
		"float":      filterFloat,
		"format":     func(st *state, v any, a *arguments) any { return st.percent(st.str(v), formatArgs(a)) },
		"from_json":  filterFromJSON,
		"indent":     filterIndent,
		"int":        filterInt,
		"items":      filterItems,
		"join":       filterJoin,
		"last":       func(st *state, v any, a *arguments) any { return edge(st, v, false) },
		"length":     filterLength,
		"list":       func(st *state, v any, a *arguments) any { return st.copyList(v) },
		"lower":      text(strings.ToLower),
		"map":        filterMap,
		"max":        func(st *state, v any, a *arguments) any { return extreme(st, v, a, true) },
		"min":        func(st *state, v any, a *arguments) any { return extreme(st, v, a, false) },
		"reject":     func(st *state, v any, a *arguments) any { return choose(st, v, a, false, false) },
		"rejectattr": func(st *state, v any, a *arguments) any { return choose(st, v, a, true, false) },
		"replace":    filterReplace,
		"reverse":    filterReverse,
		"round":      filterRound,
		"safe":       func(st *state, v any, a *arguments) any { return st.str(v) },
		"select":     func(st *state, v any, a *arguments) any { return choose(st, v, a, false, true) },
		"selectattr": func(st *state, v any, a *arguments) any { return choose(st, v, a, true, true) },
		"sort":       filterSort,
		"string":     func(st *state, v any, a *arguments) any { return st.str(v) },
		"sum":        filterSum,
		"title":      text(titleFilter),
		"tojson":     filterToJSON,
		"trim":       filterTrim,
		"truncate":   filterTruncate,
		"unique":     filterUnique,
		"upper":      text(strings.ToUpper),
		"wordcount":  func(st *state, v any, a *arguments) any { return int64(len(strings.FieldsFunc(st.str(v), notWord))) },
	}
}

// copyList is list(v).
func (st *state) copyList(v any) *List {
	items := st.items(v)
	st.alloc(16 * len(items))
	return &List{Items: append([]any(nil), items...)}
}

// textArg, intArg and boolArg return an argument, or the default.
func (st *state) textArg(a *arguments, i int, name, def string) string {
	if v, ok := a.take(i, name); ok {
		return st.str(v)
	}
	return def
}

func (st *state) intArg(a *arguments, i int, name string, def int64) int64 {
	v, ok := a.take(i, name)
	if !ok {
		return def
	}
	n, _, isFloat, ok := numeric(v)
	if !ok || isFloat {
		fail(st.line, "argument %s must be an integer, not %s", name, typeName(v))
	}
	return n
}

func boolArg(a *arguments, i int, name string) bool {
	v, ok := a.take(i, name)
	return ok && truth(v)
}

func filterLength(st *state, v any, a *arguments) any { return int64(st.length(v)) }

func filterDefault(st *state, v any, a *arguments) any {
	if _, missing := v.(Undefined); missing || boolArg(a, 1, "boolean") && !truth(v) {
		if def, ok := a.take(0, "default_value"); ok {
			return def
		}
		return ""
	}
	return v
}

func filterAbs(st *state, v any, a *arguments) any {
	i, f, isFloat, ok := numeric(v)
	switch {
	case !ok:
		st.mustDefined(v)
		fail(st.line, "%s has no absolute value", typeName(v))
	case isFloat:
		return math.Abs(f)
	case i < 0:
		return st.integers("*", i, -1)
	}
	return i
}

func filterBatch(st *state, v any, a *arguments) any {
	n := st.intArg(a, 0, "linecount", 0)
	if n < 1 {
		fail(st.line, "batch needs a positive number")
	}
	items := st.items(v)
	st.alloc(64 * len(items))
	var rows []any
	for len(items) > 0 {
		k := int(min(n, int64(len(items))))
		row := append([]any(nil), items[:k]...)
		items = items[k:]
		if fill, ok := a.take(1, "fill_with"); ok && fill != nil {
			st.alloc(int(min(16*(n-int64(k)), math.MaxInt32)))
			for int64(len(row)) < n {
				row = append(row, fill)
			}
		}
		rows = append(rows, &List{Items: row})
	}
	return &List{Items: rows, kind: isIter}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func filterEscape(st *state, v any, a *arguments) any {
	s := st.str(v)
	st.alloc(5 * len(s))
	return escaper.Replace(strings.Map(func(r rune) rune {
		if original := st.standIns[r]; original != 0 && strings.ContainsRune(`&<>'"`, original) {
			return original
		}
		return r
	}, s))
}

// edge is the first or last item.
func edge(st *state, v any, first bool) any {
	if s, ok := v.(string); ok {
		if first {
			return st.index(s, int64(0))
		}
		return st.index(s, int64(-1))
	}
	items := st.items(v)
	switch {
	case len(items) == 0:
		return Undefined{"an empty sequence has no first or last item"}
	case first:
		return items[0]
	}
	return items[len(items)-1]
}

func filterFloat(st *state, v any, a *arguments) any {
	if f, ok := st.toFloat(v); ok {
		return f
	}
	if def, ok := a.take(0, "default"); ok {
		return def
	}
	return 0.0
}

func (st *state) toFloat(v any) (float64, bool) {
	st.mustDefined(v)
	i, f, isFloat, ok := numeric(v)
	switch {
	case isFloat:
		return f, true
	case ok:
		return float64(i), true
	}
	s, ok := v.(string)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), 64)
	return f, err == nil
}

func filterInt(st *state, v any, a *arguments) any {
	st.mustDefined(v)
	base := st.intArg(a, 1, "base", 10)
	if s, ok := v.(string); ok && base >= 2 && base <= 36 {
		s = strings.ToLower(strings.TrimSpace(s))
		if prefix := map[int64]string{16: "0x", 8: "0o", 2: "0b"}[base]; prefix != "" {
			s = strings.TrimPrefix(s, prefix)
		}
		if n, err := strconv.ParseInt(s, int(base), 64); err == nil {
			return n
		}
	}
	if f, ok := st.toFloat(v); ok && math.Abs(f) < 1<<62 {
		if i, _, isFloat, ok := numeric(v); ok && !isFloat {
			return i
		}
		return int64(f)
	}
	if def, ok := a.take(0, "default"); ok {
		return def
	}
	return int64(0)
}

func filterIndent(st *state, v any, a *arguments) any {
	s := st.str(v)
	prefix := strings.Repeat(" ", 4)
	if w, ok := a.take(0, "width"); ok {
		if text, ok := w.(string); ok {
			prefix = text
		} else {
			n := st.intArg(a, 0, "width", 4)
			n = max(n, 0)
			st.alloc(int(min(n, math.MaxInt32)))
			prefix = strings.Repeat(" ", int(n))
		}
	}
	lines := strings.Split(s, "\n")
	st.alloc(min(len(s)+len(lines)*len(prefix), math.MaxInt32))
	blank := boolArg(a, 2, "blank")
	for i, line := range lines {
		if i > 0 && (line != "" || blank) || i == 0 && boolArg(a, 1, "first") {
			lines[i] = prefix + line
		}
	}
	return strings.Join(lines, "\n")
}

func filterItems(st *state, v any, a *arguments) any {
	switch v := v.(type) {
	case *Dict:
		return &List{Items: st.pairs(v), kind: isIter}
	case Undefined:
		return &List{kind: isIter}
	}
	fail(st.line, "%s has no items", typeName(v))
	return nil
}

// pairs returns the (key, value) tuples of a dict.
func (st *state) pairs(d *Dict) []any {
	st.alloc(64 * d.Len())
	pairs := make([]any, d.Len())
	for i := range pairs {
		pairs[i] = &List{Items: []any{d.keys[i], d.vals[i]}, kind: isTuple}
	}
	return pairs
}

func filterJoin(st *state, v any, a *arguments) any {
	sep := st.textArg(a, 0, "d", "")
	items := st.items(v)
	path, hasAttr := a.take(1, "attribute")
	texts := make([]string, len(items))
	total := 0
	for i, item := range items {
		if hasAttr {
			item = st.path(item, path)
		}
		texts[i] = st.str(item)
		total += len(texts[i]) + len(sep)
		st.fits(total)
	}
	st.alloc(total)
	return strings.Join(texts, sep)
}

// path follows an attribute such as function.name or 0.
func (st *state) path(v, path any) any {
	if n, ok := path.(int64); ok {
		return st.index(v, n)
	}
	for _, part := range strings.Split(st.str(path), ".") {
		var key any = part
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = n
		}
		v = st.index(v, key)
	}
	return v
}

// someItems is items, of nothing where the value is false: none | map is empty.
func (st *state) someItems(v any) []any {
	if !truth(v) {
		return nil
	}
	return st.items(v)
}

func filterMap(st *state, v any, a *arguments) any {
	items := st.someItems(v)
	out := make([]any, len(items))
	st.alloc(16 * len(items))
	if path, ok := a.take(math.MaxInt, "attribute"); ok {
		def, hasDef := a.take(math.MaxInt, "default")
		for i, item := range items {
			out[i] = st.path(item, path)
			if _, missing := out[i].(Undefined); missing && hasDef {
				out[i] = def
			}
		}
		return &List{Items: out, kind: isIter}
	}
	if len(a.plain) == 0 {
		fail(st.line, "map needs a filter's name or an attribute")
	}
	name := st.str(a.plain[0])
	rest := &arguments{plain: a.plain[1:], names: a.names, named: a.named}
	for i, item := range items {
		out[i] = st.filter(name, item, rest)
	}
	return &List{Items: out, kind: isIter}
}

// choose is select, reject, selectattr and rejectattr.
func choose(st *state, v any, a *arguments, byAttr, want bool) any {
	rest := &arguments{plain: a.plain, names: a.names, named: a.named}
	var path any
	if byAttr {
		if len(rest.plain) == 0 {
			fail(st.line, "the attribute's name is missing")
		}
		path, rest.plain = rest.plain[0], rest.plain[1:]
	}
	name := ""
	if len(rest.plain) > 0 {
		name, rest.plain = st.str(rest.plain[0]), rest.plain[1:]
	}
	items := st.someItems(v)
	st.alloc(16 * len(items))
	var out []any
	for _, item := range items {
		x := item
		if byAttr {
			x = st.path(item, path)
		}
		ok := truth(x)
		if name != "" {
			ok = st.test(name, x, rest)
		}
		if ok == want {
			out = append(out, item)
		}
	}
	return &List{Items: out, kind: isIter}
}

func filterReplace(st *state, v any, a *arguments) any {
	a.check(st, "replace", "old", "new", "count")
	return st.replace(st.str(v), st.textArg(a, 0, "old", ""), st.textArg(a, 1, "new", ""), st.intArg(a, 2, "count", -1))
}

// replace is str.replace; a negative count means all.
func (st *state) replace(s, old, with string, count int64) string {
	n := int64(strings.Count(st.see(s), st.see(old))) // for an empty old: places between characters
	st.charge(len(s) / 16)
	if count >= 0 {
		n = min(n, count)
	}
	grown, ok := multiply(n, int64(len(with)))
	if !ok || grown > math.MaxInt32 {
		grown = math.MaxInt32
	}
	st.alloc(len(s) + int(grown))
	return st.replaceIn(s, old, with, int(n))
}

func filterReverse(st *state, v any, a *arguments) any {
	if s, ok := v.(string); ok {
		st.alloc(4 * len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	out := st.copyList(v)
	slices.Reverse(out.Items)
	out.kind = isIter
	return out
}

func filterRound(st *state, v any, a *arguments) any {
	f, ok := st.toFloat(v)
	if !ok {
		fail(st.line, "%s cannot be rounded", typeName(v))
	}
	precision := st.intArg(a, 0, "precision", 0)
	scale := math.Pow(10, float64(precision))
	switch method := st.textArg(a, 1, "method", "common"); method {
	case "common":
		if i, _, isFloat, ok := numeric(v); ok && !isFloat && precision >= 0 {
			return i
		}
		if precision >= 0 && precision < 300 { // correctly rounded from the decimal text, half to even
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
			return f
		}
		return math.RoundToEven(f*scale) / scale
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	default:
		fail(st.line, "unknown way to round: %q", method)
	}
	return nil
}

// sortKey prepares a value for a comparison that ignores case.
func (st *state) sortKey(v any, caseSensitive bool) any {
	if s, ok := v.(string); ok && !caseSensitive {
		return strings.ToLower(s)
	}
	return v
}

// sortBy sorts items by a key, keeping the order of equal ones.
func (st *state) sortBy(items []any, reverse bool, key func(any) any) []any {
	type pair struct{ key, item any }
	st.alloc(48 * len(items))
	pairs := make([]pair, len(items))
	for i, item := range items {
		pairs[i] = pair{key(item), item}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if reverse {
			a, b = b, a
		}
		switch {
		case st.less(a.key, b.key):
			return -1
		case st.less(b.key, a.key):
			return 1
		}
		return 0
	})
	out := make([]any, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out
}

func filterSort(st *state, v any, a *arguments) any {
	path, hasAttr := a.take(2, "attribute")
	sensitive := boolArg(a, 1, "case_sensitive")
	return &List{Items: st.sortBy(st.items(v), boolArg(a, 0, "reverse"), func(x any) any {
		if !hasAttr || path == nil {
			return st.sortKey(x, sensitive)
		}
		keys := &List{kind: isTuple}
		for _, part := range strings.Split(st.str(path), ",") {
			keys.Items = append(keys.Items, st.sortKey(st.path(x, part), sensitive))
		}
		return keys
	})}
}

func filterDictsort(st *state, v any, a *arguments) any {
	d, ok := v.(*Dict)
	if !ok {
		st.mustDefined(v)
		fail(st.line, "dictsort needs a dict, not %s", typeName(v))
	}
	at := 0
	switch by := st.textArg(a, 1, "by", "key"); by {
	case "key":
	case "value":
		at = 1
	default:
		fail(st.line, "dictsort sorts by key or value, not by %q", by)
	}
	sensitive := boolArg(a, 0, "case_sensitive")
	return &List{Items: st.sortBy(st.pairs(d), boolArg(a, 2, "reverse"), func(x any) any {
		return st.sortKey(x.(*List).Items[at], sensitive)
	})}
}

// extreme is max or min.
func extreme(st *state, v any, a *arguments, largest bool) any {
	items := st.items(v)
	if len(items) == 0 {
		return Undefined{"an empty sequence has no largest or smallest item"}
	}
	path, hasAttr := a.take(1, "attribute")
	key := func(x any) any {
		if hasAttr {
			x = st.path(x, path)
		}
		return st.sortKey(x, boolArg(a, 0, "case_sensitive"))
	}
	best := items[0]
	for _, item := range items[1:] {
		if largest && st.less(key(best), key(item)) || !largest && st.less(key(item), key(best)) {
			best = item
		}
	}
	return best
}

func filterSum(st *state, v any, a *arguments) any {
	var total any = int64(0)
	if start, ok := a.take(1, "start"); ok {
		total = start
	}
	path, hasAttr := a.take(0, "attribute")
	for _, item := range st.items(v) {
		if hasAttr && path != nil {
			item = st.path(item, path)
		}
		st.mustDefined(item)
		total = st.arithmetic("+", total, item)
	}
	return total
}

// titleFilter makes the first letter of every word a capital. Unlike Python's
// str.title, it takes an apostrophe for a part of the word.
func titleFilter(s string) string {
	fresh := true
	return strings.Map(func(r rune) rune {
		first := fresh
		fresh = isSpace(r) || strings.ContainsRune("-({[<", r)
		if first {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func notWord(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }

func filterTrim(st *state, v any, a *arguments) any {
	s := st.str(v)
	st.charge(len(s) / 64)
	if chars, ok := a.take(0, "chars"); ok && chars != nil {
		return st.trim(s, st.str(chars), true, true)
	}
	return strings.TrimFunc(s, isSpace)
}

func filterTruncate(st *state, v any, a *arguments) any {
	s := st.str(v)
	st.alloc(4 * len(s))
	runes, n, end := []rune(s), st.intArg(a, 0, "length", 255), st.textArg(a, 2, "end", "...")
	if int64(len(runes)) <= n+st.intArg(a, 3, "leeway", 5) {
		return s
	}
	keep := max(n-int64(len([]rune(end))), 0)
	cut := string(runes[:min(keep, int64(len(runes)))])
	if !boolArg(a, 1, "killwords") {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return cut + end
}

func filterUnique(st *state, v any, a *arguments) any {
	seen := map[any]bool{}
	var out []any
	for _, item := range st.items(v) {
		st.alloc(64)
		key := st.hashKey(st.sortKey(item, boolArg(a, 0, "case_sensitive")))
		if !seen[key] {
			seen[key] = true
			out = append(out, item)
		}
	}
	return &List{Items: out, kind: isIter}
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// formatArgs are the values of the filter format: a tuple, or a dict if they have
// names.
func formatArgs(a *arguments) any {
	if len(a.names) == 0 {
		return &List{Items: a.plain, kind: isTuple}
	}
	d := NewDict()
	for i, n := range a.names {
		d.set(n, a.named[i])
	}
	return d
}
