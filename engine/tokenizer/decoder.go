package tokenizer

import "unicode/utf8"

// replacement is U+FFFD, shown for bytes that are no UTF-8.
const replacement = "\uFFFD"

// Decoder turns a stream of ids into text that is valid UTF-8 at every moment.
// A character whose bytes come in several tokens is held back until it is whole;
// bytes that can no longer become a character are shown as U+FFFD, one for each
// sequence that a character was begun with (Unicode standard, chapter 3, U+FFFD
// substitution of maximal subparts).
type Decoder struct {
	// RenderSpecial shows control tokens by their text.
	RenderSpecial bool

	t    *Tokenizer
	held []byte // an incomplete character, at most 3 bytes, between calls
}

// NewDecoder returns a decoder at the start of a text.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t, held: make([]byte, 0, 64)} }

// Push adds a token and returns the text that is certain now; often that is
// empty.
//
// Most tokens are whole characters, and then nothing is allocated: the text is a
// part of the vocabulary's.
func (d *Decoder) Push(id int32) string {
	if len(d.held) == 0 && id >= 0 && int(id) < d.t.Len() {
		if d.t.hidden(id) && !d.RenderSpecial {
			return ""
		}
		if raw := d.t.raw(id); utf8.ValidString(raw) {
			return raw
		}
	}
	d.held = d.t.AppendBytes(d.held, id, d.RenderSpecial)
	return d.take(false)
}

// Flush ends the text: what is still held back can no longer be completed. The
// decoder is then at the start of another text.
func (d *Decoder) Flush() string { return d.take(true) }

func (d *Decoder) take(final bool) string {
	b := d.held
	i := 0
	for i < len(b) { // the common case: all of it is valid
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	if i == len(b) {
		d.held = b[:0]
		return string(b)
	}
	out := append([]byte(nil), b[:i]...)
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r != utf8.RuneError || n > 1:
			out = append(out, b[i:i+n]...)
		case !final && !utf8.FullRune(b[i:]):
			d.held = b[:copy(b, b[i:])]
			return string(out)
		default:
			out = append(out, replacement...)
			n = subpart(b[i:])
		}
		i += n
	}
	d.held = b[:0]
	return string(out)
}

// subpart returns the length of the longest beginning of b that some character
// could have begun with, and 1 if there is none. b does not begin with a whole
// character.
func subpart(b []byte) int {
	n := 1
	for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) {
		// b[:n] may still become a character; does the next byte fit?
		if n+1 <= len(b) && (utf8.FullRune(b[:n+1]) && !utf8.Valid(b[:n+1])) {
			break
		}
		n++
	}
	return n
}
