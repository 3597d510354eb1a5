package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"bmoe/tui/term"
)

// mostNested bounds how deep emphasis may lie in emphasis.
const mostNested = 8

// spans parses the marks within a line of Markdown: emphasis, code, links. What is
// marked keeps its place in the text; the marks themselves are left out. A mark that
// nothing closes is text, as it is while the rest of an answer is still to come.
type spans struct {
	th   *term.Theme
	text string
	out  []piece
}

func inline(th *term.Theme, text string, start, end int, st term.Style) []piece {
	s := spans{th: th, text: text}
	s.parse(start, end, st, 0)
	return s.out
}

func (s *spans) put(start, end int, st term.Style) {
	if start == end {
		return
	}
	if n := len(s.out); n > 0 && s.out[n-1].end == start && s.out[n-1].st == st {
		s.out[n-1].end = end
		return
	}
	s.out = append(s.out, piece{st: st, start: start, end: end})
}

// parse takes text[i:end].
func (s *spans) parse(i, end int, st term.Style, deep int) {
	from := i           // what has not been put out yet
	var open [256]bool  // marks of this kind are known to be closed by nothing
	var opens [256]bool // likewise those of two
	for i < end {
		c := s.text[i]
		next := 0
		switch c {
		case '\\':
			if i+1 < end && s.text[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(s.text[i+1])) || i+1 < end && strings.IndexByte("`|~<>+=$^", s.text[i+1]) >= 0 {
				s.put(from, i, st)
				from, i = i+1, i+2
				continue
			}
		case '`':
			s.put(from, i, st)
			if next = s.code(i, end, st); next == 0 { // nothing closes so many
				for i < end && s.text[i] == '`' {
					i++
				}
				s.put(from, i, st)
				from = i
				continue
			}
		case '*', '_', '~':
			if deep == mostNested {
				break
			}
			two := i+1 < end && s.text[i+1] == c
			if two && !opens[c] {
				next = s.emphasis(i, end, 2, from, st, deep)
				opens[c] = next == 0
			}
			if next == 0 && c != '~' && !two && !open[c] {
				next = s.emphasis(i, end, 1, from, st, deep)
				open[c] = next == 0 && s.canOpen(i, end, 1)
			}
			if next == 0 && two {
				i += 2
				continue
			}
		case '[':
			next = s.link(i, end, from, st, deep)
		}
		if next == 0 {
			i++
			continue
		}
		i, from = next, next
	}
	s.put(from, end, st)
}

// code takes `code`, and returns where it ends; 0: it is none.
func (s *spans) code(i, end int, st term.Style) int {
	n := 0
	for i+n < end && s.text[i+n] == '`' {
		n++
	}
	at := i + n
	for {
		k := strings.Index(s.text[at:end], s.text[i:i+n])
		if k < 0 {
			return 0
		}
		close := at + k
		if close+n < end && s.text[close+n] == '`' { // of a longer row
			at = close
			for at < end && s.text[at] == '`' {
				at++
			}
			continue
		}
		if s.th.NoColor { // its style would not show
			s.put(i, close+n, st)
			return close + n
		}
		a, b := i+n, close
		if b-a > 2 && s.text[a] == ' ' && s.text[b-1] == ' ' {
			a, b = a+1, b-1
		}
		s.put(a, b, st+s.th.Code)
		return close + n
	}
}

// canOpen reports whether n marks can begin emphasis: a word follows, and in front of
// underscores there is none.
func (s *spans) canOpen(i, end, n int) bool {
	if i+n >= end || s.text[i+n] == ' ' {
		return false
	}
	return s.text[i] != '_' || !s.word(i, -1)
}

// word reports whether a letter or a digit stands before a place (-1) or at it (0).
func (s *spans) word(i, dir int) bool {
	var r rune
	if dir < 0 {
		r, _ = utf8.DecodeLastRuneInString(s.text[:i])
	} else {
		r, _ = utf8.DecodeRuneInString(s.text[i:])
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// emphasis takes *this* or **this**, and returns where it ends; 0: it is none.
func (s *spans) emphasis(i, end, n, from int, st term.Style, deep int) int {
	if !s.canOpen(i, end, n) {
		return 0
	}
	c := s.text[i]
	for at := i + n; ; {
		k := strings.Index(s.text[at:end], s.text[i:i+n])
		if k < 0 {
			return 0
		}
		close := at + k
		runEnd := close
		for runEnd < end && s.text[runEnd] == c {
			runEnd++
		}
		run := runEnd - close
		at = runEnd
		switch {
		case close == i+n || s.text[close-1] == ' ' || s.text[close-1] == '\\':
			continue
		case n == 1 && run == 2: // of something bold within
			continue
		case c == '_' && runEnd < end && s.word(runEnd, 0):
			continue
		}
		if run > n { // the inner ones come first: **bold *and italic***
			close = runEnd - n
		}
		s.put(from, i, st)
		add := s.th.Italic
		switch {
		case c == '~':
			add = s.th.Strike
		case n == 2:
			add = s.th.Bold
		}
		s.parse(i+n, close, st+add, deep+1)
		return close + n
	}
}

// link takes [text](address), and returns where it ends; 0: it is none.
func (s *spans) link(i, end, from int, st term.Style, deep int) int {
	mid := strings.Index(s.text[i:end], "](")
	if mid < 1 || strings.Contains(s.text[i+1:i+mid], "[") {
		return 0
	}
	mid += i
	n := strings.IndexByte(s.text[mid:end], ')')
	if n < 3 || strings.ContainsAny(s.text[mid+2:mid+n], " (") {
		return 0
	}
	before := i
	if i > from && s.text[i-1] == '!' {
		before--
	}
	s.put(from, before, st)
	if deep < mostNested {
		s.parse(i+1, mid, st+s.th.Link, deep+1)
	}
	if s.text[i+1:mid] != s.text[mid+2:mid+n] {
		s.put(mid+1, mid+n+1, st+s.th.Dim)
	}
	return mid + n + 1
}
