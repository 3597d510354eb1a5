package jinja

import "strings"

// see returns a string with its stand-ins taken for what they stand for. Places in
// it are places in s, since a stand-in has the length of what it stands for.
func (st *state) see(s string) string {
	if len(st.standIns) == 0 || !strings.ContainsFunc(s, st.isStandIn) {
		return s
	}
	st.alloc(len(s))
	return strings.Map(func(r rune) rune {
		if original, ok := st.standIns[r]; ok {
			return original
		}
		return r
	}, s)
}

func (st *state) isStandIn(r rune) bool {
	_, ok := st.standIns[r]
	return ok
}

// same compares two strings as the template sees them.
func (st *state) same(a, b string) bool { return a == b || st.see(a) == st.see(b) }

// replaceIn is str.replace for at most n places, all of them if n is negative.
func (st *state) replaceIn(s, old, with string, n int) string {
	seen, old := st.see(s), st.see(old)
	if seen == s || old == "" {
		return strings.Replace(s, old, with, n)
	}
	var b strings.Builder
	for n != 0 {
		i := strings.Index(seen, old)
		if i < 0 {
			break
		}
		b.WriteString(s[:i] + with)
		s, seen = s[i+len(old):], seen[i+len(old):]
		n--
	}
	return b.String() + s
}

// splitIn is str.split at a separator, into at most n parts, all of them if n is
// negative.
func (st *state) splitIn(s, sep string, n int) []string {
	parts := strings.SplitN(st.see(s), st.see(sep), n)
	at := 0
	for i, p := range parts {
		parts[i] = s[at : at+len(p)]
		at += len(p) + len(sep)
	}
	return parts
}

// MapStrings returns a copy of a value in which f has replaced every string. The
// keys of dicts stay.
func MapStrings(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case *List:
		out := &List{kind: v.kind, Items: make([]any, len(v.Items))}
		for i, item := range v.Items {
			out.Items[i] = MapStrings(item, f)
		}
		return out
	case *Dict:
		out := v.Clone()
		for i, item := range out.vals {
			out.vals[i] = MapStrings(item, f)
		}
		return out
	}
	return v
}
