package tui

import "strings"

// part is a piece of a line of the screen. Lines are lists of parts with a
// rank: on a narrow terminal the parts of the highest rank go first, whole,
// so that no figure is ever cut in half.
type part struct {
	s    string // styled
	w    int    // columns
	rank int
}

// p makes a part in one style.
func (t *theme) p(rank int, st style, s string) part {
	return part{st.on(s), t.width(s), rank}
}

// kv makes a part of a label in the dim style and a value.
func (t *theme) kv(rank int, label, value string) part {
	return part{t.dim.on(label+" ") + value, t.width(label) + 1 + t.width(value), rank}
}

// colour makes a part of a label in a style of its own and a value.
func (t *theme) colour(rank int, st style, label, value string) part {
	return part{st.on(label) + " " + value, t.width(label) + 1 + t.width(value), rank}
}

// fit joins as many parts as fit into max columns with a gap between them and
// returns the line with its width. Parts of rank 0 are never dropped; if they
// alone are too long, the line is cut.
func (t *theme) fit(max, gap int, parts ...part) (string, int) {
	total := -gap
	for _, p := range parts {
		if p.w > 0 {
			total += p.w + gap
		}
	}
	drop := make([]bool, len(parts))
	for total > max {
		worst := -1
		for i, p := range parts {
			if !drop[i] && p.w > 0 && p.rank > 0 && (worst < 0 || p.rank >= parts[worst].rank) {
				worst = i
			}
		}
		if worst < 0 {
			break
		}
		drop[worst] = true
		total -= parts[worst].w + gap
	}
	var b strings.Builder
	w := 0
	for i, p := range parts {
		if drop[i] || p.w == 0 {
			continue
		}
		if w > 0 {
			b.WriteString(blanks(gap))
			w += gap
		}
		b.WriteString(p.s)
		w += p.w
	}
	if w > max {
		s := t.cut(b.String(), max)
		return s, t.width(s)
	}
	return b.String(), w
}

// firstFit is fit for the first of several wordings that fits whole, with gaps
// of two columns or of one. If none does, the last one loses parts.
func (t *theme) firstFit(max int, wordings ...[]part) string {
	for _, parts := range wordings {
		for gap := 2; gap > 0; gap-- {
			total := -gap
			for _, p := range parts {
				if p.w > 0 {
					total += p.w + gap
				}
			}
			if total <= max {
				s, _ := t.fit(max, gap, parts...)
				return s
			}
		}
	}
	s, _ := t.fit(max, 1, wordings[len(wordings)-1]...)
	return s
}

// row is fit, filled with blanks to exactly max columns.
func (t *theme) row(max, gap int, parts ...part) string {
	s, w := t.fit(max, gap, parts...)
	return s + blanks(max-w)
}

const manyBlanks = "                                                                                                                                "

// blanks returns n spaces.
func blanks(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(manyBlanks) {
		return manyBlanks[:n]
	}
	return strings.Repeat(" ", n)
}

// repeat is strings.Repeat for counts that may be negative.
func repeat(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(s, n)
}

// bar draws a share between 0 and 1 in w columns.
func (t *theme) bar(share float64, w int, st style) part {
	if w <= 0 {
		return part{}
	}
	n := min(max(int(share*float64(w)+0.5), 0), w)
	if n == 0 && share > 0 {
		n = 1
	}
	return part{st.on(repeat(t.g.full, n)) + t.dim.on(repeat(t.g.empty, w-n)), w, 0}
}
