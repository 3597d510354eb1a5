package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A model, its file or a pasted prompt may carry anything, escape sequences
// included; a terminal obeys those. Everything that bmoe did not write itself
// passes through here before it is drawn: what is left are printable
// characters, spaces and line feeds.

// Clean turns text from outside into what may be shown, line feeds kept.
func Clean(s string) string {
	var (
		c Cleaner
		b strings.Builder
	)
	c.Write(&b, s)
	return b.String()
}

// CleanLine does the same for text that has one line to be shown on.
func CleanLine(s string) string {
	return strings.Join(strings.Fields(Clean(s)), " ")
}

// Cleaner cleans a text that arrives in pieces. The pieces may end anywhere
// but inside a character.
type Cleaner struct {
	cr bool // the last piece ended in a carriage return, shown as a line feed
}

// Write adds the clean form of a piece to dst.
func (c *Cleaner) Write(dst *strings.Builder, s string) {
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b < 0x7f {
			c.cr = false
			dst.WriteByte(b)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		cr := c.cr
		c.cr = r == '\r'
		switch {
		case r == '\n':
			if !cr {
				dst.WriteByte('\n')
			}
		case r == '\r', r == '\u2028', r == '\u2029', r == '\v', r == '\f':
			dst.WriteByte('\n')
		case r == '\t':
			dst.WriteString("    ")
		case r < ' ':
			dst.WriteByte('^') // caret notation: an escape shows as ^[
			dst.WriteByte(byte(r) + '@')
		case r == 0x7f:
			dst.WriteString("^?")
		case unicode.IsControl(r): // C1: U+009B is a control sequence introducer to some terminals
			dst.WriteByte('?')
		case hidden(r):
		default:
			dst.WriteRune(r)
		}
	}
}

// Hidden counts the characters of a text that Clean leaves out without a trace.
func Hidden(s string) int {
	n := 0
	for _, r := range s {
		if hidden(r) {
			n++
		}
	}
	return n
}

// hidden reports characters without a picture of their own that can reorder or
// hide the text around them: bidirectional overrides, tag characters, the byte
// order mark. Joiners stay: scripts need them.
func hidden(r rune) bool {
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x206F, r >= 0xFFF9 && r <= 0xFFFB:
		return true
	case r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case r == 0xFEFF, r == 0x061C, r == 0x200E, r == 0x200F, r == 0x00AD:
		return true
	}
	return false
}

// toASCII replaces what a terminal without UTF-8 would show as rubbish.
func toASCII(s string) string {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
		case r == '\u2018' || r == '\u2019':
			b.WriteByte('\'')
		case r == '\u201c' || r == '\u201d':
			b.WriteByte('"')
		case r == '\u2013' || r == '\u2014' || r == '\u2212':
			b.WriteByte('-')
		case r == '\u2026':
			b.WriteString("...")
		case r == '\u00a0':
			b.WriteByte(' ')
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}
