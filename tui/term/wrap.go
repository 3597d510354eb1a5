package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Span is one line of wrapped text: text[start:end] of its source.
type Span struct{ Start, End int }

// Wrapped keeps the lines of a text that grows at its end. Wrapping is greedy,
// so all lines but the last are final: growing costs the last line, not the
// text.
type Wrapped struct {
	width int
	Lines []Span
	done  int // length of the source that has been wrapped
}

// Update wraps what has been added to the source, or everything if the width
// changed.
func (w *Wrapped) Update(src string, width int, m ansi.Method) {
	width = max(width, 1)
	if width != w.width || len(src) < w.done {
		*w = Wrapped{width: width, Lines: w.Lines[:0]}
	}
	if len(src) == w.done && len(w.Lines) > 0 {
		return
	}
	from := 0
	if n := len(w.Lines); n > 0 {
		from = w.Lines[n-1].Start
		w.Lines = w.Lines[:n-1]
	}
	w.Lines = Wrap(w.Lines, src, from, width, m)
	w.done = len(src)
}

// Wrap wraps src[from:] into lines of at most width columns. It
// breaks at spaces, which are dropped at a break, and inside words that are
// longer than a line; a number keeps its percent sign. Spaces at the start of a paragraph are kept: they are
// indentation.
func Wrap(lines []Span, src string, from, width int, m ansi.Method) []Span {
	start, col := from, 0
	breakEnd, breakNext, breakCol := -1, -1, 0 // the last place to break at: end of the line, start of the next
	indent := true                             // nothing but spaces so far on this line
	i := from
	for i < len(src) {
		if src[i] == '\n' {
			lines = append(lines, Span{start, i})
			i++
			start, col, breakEnd, indent = i, 0, -1, true
			continue
		}
		n, cw := cluster(src[i:], m)
		if src[i] == ' ' && !indent && !(i+1 < len(src) && src[i+1] == '%') {
			if breakEnd < 0 || breakNext != i { // the first of a run of spaces ends the line
				breakEnd = i
			}
			breakNext, breakCol = i+1, col+1
			i++
			col++
			continue
		}
		if col+cw > width && i > start {
			if breakEnd >= 0 {
				lines = append(lines, Span{start, breakEnd})
				start = breakNext
				col -= breakCol
			} else {
				lines = append(lines, Span{start, i})
				start, col = i, 0
			}
			breakEnd = -1
			if col+cw > width && i > start { // the word alone is longer than a line
				continue
			}
		}
		indent = indent && src[i] == ' '
		i += n
		col += cw
	}
	return append(lines, Span{start, len(src)})
}

// cluster returns the bytes and the columns of the first character.
func cluster(s string, m ansi.Method) (n, w int) {
	if s[0] < 0x80 && (len(s) == 1 || s[1] < 0x80) {
		return 1, 1
	}
	c, w := ansi.FirstGraphemeCluster(s, m)
	return len(c), w
}

// Words returns a text as lines of at most width columns, without the spaces at
// which it was broken.
func Words(text string, width int) []string {
	var out []string
	for _, l := range Wrap(nil, text, 0, max(width, 1), 0) {
		out = append(out, strings.TrimRight(text[l.Start:l.End], " "))
	}
	return out
}
