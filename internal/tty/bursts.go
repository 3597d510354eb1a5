package tty

import (
	"bytes"
	"time"
)

// The marks of a bracketed paste.
const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// ctrlC are the ways in which terminals send Ctrl+C: plain, as xterm with
// modifyOtherKeys, and by the protocol of kitty.
var ctrlC = [][]byte{{3}, []byte("\x1b[27;5;99~"), []byte("\x1b[99;5u")}

// endlessAfter is how long the end of a bracketed paste may be awaited before
// any Ctrl+C in it counts as the key.
const endlessAfter = time.Second

// fewBytes is what keys that are typed one after the other come to at most.
const fewBytes = 16

// bursts marks pastes from terminals that do not mark them themselves: several
// lines that arrive at once were not typed. Sent as keys, each line end would be
// an Enter, and the lines between would be lost.
type bursts struct {
	marked bool      // a paste that the terminal has begun
	since  time.Time // when
	tail   []byte    // its last bytes, which may begin the end mark
	open   bool      // a paste that was begun here
	now    func() time.Time
}

// feed appends to dst what is to be passed on for the bytes of one burst.
func (p *bursts) feed(dst, b []byte) []byte {
	for len(b) > 0 {
		if p.marked {
			dst, b = p.inPaste(dst, b)
			continue
		}
		n := textLen(b)
		if text := b[:n]; p.open || severalLines(text) {
			if !p.open && n > 0 {
				dst, p.open = append(dst, pasteStart...), true
			}
			dst = append(dst, text...)
		} else {
			dst = append(dst, text...)
		}
		b = b[n:]
		if len(b) == 0 {
			break
		}
		dst = p.quiet(dst)
		n = keyLen(b)
		if bytes.HasPrefix(b, []byte(pasteStart)) {
			p.marked, p.since, p.tail = true, p.now(), p.tail[:0]
		}
		dst, b = append(dst, b[:n]...), b[n:]
	}
	return dst
}

// quiet ends a paste that was begun here, once nothing more comes.
func (p *bursts) quiet(dst []byte) []byte {
	if p.open {
		p.open = false
		dst = append(dst, pasteEnd...)
	}
	return dst
}

// inPaste passes on what belongs to a paste that the terminal has begun. One
// whose end never comes gives way to Ctrl+C.
func (p *bursts) inPaste(dst, b []byte) (more, rest []byte) {
	for _, key := range ctrlC {
		at := -1
		if bytes.HasPrefix(b, key) && len(b) <= fewBytes { // typed, perhaps with the next keys
			at = 0
		} else if p.now().Sub(p.since) > endlessAfter {
			at = bytes.Index(b, key)
		}
		if at >= 0 {
			p.marked = false
			dst = append(append(dst, b[:at]...), pasteEnd...)
			return append(dst, key...), b[at+len(key):]
		}
	}
	joined := append(p.tail, b...)
	if at := bytes.Index(joined, []byte(pasteEnd)); at >= 0 {
		p.marked = false
		n := at + len(pasteEnd) - len(p.tail) // of b
		return append(dst, b[:n]...), b[n:]
	}
	p.tail = append([]byte(nil), joined[max(0, len(joined)-len(pasteEnd)+1):]...)
	return append(dst, b...), nil
}

// textLen is how many bytes at the start of b are text: everything but keys
// that are not characters. Tabs and line ends are text.
func textLen(b []byte) int {
	for i, c := range b {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			return i
		}
	}
	return len(b)
}

// keyLen is the length of the key or the answer at the start of b, which begins
// with a control character.
func keyLen(b []byte) int {
	if b[0] != 0x1b || len(b) == 1 {
		return 1
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case 'O':
		return min(3, len(b))
	case ']', 'P', '_', '^', 'X': // a string, up to BEL or ESC \
		for i := 2; i < len(b); i++ {
			if b[i] == 7 {
				return i + 1
			}
			if b[i] == 0x1b {
				return min(i+2, len(b))
			}
		}
		return len(b)
	}
	return 2
}

// severalLines reports whether a line end is followed by more than line ends. A
// line end at the start is an Enter that came before.
func severalLines(text []byte) bool {
	text = bytes.Trim(text, "\r\n")
	return bytes.ContainsAny(text, "\r\n")
}
