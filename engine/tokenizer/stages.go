package tokenizer

import (
	"slices"
	"unicode/utf8"
)

// The splitters of pre-tokenizers that apply several regular expressions one after
// the other, each to the pieces that the one before has left.

// matcher returns the end of the match that begins at i, or i if none does.
type matcher func(x input, i int) int

// isolate makes a splitter of a matcher: what lies between matches is a piece, too.
func isolate(match matcher) splitter {
	return func(s string, i int) int {
		x := input{s, classes()}
		if end := match(x, i); end > i {
			return end
		}
		for {
			_, n := x.at(i)
			if i += n; i == len(s) || match(x, i) > i {
				return i
			}
		}
	}
}

// ranges is a set of characters: first and last of each range, ascending.
type ranges [][2]rune

// run returns the end of the longest run of characters of the set from i on.
// Whitespace is in none: llama.cpp hides it from sets.
func (set ranges) run(x input, i int) int {
	for i < len(x.s) {
		r, n := utf8.DecodeRuneInString(x.s[i:])
		_, ok := slices.BinarySearchFunc(set, r, func(e [2]rune, r rune) int {
			switch {
			case e[1] < r:
				return -1
			case e[0] > r:
				return 1
			}
			return 0
		})
		if !ok || x.t[r]&space != 0 {
			return i
		}
		i += n
	}
	return i
}

// afterSpace matches what run matches, with one whitespace character in front if
// there is one.
func afterSpace(run matcher) matcher {
	return func(x input, i int) int {
		if c, n := x.at(i); c&space != 0 {
			if end := run(x, i+n); end > i+n {
				return end
			}
		}
		return run(x, i)
	}
}

// runOf matches a run of characters of the classes in c.
func runOf(c class) matcher { return func(x input, i int) int { return x.run(i, c) } }

// upTo matches a run of at most n characters of the classes in c.
func upTo(c class, n int) matcher { return func(x input, i int) int { return x.upTo(i, c, n) } }

var (
	// cjk are the characters that DeepSeek's first vocabularies keep together.
	cjk = ranges{{0x800, 0x9FA5}, {0xAC00, 0xD7FF}}
	// kanaHan are those of the later ones.
	kanaHan = ranges{{0x3040, 0x30FF}, {0x4E00, 0x9FA5}}
	// deepseekSigns are ASCII and full-width punctuation.
	deepseekSigns = ranges{{'!', '/'}, {':', '~'}, {0x2018, 0x201F}, {0x3001, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}}
)

// splitEnd cuts off whitespace at the text's end: \s+$.
func splitEnd(s string, i int) int {
	x, end := input{s, classes()}, len(s)
	for end > i {
		r, n := utf8.DecodeLastRuneInString(s[i:end])
		if x.t[r]&space == 0 || r == utf8.RuneError && n == 1 {
			break
		}
		end -= n
	}
	if end == i {
		return len(s)
	}
	return end
}

// wordsDeepSeek stands for
//
//	[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func wordsDeepSeek(x input, i int) int {
	c, n := x.at(i)
	next, m := x.at(i + n)
	if b := x.s[i]; n == 1 && c&(punct|symbol) != 0 && m == 1 && next&letter != 0 && b < utf8.RuneSelf {
		return x.ascii(i + n)
	}
	if c&(newline|letter|punct|symbol) == 0 && next&(letter|mark) != 0 {
		return x.run(i+n, letter|mark)
	}
	if c&(letter|mark) != 0 {
		return x.run(i, letter|mark)
	}
	j := i
	if x.s[i] == ' ' {
		j++
	}
	if end := x.run(j, punct|symbol); end > j {
		return x.run(end, newline)
	}
	if c&space != 0 {
		return x.whitespace(i, true)
	}
	return i
}

// ascii returns the end of the run of ASCII letters from i on.
func (x input) ascii(i int) int {
	for {
		c, n := x.at(i)
		if n != 1 || c&letter == 0 {
			return i
		}
		i++
	}
}

// casedLetters are the letters with cases, as deepseek-llm lists them: those of a
// Unicode from before 2018.
var casedLetters = ranges{
	{0x41, 0x5A}, {0x61, 0x7A}, {0xB5, 0xB5}, {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0x1BA}, {0x1BC, 0x1BF}, {0x1C4, 0x293},
	{0x295, 0x2AF}, {0x370, 0x373}, {0x376, 0x376}, {0x377, 0x377}, {0x37B, 0x37D}, {0x37F, 0x37F}, {0x386, 0x386},
	{0x388, 0x38A}, {0x38C, 0x38C}, {0x38E, 0x3A1}, {0x3A3, 0x3F5}, {0x3F7, 0x481}, {0x48A, 0x52F}, {0x531, 0x556},
	{0x10A0, 0x10C5}, {0x13A0, 0x13F5}, {0x13F8, 0x13FD}, {0x1C90, 0x1CBA}, {0x1CBD, 0x1CBF}, {0x1D00, 0x1D2B},
	{0x1D6B, 0x1D77}, {0x1D79, 0x1D9A}, {0x1E00, 0x1F15}, {0x1F18, 0x1F1D}, {0x1F20, 0x1F45}, {0x1F48, 0x1F4D},
	{0x1F50, 0x1F57}, {0x1F59, 0x1F59}, {0x1F5B, 0x1F5B}, {0x1F5D, 0x1F5D}, {0x1F5F, 0x1F7D}, {0x1F80, 0x1FB4},
	{0x1FB6, 0x1FBC}, {0x1FBE, 0x1FBE}, {0x1FC2, 0x1FC4}, {0x1FC6, 0x1FCC}, {0x1FD0, 0x1FD3}, {0x1FD6, 0x1FDB},
	{0x1FE0, 0x1FEC}, {0x1FF2, 0x1FF4}, {0x1FF6, 0x1FFC}, {0x2102, 0x2102}, {0x2107, 0x2107}, {0x210A, 0x2113},
	{0x2115, 0x2115}, {0x2119, 0x211D}, {0x2124, 0x2124}, {0x2126, 0x2126}, {0x2128, 0x2128}, {0x212A, 0x212D},
	{0x212F, 0x2134}, {0x2139, 0x2139}, {0x213C, 0x213F}, {0x2145, 0x2149}, {0x214E, 0x214E}, {0x2183, 0x2183},
	{0x2184, 0x2184}, {0x2C00, 0x2C7B}, {0x2C7E, 0x2CE4}, {0x2CEB, 0x2CEE}, {0x2CF2, 0x2CF2}, {0x2CF3, 0x2CF3},
	{0xA640, 0xA66D}, {0xA680, 0xA69B}, {0xA722, 0xA76F}, {0xA771, 0xA787}, {0xA78B, 0xA78E}, {0xAB70, 0xABBF},
	{0xFB00, 0xFB06}, {0xFB13, 0xFB17}, {0xFF21, 0xFF3A}, {0xFF41, 0xFF5A}, {0x10400, 0x1044F}, {0x104B0, 0x104D3},
	{0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
}
