package tokenizer

import "strings"

// The splitters that stand for one regular expression over words, numbers and
// whitespace. Most vocabularies use one of them.

// words is the family of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?W+|\p{N}{1,D}| ?[^\s\p{N}W]+[T]*|\s*[\r\n]+|\s+(?!\S)|\s+
type words struct {
	letters class  // W: letters, or letters and marks
	digits  int    // D
	tail    string // T, the ASCII characters that end a run of signs
	once    bool   // T at most once
	spaced  bool   // single spaces between letters do not end a word, as exaone-moe has it
}

func (w words) split(s string, i int) int {
	if n := contraction(s, i, 0x20); n > 0 {
		return i + n
	}
	x := input{s, classes()}
	c, n := x.at(i)
	switch {
	case c&letter != 0:
		return w.word(x, i)
	case c&number != 0:
		return x.upTo(i, number, w.digits)
	}
	if c&newline == 0 {
		if k, _ := x.at(i + n); k&w.letters != 0 && (k&letter != 0 || !w.spaced) {
			return w.word(x, i+n)
		}
	}
	if c&w.letters != 0 {
		return w.word(x, i)
	}
	return x.signs(i, w.letters|number|space, w.tail, w.once)
}

// word ends the run of letters that begins at i.
func (w words) word(x input, i int) int {
	end := x.run(i, w.letters)
	if !w.spaced {
		return end
	}
	for end = x.run(end, letter|mark); end < len(x.s) && x.s[end] == ' '; end = x.run(end, letter|mark) {
		k, n := x.at(end + 1)
		if k&letter == 0 {
			break
		}
		end += 1 + n
	}
	return end
}

// signs ends a piece that begins at i with a sign, with a space before one, or
// with whitespace: ?[^words]+[tail]*|\s*[\r\n]+|\s+(?!\S)|\s+ with a space in
// front, where words are the classes that are no sign.
func (x input) signs(i int, words class, tail string, once bool) int {
	j := i
	if x.s[i] == ' ' {
		j++
	}
	end := x.runNot(j, words)
	if end == j {
		return x.whitespace(i, true)
	}
	for end < len(x.s) && strings.IndexByte(tail, x.s[end]) >= 0 {
		end++
		if once {
			break
		}
	}
	return end
}

// cased is the family of
//
//	[^\r\n\p{L}\p{N}]?U*L+E?|[^\r\n\p{L}\p{N}]?U+L*E?|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where U is a letter but not a to z, L a letter but not A to Z, and E one of 's 't
// 're 've 'm 'll 'd in any case. Letters beyond ASCII are both U and L, as llama.cpp
// has it.
type cased struct {
	digits  int  // D
	endings bool // E counts
}

func (w cased) split(s string, i int) int {
	x := input{s, classes()}
	c, n := x.at(i)
	start := i
	switch {
	case c&letter != 0:
	case c&number != 0:
		return x.upTo(i, number, w.digits)
	default:
		start = i + n
		if k, _ := x.at(start); k&letter == 0 || c&newline != 0 {
			return x.signs(i, letter|number|space, "\r\n/", false)
		}
	}
	end := x.casedWord(start)
	if w.endings && end < len(s) {
		end += contraction(s, end, 0x20)
	}
	return end
}

// casedWord returns the end of U*L+ from a letter on, or of U+L* if there is no
// U*L+.
func (x input) casedWord(i int) int {
	both := -1 // the end of the last letter that is U and L
	for {
		c, n := x.at(i)
		switch {
		case c&letter == 0 && both >= 0:
			return both // no L follows the run of U; a letter beyond ASCII in it is the L
		case c&letter == 0:
			return i
		}
		if x.s[i] >= 'a' && n == 1 {
			break
		}
		i += n
		if n > 1 {
			both = i
		}
	}
	for {
		c, n := x.at(i)
		if c&letter == 0 || n == 1 && x.s[i] <= 'Z' {
			return i
		}
		i += n
	}
}

// splitGPT2 stands for
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(s string, i int) int {
	if n := contraction(s, i, 0); n > 0 {
		return i + n
	}
	x := input{s, classes()}
	j := i
	if s[i] == ' ' {
		j++
	}
	switch c, n := x.at(j); {
	case c&letter != 0:
		return x.run(j+n, letter)
	case c&number != 0:
		return x.run(j+n, number)
	case c&space == 0 && n > 0:
		return x.runNot(j+n, letter|number|space)
	}
	return x.whitespace(i, false)
}

// splitKimi is kimi-k2's: Chinese characters apart from other letters, in this
// order at each place: a run of Chinese characters; [^\r\n\p{L}\p{N}]? and a run of
// other letters with an English ending; up to three digits; and the rest as words
// has it.
func splitKimi(s string, i int) int {
	x := input{s, classes()}
	c, n := x.at(i)
	if c&han != 0 {
		return x.run(i, han)
	}
	start := i
	switch {
	case c&letter != 0:
	case c&number != 0:
		return x.upTo(i, number, 3)
	default:
		start = i + n
		if k, _ := x.at(start); k&letter == 0 || k&han != 0 || c&newline != 0 {
			return x.signs(i, letter|number|space, "\r\n", false)
		}
	}
	end := start
	for {
		k, n := x.at(end)
		if k&letter == 0 || k&han != 0 {
			break
		}
		end += n
	}
	if end < len(s) {
		end += contraction(s, end, 0x20)
	}
	return end
}
