package chat

import (
	"strings"

	"bmoe/tui/term"
)

// marker lays Markdown out, a line of the text after the other: line ends are kept as
// the model wrote them, so that a line is final as soon as it has ended. Only tables
// need all of their lines.
type marker struct {
	*doc
	th   *term.Theme
	text string
}

// all lays out what is not final yet.
func (m *marker) all() {
	at, fence, final := m.finalAt, m.fence, true
	for at <= len(m.text) {
		end, whole := m.lineEnd(at)
		next, settled := end+1, whole
		if fence != "" {
			fence = m.codeLine(at, end, fence)
		} else if to := m.tableEnd(at); to > 0 {
			m.table(at, to)
			next, settled = to, false
			if to <= len(m.text) {
				_, settled = m.lineEnd(to) // a row may follow, unless it is known what does
			}
		} else {
			fence = m.prose(at, end)
			if whole && m.cells(at, end) { // it is a table's first, if the next line says so
				_, settled = m.lineEnd(next)
			}
		}
		if final = final && settled; final {
			m.final(next, len(m.rows), len(m.pieces))
			m.fence = fence
		}
		at = next
	}
}

// lineEnd returns where the line that begins at a place ends, and whether it has ended.
func (m *marker) lineEnd(at int) (end int, whole bool) {
	if n := strings.IndexByte(m.text[at:], '\n'); n >= 0 {
		return at + n, true
	}
	return len(m.text), false
}

// skip returns the first place that is no space.
func (m *marker) skip(at, end int) int {
	for at < end && m.text[at] == ' ' {
		at++
	}
	return at
}

// fenceOf returns what a line opens a code block with, or nothing.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, c := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, c) {
			n := len(line) - len(strings.TrimLeft(line, c[:1]))
			if c[0] == '`' && strings.Contains(line[n:], "`") { // code within a line
				return ""
			}
			return line[:n]
		}
	}
	return ""
}

// codeLine is a line of a code block, or its end.
func (m *marker) codeLine(at, end int, fence string) string {
	line := strings.TrimSpace(m.text[at:end])
	if strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == "" {
		m.begin(at)
		m.add(piece{st: m.th.Dim, ornament: m.th.G.BottomLeft + m.th.G.Horizontal})
		return ""
	}
	for _, l := range term.Wrap(nil, m.text[:end], at, max(m.width-2, 1), m.th.Method) {
		m.begin(l.Start)
		m.add(piece{st: m.th.Dim, ornament: m.th.G.Vertical + " "}, piece{start: l.Start, end: l.End})
	}
	return fence
}

// prose is a line outside of code blocks and tables. It returns the fence of a block
// that it opens.
func (m *marker) prose(at, end int) (fence string) {
	th, line := m.th, m.text[at:end]
	body := m.skip(at, end)
	indent := body - at
	if fence := fenceOf(line); fence != "" {
		m.begin(at)
		m.add(piece{st: th.Dim, ornament: th.G.TopLeft + th.G.Horizontal})
		if lang := strings.TrimSpace(m.text[body+len(fence) : end]); lang != "" {
			from := end - len(strings.TrimLeft(m.text[body+len(fence):end], " "))
			m.add(piece{st: th.Dim, ornament: " "}, piece{st: th.Dim, start: from, end: from + len(lang)})
		}
		return fence
	}
	rest := m.text[body:end]
	if n := len(rest) - len(strings.TrimLeft(rest, "#")); n > 0 && n <= 6 && indent < 4 && strings.HasPrefix(rest[n:], " ") {
		m.wrapped(at, nil, nil, inline(th, m.text, m.skip(body+n, end), end, th.Heading))
		return ""
	}
	if rule(rest) {
		m.begin(at)
		m.add(piece{st: th.Dim, ornament: term.Repeat(th.G.Horizontal, m.width)})
		return ""
	}
	if strings.HasPrefix(rest, ">") && indent < 4 {
		from := body
		bar := ""
		for from < end && (m.text[from] == '>' || m.text[from] == ' ') {
			if m.text[from] == '>' {
				bar += th.G.Vertical + " "
			}
			from++
		}
		head := []piece{{st: th.Dim, ornament: bar}}
		m.wrapped(at, head, head, inline(th, m.text, from, end, ""))
		return ""
	}
	if n := bullet(rest); n > 0 {
		lead := piece{start: at, end: body}
		sign := piece{start: body, end: body + n - 1}
		if strings.IndexByte("-*+", rest[0]) >= 0 {
			sign = piece{ornament: th.G.Bullet}
		}
		from := m.skip(body+n, end)
		m.wrapped(at, []piece{lead, sign, {ornament: " "}}, []piece{{ornament: term.Blanks(indent + n)}}, inline(th, m.text, from, end, ""))
		return ""
	}
	var lead, hang []piece
	if indent > 0 && indent < m.width/2 {
		lead = []piece{{start: at, end: body}}
		hang = nil
	}
	m.wrapped(at, lead, hang, inline(th, m.text, body, end, ""))
	return ""
}

// rule reports a line across the page.
func rule(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	return len(s) >= 3 && strings.IndexByte("-*_", s[0]) >= 0 && strings.Trim(s, s[:1]) == ""
}

// bullet returns the length of what begins a list's item, with a space; 0: nothing does.
func bullet(s string) int {
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n < len(s) && (n == 0 && strings.IndexByte("-*+", s[n]) >= 0 || n > 0 && (s[n] == '.' || s[n] == ')')) && n+1 < len(s) && s[n+1] == ' ' {
		return n + 2
	}
	return 0
}

// wrapped adds pieces as lines; the first begins with some, the others with some more.
func (m *marker) wrapped(at int, first, others, ps []piece) {
	for i, line := range m.wrap(ps, m.width-m.wide(first), m.width-m.wide(others)) {
		start, head := at, first
		if i > 0 {
			head = others
			if len(line) > 0 {
				start = line[0].start
			}
		}
		m.begin(start)
		m.add(head...)
		m.add(line...)
	}
}

// wide returns the columns of pieces.
func (m *marker) wide(ps []piece) (w int) {
	for _, p := range ps {
		w += m.th.Width(p.ornament) + m.th.Width(m.text[p.start:p.end])
	}
	return w
}

// wrap breaks pieces into lines, at least one: the first of a width, the others of
// another.
func (m *marker) wrap(ps []piece, first, others int) (lines [][]piece) {
	var shown strings.Builder
	for _, p := range ps {
		shown.WriteString(m.text[p.start:p.end])
	}
	src := shown.String()
	spans := term.Wrap(nil, src, 0, max(first, 1), m.th.Method)
	if first != others && len(spans) > 1 {
		spans = term.Wrap(spans[:1], src, spans[1].Start, max(others, 1), m.th.Method)
	}
	i, at := 0, 0 // the piece, and where in src it begins
	for _, l := range spans {
		var line []piece
		for i < len(ps) {
			n := ps[i].end - ps[i].start
			from, to := max(l.Start-at, 0), min(l.End-at, n)
			if from < to {
				p := ps[i]
				p.start, p.end = ps[i].start+from, ps[i].start+to
				line = append(line, p)
			}
			if at+n > l.End { // it goes on in the next line
				break
			}
			at += n
			i++
		}
		lines = append(lines, line)
	}
	return lines
}
