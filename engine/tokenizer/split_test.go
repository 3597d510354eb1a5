package tokenizer

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// The splitters against the regular expressions that they stand for, executed
// literally: alternatives in order, greedy repetition, backtracking.

// re tries to match at i and calls k with every end, the preferred one first,
// until k is content.
type re func(s []rune, i int, k func(end int) bool) bool

func set(ok func(r rune) bool) re {
	return func(s []rune, i int, k func(int) bool) bool { return i < len(s) && ok(s[i]) && k(i+1) }
}

func text(t string, fold bool) re {
	return func(s []rune, i int, k func(int) bool) bool {
		for _, r := range t {
			if i >= len(s) || s[i] != r && (!fold || s[i] != unicode.ToUpper(r)) {
				return false
			}
			i++
		}
		return k(i)
	}
}

func seq(all ...re) re {
	if len(all) == 0 {
		return func(s []rune, i int, k func(int) bool) bool { return k(i) }
	}
	return func(s []rune, i int, k func(int) bool) bool {
		return all[0](s, i, func(end int) bool { return seq(all[1:]...)(s, end, k) })
	}
}

func alt(all ...re) re {
	return func(s []rune, i int, k func(int) bool) bool {
		for _, x := range all {
			if x(s, i, k) {
				return true
			}
		}
		return false
	}
}

func opt(x re) re { return alt(x, seq()) }

func star(x re) re {
	var r re
	r = func(s []rune, i int, k func(int) bool) bool {
		return x(s, i, func(end int) bool { return r(s, end, k) }) || k(i)
	}
	return r
}

func plus(x re) re { return seq(x, star(x)) }

// notBeforeText is (?!\S).
func notBeforeText(s []rune, i int, k func(int) bool) bool {
	return (i == len(s) || isSpace(s[i])) && k(i)
}

func isLetter(r rune) bool { return unicode.Is(unicode.L, r) || r >= 0x2EBF0 && r <= 0x2EE5D }
func isNumber(r rune) bool { return unicode.Is(unicode.N, r) }
func isSpace(r rune) bool  { return unicode.Is(unicode.White_Space, r) }
func isOther(r rune) bool  { return !isLetter(r) && !isNumber(r) && !isSpace(r) }
func isLine(r rune) bool   { return r == '\r' || r == '\n' }
func isUpper(r rune) bool  { return isLetter(r) && !(r >= 'a' && r <= 'z') }
func isLower(r rune) bool  { return isLetter(r) && !(r >= 'A' && r <= 'Z') }
func isApart(r rune) bool  { return !isLine(r) && !isLetter(r) && !isNumber(r) }

func endings(fold bool) re {
	return alt(text("'s", fold), text("'t", fold), text("'re", fold), text("'ve", fold), text("'m", fold), text("'ll", fold), text("'d", fold))
}

var references = map[string]struct {
	split splitter
	re    re
}{
	"qwen2": {splitQwen2, alt(
		endings(true),
		seq(opt(set(isApart)), plus(set(isLetter))),
		set(isNumber),
		seq(opt(text(" ", false)), plus(set(isOther)), star(set(isLine))),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)},
	"gpt-4o": {splitGPT4o, alt(
		seq(opt(set(isApart)), star(set(isUpper)), plus(set(isLower)), opt(endings(true))),
		seq(opt(set(isApart)), plus(set(isUpper)), star(set(isLower)), opt(endings(true))),
		seq(set(isNumber), opt(set(isNumber)), opt(set(isNumber))),
		seq(opt(text(" ", false)), plus(set(isOther)), star(set(func(r rune) bool { return isLine(r) || r == '/' }))),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)},
	"gpt-2": {splitGPT2, alt(
		endings(false),
		seq(opt(text(" ", false)), plus(set(isLetter))),
		seq(opt(text(" ", false)), plus(set(isNumber))),
		seq(opt(text(" ", false)), plus(set(isOther))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)},
}

// checkSplit compares the pieces of a text; invalid bytes count as U+FFFD.
func checkSplit(t *testing.T, s string) {
	t.Helper()
	var runes []rune
	var starts []int
	for i, r := range s {
		runes, starts = append(runes, r), append(starts, i)
	}
	starts = append(starts, len(s))
	for name, ref := range references {
		at := 0
		for i := 0; i < len(s); {
			end := ref.split(s, i)
			if end <= i || end > len(s) {
				t.Fatalf("%s: %q: piece from %d to %d", name, s, i, end)
			}
			want := -1
			ref.re(runes, at, func(e int) bool { want = e; return true })
			if want < 0 || starts[want] != end {
				t.Fatalf("%s: %q: piece from %d ends at %d, the expression's at rune %d", name, s, i, end, want)
			}
			i, at = end, want
		}
	}
}

var splitSamples = []string{"", "a", "I'm you'RE it'S 'l 'll 'x '", "  two  spaces\n\n tab\t\tx \r\n\n  ", "x\u00a0\u3000y \u2028\n z", "½٣Ⅷ 12 345", "a\u0301 \u0301b",
	"camelCaseIT's HTTPServer'LL ÉCOLE'd École XÉY'T ÉaÉ ABCdef\u00c9GHI ßA'tx", "a/b//c\n/!/\r\n//x 1234567 ½123", "'S 'sS !A's\nB",
	"!?\r\n\n x", " !", "\n !", "\t!a", "日本 語🦙", "\xff\xfe a\xe4\xb8", "\U0002ebf0\u180e\ufeff", "   ", " \n \n x", "'", "''s", "'ſ"}

func TestSplit(t *testing.T) {
	for _, s := range splitSamples {
		checkSplit(t, s)
	}
	// Every character in some company.
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r > 0x3000 && r < 0x1F000 && r%61 != 0 || r > 0x20000 && r%509 != 0 {
			continue // long rows of equal ones
		}
		c := string(r)
		s := "a" + c + "1 " + c + c + "\n" + c
		if !utf8.ValidRune(r) {
			continue
		}
		checkSplit(t, s)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range splitSamples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) < 2000 { // the reference backtracks
			checkSplit(t, s)
		}
	})
}
