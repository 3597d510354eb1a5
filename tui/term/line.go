package term

import "strings"

// Part is a piece of a line of the screen. Lines are lists of parts with a
// rank: on a narrow terminal the parts of the highest rank go first, whole,
// so that no figure is ever cut in half.
type Part struct {
	S    string // styled
	W    int    // columns
	Rank int
}

// Text makes a part in one style.
func (t *Theme) Text(rank int, st Style, s string) Part {
	return Part{st.On(s), t.Width(s), rank}
}

// Labelled makes a part of a label in the dim style and a value.
func (t *Theme) Labelled(rank int, label, value string) Part {
	return Part{t.Dim.On(label+" ") + value, t.Width(label) + 1 + t.Width(value), rank}
}

// Coloured makes a part of a label in a style of its own and a value.
func (t *Theme) Coloured(rank int, st Style, label, value string) Part {
	return Part{st.On(label) + " " + value, t.Width(label) + 1 + t.Width(value), rank}
}

// Fit joins as many parts as fit into max columns with a gap between them and
// returns the line with its width. Parts of rank 0 are never dropped; if they
// alone are too long, the line is cut.
func (t *Theme) Fit(max, gap int, parts ...Part) (string, int) {
	total := -gap
	for _, p := range parts {
		if p.W > 0 {
			total += p.W + gap
		}
	}
	drop := make([]bool, len(parts))
	for total > max {
		worst := -1
		for i, p := range parts {
			if !drop[i] && p.W > 0 && p.Rank > 0 && (worst < 0 || p.Rank >= parts[worst].Rank) {
				worst = i
			}
		}
		if worst < 0 {
			break
		}
		drop[worst] = true
		total -= parts[worst].W + gap
	}
	var b strings.Builder
	w := 0
	for i, p := range parts {
		if drop[i] || p.W == 0 {
			continue
		}
		if w > 0 {
			b.WriteString(Blanks(gap))
			w += gap
		}
		b.WriteString(p.S)
		w += p.W
	}
	if w > max {
		s := t.Cut(b.String(), max)
		return s, t.Width(s)
	}
	return b.String(), w
}

// FirstFit is fit for the first of several wordings that fits whole, with gaps
// of two columns or of one. If none does, the last one loses parts.
func (t *Theme) FirstFit(max int, wordings ...[]Part) string {
	for _, parts := range wordings {
		for gap := 2; gap > 0; gap-- {
			total := -gap
			for _, p := range parts {
				if p.W > 0 {
					total += p.W + gap
				}
			}
			if total <= max {
				s, _ := t.Fit(max, gap, parts...)
				return s
			}
		}
	}
	s, _ := t.Fit(max, 1, wordings[len(wordings)-1]...)
	return s
}

// Row is fit, filled with blanks to exactly max columns.
func (t *Theme) Row(max, gap int, parts ...Part) string {
	s, w := t.Fit(max, gap, parts...)
	return s + Blanks(max-w)
}

const manyBlanks = "                                                                                                                                "

// Blanks returns n spaces.
func Blanks(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(manyBlanks) {
		return manyBlanks[:n]
	}
	return strings.Repeat(" ", n)
}

// Repeat is strings.Repeat for counts that may be negative.
func Repeat(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(s, n)
}

// Bar draws a share between 0 and 1 in w columns.
func (t *Theme) Bar(share float64, w int, st Style) Part {
	if w <= 0 {
		return Part{}
	}
	n := min(max(int(share*float64(w)+0.5), 0), w)
	if n == 0 && share > 0 {
		n = 1
	}
	return Part{st.On(Repeat(t.G.Full, n)) + t.Dim.On(Repeat(t.G.Empty, w-n)), w, 0}
}
