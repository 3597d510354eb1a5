package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// splitter returns the end of the piece of s that begins at i, 0 <= i < len(s).
// It always gets ahead by at least one byte.
type splitter func(s string, i int) int

// class tells what the splitters must know of a character. The regular
// expressions that they stand for ask for these properties. A character of none of
// them has class 0, and so has a byte that is not UTF-8.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	space                     // \s: the property White_Space, line ends included
	newline                   // \r and \n
	mark                      // \p{M}
	punct                     // \p{P}
	symbol                    // \p{S}
	han                       // Chinese characters, as kimi-k2 counts them
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
	set(mark, unicode.M)
	set(punct, unicode.P)
	set(symbol, unicode.S)
	t['\r'] |= newline
	t['\n'] |= newline
	// CJK extension I, in llama.cpp's tables (Unicode 15.1) but not in Go's (15.0).
	for r := 0x2EBF0; r <= 0x2EE5D; r++ {
		t[r] = letter
	}
	for _, blocks := range hanBlocks {
		for r := blocks[0]; r <= blocks[1]; r++ {
			t[r] |= han
		}
	}
	return t
})

// hanBlocks are the blocks of ideographs. The property Script=Han has a few signs
// more, such as U+3005, which llama.cpp does not count.
var hanBlocks = [][2]rune{{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2EBEF}, {0x2F800, 0x2FA1F}}

// input is a text with the table of classes at hand.
type input struct {
	s string
	t *[unicode.MaxRune + 1]class
}

// at returns the class and the width of the character at i, which may be the end
// of the text: then the width is 0.
func (x input) at(i int) (class, int) {
	if i >= len(x.s) {
		return 0, 0
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

// runNot returns the end of the longest run of characters from i on whose class
// has no bit of c.
func (x input) runNot(i int, c class) int {
	for {
		k, n := x.at(i)
		if k&c != 0 || n == 0 {
			return i
		}
		i += n
	}
}

// upTo returns the end of the longest run of characters of class c from i on, of
// at most n characters.
func (x input) upTo(i int, c class, n int) int {
	for ; n > 0; n-- {
		k, w := x.at(i)
		if k&c == 0 {
			break
		}
		i += w
	}
	return i
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
