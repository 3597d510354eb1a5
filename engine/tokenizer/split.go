package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// splitter returns the end of the piece of s that begins at i, 0 <= i < len(s).
// It always gets ahead by at least one byte.
type splitter func(s string, i int) int

// preTokenizer is one value of tokenizer.ggml.pre.
type preTokenizer struct {
	split splitter
}

// preTokenizers are the values of tokenizer.ggml.pre that are understood. Names
// that llama.cpp treats alike share a splitter.
var preTokenizers = map[string]preTokenizer{
	"qwen2":            {split: splitQwen2},
	"deepseek-r1-qwen": {split: splitQwen2},
	"megrez":           {split: splitQwen2},
	"hunyuan":          {split: splitQwen2},
	"gpt-4o":           {split: splitGPT4o},
	"minimax-m2":       {split: splitGPT4o},
	"gpt-2":            {split: splitGPT2},
	"phi-2":            {split: splitGPT2},
	"mpt":              {split: splitGPT2},
	"olmo":             {split: splitGPT2},
}

// class tells what the splitters must know of a character. The regular
// expressions that they stand for ask for \p{L}, \p{N}, \s and [\r\n]. A character
// of none of these has class other, and so has a byte that is not UTF-8.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	space                     // \s: the property White_Space, line ends included
	newline                   // \r and \n
	other   class = 0
)

// classes holds the class of every character. It is filled at first use, from the
// range tables of package unicode, where a look-up takes too long. Untouched
// pages of it cost no memory.
var classes = sync.OnceValue(func() *[unicode.MaxRune + 1]class {
	t := new([unicode.MaxRune + 1]class)
	set := func(c class, table *unicode.RangeTable) {
		for _, r := range table.R16 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				t[x] |= c
			}
		}
		for _, r := range table.R32 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				t[x] |= c
			}
		}
	}
	set(letter, unicode.L)
	set(number, unicode.N)
	set(space, unicode.White_Space)
	t['\r'] |= newline
	t['\n'] |= newline
	// CJK extension I, in llama.cpp's tables (Unicode 15.1) but not in Go's (15.0).
	for r := 0x2EBF0; r <= 0x2EE5D; r++ {
		t[r] = letter
	}
	return t
})

// input is a text with the table of classes at hand.
type input struct {
	s string
	t *[unicode.MaxRune + 1]class
}

// at returns the class and the width of the character at i, which may be the end
// of the text: then the width is 0.
func (x input) at(i int) (class, int) {
	if i >= len(x.s) {
		return other, 0
	}
	if c := x.s[i]; c < utf8.RuneSelf {
		return x.t[c], 1
	}
	r, n := utf8.DecodeRuneInString(x.s[i:])
	return x.t[r], n
}

// run returns the end of the longest run of characters from i on whose class has
// a bit of c.
func (x input) run(i int, c class) int {
	for {
		k, n := x.at(i)
		if k&c == 0 {
			return i
		}
		i += n
	}
}

// runOther is run for characters of class other.
func (x input) runOther(i int) int {
	for {
		k, n := x.at(i)
		if k != other || n == 0 {
			return i
		}
		i += n
	}
}

// whitespace ends a piece that begins at i with whitespace: \s+(?!\S)|\s+. The
// last character of a run goes to what follows it, unless it is all there is. With
// lines set, \s*[\r\n]+ comes first: the piece ends with the run's last line end.
func (x input) whitespace(i int, lines bool) int {
	last, line, j := i, 0, i
	for {
		k, n := x.at(j)
		if k&space == 0 {
			break
		}
		last = j
		j += n
		if k&newline != 0 {
			line = j
		}
	}
	switch {
	case lines && line > 0:
		return line
	case j == len(x.s) || last == i:
		return j
	}
	return last
}

// contraction returns the length of an English ending at i ('s 't 'm 'd 're 've
// 'll), or 0. The mask 0x20 makes upper case equal to lower case.
func contraction(s string, i int, mask byte) int {
	if s[i] != '\'' || i+1 >= len(s) {
		return 0
	}
	switch c := s[i+1] | mask; c {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if i+2 >= len(s) {
			return 0
		}
		if d := s[i+2] | mask; d == 'e' && c != 'l' || d == 'l' && c == 'l' {
			return 3
		}
	}
	return 0
}

// splitQwen2 stands for
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitQwen2(s string, i int) int {
	if n := contraction(s, i, 0x20); n > 0 {
		return i + n
	}
	x := input{s, classes()}
	c, n := x.at(i)
	switch {
	case c&letter != 0:
		return x.run(i+n, letter)
	case c&number != 0:
		return i + n
	}
	if c&newline == 0 {
		if k, m := x.at(i + n); k&letter != 0 {
			return x.run(i+n+m, letter)
		}
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := x.runOther(j); end > j {
		return x.run(end, newline)
	}
	return x.whitespace(i, true)
}

// splitGPT4o stands for
//
//	[^\r\n\p{L}\p{N}]?U*L+E?|[^\r\n\p{L}\p{N}]?U+L*E?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where U is a letter but not a to z, L a letter but not A to Z, and E one of 's 't
// 're 've 'm 'll 'd in any case. Letters beyond ASCII are both U and L, as llama.cpp
// has it.
func splitGPT4o(s string, i int) int {
	x := input{s, classes()}
	c, n := x.at(i)
	start := i
	switch {
	case c&letter != 0:
	case c&number != 0:
		end := i + n
		for range 2 {
			if c, n = x.at(end); c&number != 0 {
				end += n
			}
		}
		return end
	default:
		start = i + n
		if k, _ := x.at(start); k&letter == 0 || c&newline != 0 {
			start = -1
		}
	}
	if start >= 0 {
		end := x.word(start)
		if end < len(s) {
			end += contraction(s, end, 0x20)
		}
		return end
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := x.runOther(j); end > j {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
			end++
		}
		return end
	}
	return x.whitespace(i, true)
}

// word returns the end of U*L+ from a letter on, or of U+L* if there is no U*L+.
func (x input) word(i int) int {
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
	case c == other && n > 0:
		return x.runOther(j + n)
	}
	return x.whitespace(i, false)
}
