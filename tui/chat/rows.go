package chat

import (
	"strings"

	"bmoe/tui/term"

	"github.com/charmbracelet/x/ansi"
)

// doc is a text as lines that fit a width. The text grows at its end: what cannot
// change any more is laid out once, so that a long answer costs no more a frame than
// a short one.
type doc struct {
	width    int
	markdown bool
	done     int // length of the text that has been laid out
	rows     []row
	pieces   []piece // of all rows, one after the other

	// What comes before these is final.
	finalAt, finalRows, finalPieces int
	fence                           string // what ends the code block that is open there; empty: none
}

// row is a line: its pieces, and where in the text it begins.
type row struct {
	start, from int
}

// piece is a part of a line in one style: text[start:end], or an ornament, which
// stands for nothing of the text.
type piece struct {
	st         term.Style
	start, end int
	ornament   string
}

// layout brings the lines up to date.
func (d *doc) layout(text string, width int, markdown bool, th *term.Theme) {
	width = max(width, 1)
	if width != d.width || markdown != d.markdown || len(text) < d.done {
		*d = doc{width: width, markdown: markdown, rows: d.rows[:0], pieces: d.pieces[:0]}
	}
	if len(text) == d.done && len(d.rows) > 0 {
		return
	}
	d.done = len(text)
	d.rows, d.pieces = d.rows[:d.finalRows], d.pieces[:d.finalPieces]
	if markdown {
		m := marker{doc: d, th: th, text: text}
		m.all()
		return
	}
	for _, l := range term.Wrap(nil, text, d.finalAt, width, th.Method) {
		d.begin(l.Start)
		d.add(piece{start: l.Start, end: l.End})
	}
	// Wrapping is greedy: all lines but the last are final.
	last := len(d.rows) - 1
	d.final(d.rows[last].start, last, d.rows[last].from)
}

// final says that nothing before changes any more.
func (d *doc) final(at, rows, pieces int) {
	d.finalAt, d.finalRows, d.finalPieces = at, rows, pieces
}

// begin begins a line.
func (d *doc) begin(start int) { d.rows = append(d.rows, row{start, len(d.pieces)}) }

// add appends to the line.
func (d *doc) add(ps ...piece) { d.pieces = append(d.pieces, ps...) }

// of returns the pieces of a line.
func (d *doc) of(i int) []piece {
	if i+1 < len(d.rows) {
		return d.pieces[d.rows[i].from:d.rows[i+1].from]
	}
	return d.pieces[d.rows[i].from:]
}

// rowOf returns the line that shows a place of the text, or the last one that begins
// before it.
func (d *doc) rowOf(at int) int {
	last := 0
	for i := range d.rows {
		if d.rows[i].start > at {
			break
		}
		last = i
		for _, p := range d.of(i) {
			if p.start <= at && at < p.end {
				return i
			}
		}
	}
	return last
}

// mark is a part of a text that is drawn in another style.
type mark struct {
	start, end int
	st         term.Style
}

// draw returns a line, at most as wide as the layout, in a style where its pieces have
// none of their own.
func (d *doc) draw(text string, i int, base term.Style, marks []mark, th *term.Theme) string {
	var b strings.Builder
	ps := d.of(i)
	for n, p := range ps {
		if p.start == p.end {
			b.WriteString((base + p.st).On(p.ornament))
			continue
		}
		end := p.end
		if n == len(ps)-1 {
			end = p.start + len(strings.TrimRight(text[p.start:p.end], " "))
		}
		at := p.start
		put := func(to int, st term.Style) {
			if to > at {
				b.WriteString((base + p.st + st).On(th.Shown(text[at:to])))
				at = to
			}
		}
		for _, m := range marks {
			if m.end <= at || m.start >= end {
				continue
			}
			put(max(m.start, at), "")
			put(min(m.end, end), m.st)
		}
		put(end, "")
	}
	return b.String()
}

// at returns the place of the text that a line shows in a column.
func (d *doc) at(text string, i, x int, m ansi.Method) (place int, ok bool) {
	for _, p := range d.of(i) {
		s := p.ornament
		if p.start < p.end {
			s = text[p.start:p.end]
		}
		for n := 0; n < len(s); {
			c, w := ansi.FirstGraphemeCluster(s[n:], m)
			if x < w {
				return p.start + n, p.start < p.end
			}
			x -= w
			n += len(c)
		}
	}
	return 0, false
}
