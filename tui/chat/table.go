package chat

import (
	"strings"

	"bmoe/tui/term"
)

// leastCell is how narrow a column of a table may get.
const leastCell = 4

// cells reports whether a line can be a row of a table.
func (m *marker) cells(at, end int) bool { return strings.IndexByte(m.text[at:end], '|') >= 0 }

// tableEnd returns where the table ends that begins at a line, 0 if none does: the
// start of the line after it, or a place behind the text.
func (m *marker) tableEnd(at int) int {
	end, whole := m.lineEnd(at)
	if !whole || !m.cells(at, end) {
		return 0
	}
	next := end + 1
	end, whole = m.lineEnd(next)
	if !delimiter(m.text[next:end]) {
		return 0
	}
	for whole {
		next = end + 1
		if end, whole = m.lineEnd(next); !m.cells(next, end) {
			return next
		}
	}
	return len(m.text) + 1
}

// delimiter reports the line under a table's head.
func delimiter(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: ") == ""
}

// cell is a place of a table: text[start:end].
type cell struct{ start, end int }

// split cuts a row into its cells.
func (m *marker) split(at, end int) (cells []cell) {
	at = m.skip(at, end)
	for end > at && m.text[end-1] == ' ' {
		end--
	}
	if at < end && m.text[at] == '|' {
		at++
	}
	from := at
	add := func(to int) {
		a, b := m.skip(from, to), to
		for b > a && m.text[b-1] == ' ' {
			b--
		}
		cells = append(cells, cell{a, b})
	}
	for i := at; i < end; i++ {
		switch m.text[i] {
		case '\\':
			i++
		case '|':
			add(i)
			from = i + 1
		}
	}
	if from < end {
		add(end)
	}
	return cells
}

// table lays a table out: columns as wide as they need to be, narrower where the
// screen is.
func (m *marker) table(at, to int) {
	th := m.th
	type tableRow struct {
		at    int
		cells [][]piece
	}
	var rows []tableRow
	var widths []int
	var right []bool
	for n := 0; at < to && at <= len(m.text); n++ {
		end, _ := m.lineEnd(at)
		r := tableRow{at: at}
		for i, c := range m.split(at, end) {
			if n == 1 {
				right = append(right, c.end-c.start > 1 && m.text[c.end-1] == ':' && m.text[c.start] != ':')
				continue
			}
			st := term.Style("")
			if n == 0 {
				st = th.Bold
			}
			ps := inline(th, m.text, c.start, c.end, st)
			r.cells = append(r.cells, ps)
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], m.wide(ps))
		}
		rows = append(rows, r)
		at = end + 1
	}
	if !narrow(widths, m.width-3*(len(widths)-1)) {
		for _, r := range rows { // there is no room for so many columns
			end, _ := m.lineEnd(r.at)
			m.wrapped(r.at, nil, nil, inline(th, m.text, r.at, end, ""))
		}
		return
	}
	for n, r := range rows {
		if n == 1 {
			w := -3
			for _, c := range widths {
				w += c + 3
			}
			m.begin(r.at)
			m.add(piece{st: th.Dim, ornament: term.Repeat(th.G.Horizontal, w)})
			continue
		}
		lines := make([][][]piece, len(widths))
		h := 1
		for i := range r.cells {
			lines[i] = m.wrap(r.cells[i], widths[i], widths[i])
			h = max(h, len(lines[i]))
		}
		for y := range h {
			m.begin(r.at)
			for i, w := range widths {
				var ps []piece
				if y < len(lines[i]) {
					ps = lines[i][y]
				}
				blank := piece{ornament: term.Blanks(w - m.wide(ps))}
				if i < len(right) && right[i] {
					m.add(blank)
					m.add(ps...)
				} else {
					m.add(ps...)
					m.add(blank)
				}
				if i < len(widths)-1 {
					m.add(piece{st: th.Dim, ornament: " " + th.G.Vertical + " "})
				}
			}
		}
	}
}

// narrow takes columns from the widest until all fit; false: they cannot.
func narrow(widths []int, room int) bool {
	total := 0
	for _, w := range widths {
		total += w
	}
	if room < leastCell*len(widths) && total > room {
		return false
	}
	for total > room {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		widths[widest]--
		total--
	}
	return true
}
