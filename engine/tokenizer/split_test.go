package tokenizer

import (
	"slices"
	"strings"
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

// space opt: a space, if there is one.
var spaceOpt = opt(text(" ", false))

// wordsRE is what words stands for.
func wordsRE(word re, digits, tail re, isSign func(rune) bool) re {
	return alt(
		endings(true),
		seq(opt(set(isApart)), word),
		digits,
		seq(spaceOpt, plus(set(isSign)), tail),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)
}

func casedRE(ending, digits re) re {
	return alt(
		seq(opt(set(isApart)), star(set(isUpper)), plus(set(isLower)), ending),
		seq(opt(set(isApart)), plus(set(isUpper)), star(set(isLower)), ending),
		digits,
		seq(spaceOpt, plus(set(isOther)), star(set(isLineSlash))),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)
}

func isMark(r rune) bool        { return unicode.Is(unicode.M, r) }
func isPunct(r rune) bool       { return unicode.Is(unicode.P, r) }
func isSymbol(r rune) bool      { return unicode.Is(unicode.S, r) }
func isPS(r rune) bool          { return isPunct(r) || isSymbol(r) }
func isASCIILetter(r rune) bool { return r < 0x80 && isLetter(r) }
func isASCIISign(r rune) bool   { return r < 0x80 && isPS(r) }
func isLineSlash(r rune) bool   { return isLine(r) || r == '/' }
func isLetterMark(r rune) bool  { return isLetter(r) || isMark(r) }
func isHanBlock(r rune) bool {
	return r >= 0x3400 && r <= 0x4DBF || r >= 0x4E00 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2EBEF || r >= 0x2F800 && r <= 0x2FA1F
}
func in(pairs ...rune) func(rune) bool {
	return func(r rune) bool {
		for i := 0; i < len(pairs) && !isSpace(r); i += 2 {
			if r >= pairs[i] && r <= pairs[i+1] {
				return true
			}
		}
		return false
	}
}

// end is $.
func atEnd(s []rune, i int, k func(int) bool) bool { return i == len(s) && k(i) }

var (
	oneDigit    = set(isNumber)
	threeNumber = seq(set(isNumber), opt(set(isNumber)), opt(set(isNumber)))
	lines       = star(set(isLine))
	gpt2RE      = alt(
		endings(false),
		seq(spaceOpt, plus(set(isLetter))),
		seq(spaceOpt, plus(set(isNumber))),
		seq(spaceOpt, plus(set(isOther))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)
	qwen2RE = wordsRE(plus(set(isLetter)), oneDigit, lines, isOther)
	linesRE = alt(plus(set(func(r rune) bool { return r != '\n' })), plus(text("\n", false)))
	cjkRE   = plus(set(in(0x800, 0x9FA5, 0xAC00, 0xD7FF)))
)

// references are the regular expressions of a pre-tokenizer, in their order.
var references = map[string][]re{
	"qwen2":      {qwen2RE},
	"llama-bpe":  {wordsRE(plus(set(isLetter)), threeNumber, lines, isOther)},
	"qwen35":     {wordsRE(plus(set(isLetterMark)), oneDigit, lines, func(r rune) bool { return isOther(r) && !isMark(r) })},
	"seed-coder": {wordsRE(plus(set(isLetter)), oneDigit, seq(), isOther)},
	"exaone-moe": {wordsRE(plus(seq(set(isLetter), star(set(isMark)), star(seq(text(" ", false), set(isLetter), star(set(isMark)))))), oneDigit,
		opt(set(isLineSlash)), isOther)},
	"gpt-4o": {casedRE(opt(endings(true)), threeNumber)},
	"tekken": {casedRE(seq(), oneDigit)},
	"gpt-2":  {gpt2RE},
	"refact": {oneDigit, gpt2RE},
	"kimi-k2": {alt(
		plus(set(isHanBlock)),
		seq(opt(set(isApart)), plus(set(func(r rune) bool { return isLetter(r) && !isHanBlock(r) })), opt(endings(true))),
		threeNumber,
		seq(spaceOpt, plus(set(isOther)), lines),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)},
	"deepseek-v3": {threeNumber, plus(set(in(0x3040, 0x30FF, 0x4E00, 0x9FA5))), alt(
		seq(set(isASCIISign), plus(set(isASCIILetter))),
		seq(opt(set(func(r rune) bool { return !isLine(r) && !isLetter(r) && !isPS(r) })), plus(set(isLetterMark))),
		seq(spaceOpt, plus(set(isPS)), lines),
		seq(star(set(isSpace)), plus(set(isLine))),
		seq(plus(set(isSpace)), notBeforeText),
		plus(set(isSpace)),
	)},
	"deepseek-coder": {set(isLine), seq(opt(set(isSpace)), plus(set(isLetter))), seq(opt(set(isSpace)), plus(set(isPunct))),
		cjkRE, oneDigit},
	"deepseek-llm": {set(isLine), seq(opt(set(isSpace)), plus(set(func(r rune) bool {
		for _, e := range casedLetters {
			if r >= e[0] && r <= e[1] {
				return true
			}
		}
		return false
	}))), seq(opt(set(isSpace)), plus(set(in('!', '/', ':', '~', 0xFF01, 0xFF0F, 0xFF1A, 0xFF5E, 0x2018, 0x201F, 0x3001, 0x3002)))),
		seq(plus(set(isSpace)), atEnd), cjkRE, plus(set(isNumber))},
	"falcon": {plus(set(func(r rune) bool { return isPunct(r) || strings.ContainsRune("$+<=>^~|`", r) })), gpt2RE,
		seq(set(in('0', '9')), set(in('0', '9')), set(in('0', '9')))},
	"gemma4": {linesRE},
	"laguna": {linesRE, qwen2RE},
}

// pieces returns the pieces that stages leave of a text.
func pieces(stages []splitter, s string) []string {
	if len(stages) == 0 {
		return []string{s}
	}
	var all []string
	for i := 0; i < len(s); {
		end := stages[0](s, i)
		if end <= i || end > len(s) {
			panic("a splitter does not get ahead")
		}
		all = append(all, pieces(stages[1:], s[i:end])...)
		i = end
	}
	return all
}

// literal is pieces by regular expressions; invalid bytes count as U+FFFD.
func literal(stages []re, s string) []string {
	if len(stages) == 0 {
		return []string{s}
	}
	var runes []rune
	var starts []int
	for i, r := range s {
		runes, starts = append(runes, r), append(starts, i)
	}
	starts = append(starts, len(s))
	var all []string
	piece := func(from, to int) {
		if from < to {
			all = append(all, literal(stages[1:], s[starts[from]:starts[to]])...)
		}
	}
	gap := 0
	for at := 0; at < len(runes); {
		end := at
		stages[0](runes, at, func(e int) bool { end = e; return true })
		if end == at {
			at++
			continue
		}
		piece(gap, at)
		piece(at, end)
		gap, at = end, end
	}
	piece(gap, len(runes))
	return all
}

// checkSplit compares the pieces of a text.
func checkSplit(t *testing.T, s string) {
	t.Helper()
	for name, ref := range references {
		if got, want := pieces(preTokenizers[name].stages, s), literal(ref, s); !slices.Equal(got, want) {
			t.Fatalf("%s: %q: got %q, want %q", name, s, got, want)
		}
	}
}

// Every splitting rule has a reference.
func TestEveryRuleHasAReference(t *testing.T) {
	seen := map[string]bool{}
	key := func(p preTokenizer) string { return strings.Join(pieces(p.stages, ruleProbe), "\x00") }
	for name := range references {
		seen[key(preTokenizers[name])] = true
	}
	for name, p := range preTokenizers {
		if !seen[key(p)] && name != "default" { // falcon's, with \p{N}+ and without the backtick
			t.Errorf("%s splits as none of the references does", name)
		}
	}
}

const ruleProbe = "a\u0301b 12345 I'M x`y //\n\r\n =a b \u4e2d\u6587\u3042x don't CamelCase 1\u0967 \n\n  "

var splitSamples = []string{"", "a", "I'm you'RE it'S 'l 'll 'x '", "  two  spaces\n\n tab\t\tx \r\n\n  ", "x\u00a0\u3000y \u2028\n z", "½٣Ⅷ 12 345", "a\u0301 \u0301b",
	"camelCaseIT's HTTPServer'LL ÉCOLE'd École XÉY'T ÉaÉ ABCdef\u00c9GHI ßA'tx", "a/b//c\n/!/\r\n//x 1234567 ½123", "'S 'sS !A's\nB",
	"!?\r\n\n x", " !", "\n !", "\t!a", "日本 語🦙", "\xff\xfe a\xe4\xb8", " \xc2", "\U0002ebf0\u180e\ufeff", "   ", " \n \n x", "'", "''s", "'ſ"}

func TestSplit(t *testing.T) {
	for _, s := range splitSamples {
		checkSplit(t, s)
	}
	// Characters in some company.
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r > 0x380 && r%61 != 0 || r > 0x20000 && r%509 != 0 {
			continue // TestClasses looks at every one
		}
		c := string(r)
		s := "a" + c + "1 " + c + c + "\n" + c
		if !utf8.ValidRune(r) {
			continue
		}
		checkSplit(t, s)
	}
}

// The class of every character.
func TestClasses(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		var want class
		for i, is := range [...]func(rune) bool{isLetter, isNumber, isSpace, isLine, isMark, isPunct, isSymbol, isHanBlock} {
			if is(r) {
				want |= 1 << i
			}
		}
		if got := classes()[r]; got != want {
			t.Fatalf("%U: %b, want %b", r, got, want)
		}
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
