package tui

import (
	"strings"

	"bmoe/engine/backend"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// footItem is what the footer says of a row of the table of keys: its keys, what they do,
// the value of what they change, and what becomes of it.
type footItem struct {
	caps   []footCap
	sep    string // between them
	labels [2]string
	value  string
	wider  int // so many items have wider values
	note   string
	style  term.Style // of the note
	rank   int
}

// footCap is a key of the footer, and what it asks for.
type footCap struct {
	text string
	bind bind
}

// footing is how much the footer says. Where room is short, words go before what became
// of a wish, that before values, and keys last.
type footing struct {
	short, noNotes bool
	without        int // so many values, the widest, are left out
}

// footings are the ways to say less and less, for so many values.
func footings(values int) []footing {
	all := []footing{{}, {short: true}, {short: true, noNotes: true}}
	for n := range values {
		all = append(all, footing{short: true, noNotes: true, without: n + 1})
	}
	return all
}

const footGap = 2

// shortLabels are shorter words for what keys do.
var shortLabels = map[string]string{"release-mmap": "mmap", "new chat": "new", "thoughts": "thought"}

func (it *footItem) label(f footing) string {
	if f.short {
		return it.labels[1]
	}
	return it.labels[0]
}

// part draws an item.
func (it *footItem) part(th *term.Theme, f footing) term.Part {
	keys := make([]string, len(it.caps))
	for i, c := range it.caps {
		keys[i] = c.text
	}
	text := strings.Join(keys, it.sep)
	p := term.Part{S: th.Bold.On(text) + " " + it.label(f), W: th.Width(text) + 1 + th.Width(it.label(f)), Rank: it.rank}
	if it.value != "" && it.wider >= f.without {
		p.S += " " + th.Accent.On(it.value)
		p.W += 1 + th.Width(it.value)
	}
	if it.note != "" && !f.noNotes {
		p.S += " " + it.style.On(it.note)
		p.W += 1 + th.Width(it.note)
	}
	return p
}

// typing reports that letters are typed into the view that is shown.
func (m *Model) typing() bool {
	t, ok := m.views.Top().(view.Typist)
	return ok && t.Typing()
}

// footItems are what the footer says, in the order of the table.
func (m *Model) footItems() (items []footItem) {
	shown := m.views.Top()
	onTwins := (m.focus == onPanes || shown != nil) && !m.typing()
	for i := range m.table {
		r := &m.table[i]
		row := backend.Find(m.settings, r.setting)
		switch {
		case r.label == "", r.label == "thoughts" && !m.chat.HasThoughts(), len(r.any) == 0 && !onTwins:
			continue
		case r.label == "quit" && shown != nil && shown.Figures() != view.Live:
			continue // there q closes, as Esc does
		case r.view == "models" && m.o.Models == nil:
			continue // there is no changing
		case r.setting != "" && row == nil && m.state != loading:
			continue // this backend has no such setting
		}
		it := footItem{sep: "/", labels: [2]string{r.label, r.label}, rank: r.rank}
		keys := r.any
		if onTwins && len(r.panes) > 0 {
			it.sep, keys = " ", r.panes
		}
		for _, b := range keys { // one for each thing to ask for
			if !containsAct(it.caps, b.act) {
				b.setting, b.view = r.setting, r.view
				it.caps = append(it.caps, footCap{caps([]bind{b}, ""), b})
			}
		}
		switch {
		case r.label == "pane":
			it.caps = []footCap{{paneCaps(), bind{act: actPickNext}}}
		case r.label == "panes" && onTwins:
			it.labels = [2]string{"prompt", "prompt"}
		case r.label == "stop" && shown != nil:
			it.labels = [2]string{"close", "close"}
		}
		if s := shortLabels[r.label]; s != "" {
			it.labels[1] = s
		}
		if row != nil {
			it.value = m.shownValue(row)
			it.note, it.style = m.settingNote(row)
		}
		items = append(items, it)
	}
	return items
}

func containsAct(all []footCap, act action) bool {
	for _, c := range all {
		if c.bind.act == act {
			return true
		}
	}
	return false
}

// footer lists the keys with the state of what they change, in one or two rows.
func (m *Model) footer() []string {
	rows, f := m.footRows()
	out := make([]string, len(rows))
	for i, row := range rows {
		parts := make([]term.Part, len(row))
		for j := range row {
			parts[j] = row[j].part(m.th, f)
		}
		out[i] = m.th.Row(m.w, footGap, parts...)
	}
	return out
}

// footRows lays the items out in one row if they fit, else in two, saying less where
// there is no room; the least important go only where the keys alone are too many.
func (m *Model) footRows() (rows [][]footItem, f footing) {
	items := m.footItems()
	values := 0
	for i := range items {
		if items[i].value == "" {
			continue
		}
		values++
		for j := range items {
			if n, other := len(items[i].value), len(items[j].value); other > n || other == n && j < i {
				items[i].wider++
			}
		}
	}
	ways := footings(values)
	for {
		for _, f := range ways {
			split := m.fill(items, f)
			if split == len(items) {
				return [][]footItem{items}, f
			}
			if m.fill(items[split:], f) == len(items)-split {
				return [][]footItem{items[:split], items[split:]}, f
			}
		}
		worst := -1
		for i := range items {
			if items[i].rank > 0 && (worst < 0 || items[i].rank >= items[worst].rank) {
				worst = i
			}
		}
		if worst < 0 {
			f := ways[len(ways)-1]
			split := m.fill(items, f)
			return [][]footItem{items[:split], items[split:]}, f
		}
		items = append(items[:worst:worst], items[worst+1:]...)
	}
}

// fill is how many of the items a row holds.
func (m *Model) fill(items []footItem, f footing) int {
	w := -footGap
	for i := range items {
		if w += items[i].part(m.th, f).W + footGap; w > m.w {
			return i
		}
	}
	return len(items)
}

// clickFooter does what the key under the mouse does; what stands behind several keys is
// of the last.
func (m *Model) clickFooter(x, row int) tea.Cmd {
	rows, f := m.footRows()
	if row < 0 || row >= len(rows) {
		return nil
	}
	at := 0
	for i := range rows[row] {
		it := &rows[row][i]
		end := at + it.part(m.th, f).W
		if x >= at && x < end {
			for j, c := range it.caps {
				if at += m.th.Width(c.text); x < at || j == len(it.caps)-1 {
					return m.press(c.bind)
				}
				at += len(it.sep)
			}
		}
		at = end + footGap
	}
	return nil
}

// press does what a key does that the footer shows.
func (m *Model) press(b bind) tea.Cmd {
	m.status = "" // it was about the key before
	if v := m.views.Top(); v != nil && b.key != "" && v.Key(b.key) {
		return m.obey()
	}
	return m.act(b)
}
