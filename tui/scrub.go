package tui

import (
	"cmp"
	"fmt"
	"slices"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/pane"
	"bmoe/tui/term"
)

const (
	// lensSide is how many tokens beside the picked one the pane is given, a column each.
	lensSide = 512
	// nearTokens is how many the table of figures is given.
	nearTokens = 16
	// historySlack is how many of the oldest records are left alone where the engine
	// forgets them as it goes on: their numbers would move while they are copied.
	historySlack = 1024
	// zoomStep is by how much the next zoom joins more tokens, and leastZoom where it
	// begins.
	zoomStep, leastZoom = 2, 4
)

// scrubbing is where among the session's tokens the first pane stands.
type scrubbing struct {
	at   int64 // number of the picked token, from 0; below 0: none
	zoom int64 // tokens a column
	lens pane.Lens
	all  overview

	slow    []int64 // numbers of a run's tokens, the slowest first
	slowRun int
	slowTo  int64 // how many records there were
	slowAt  int
}

// picking reports that a token is picked.
func (s *scrubbing) picking() bool { return s.at >= 0 }

// tokens is the first pane.
func (m *Model) tokens() pane.Timeline { return m.panes[0].(pane.Timeline) }

// known returns the numbers of the records that can be looked at: from the first, and
// up to what is held still.
func (m *Model) known() (from, to int64) {
	to = m.live.Count
	switch {
	case m.held != nil:
		to = m.held.Count
	case m.frozen != nil:
		to = m.frozen.Count
	}
	if _, ok := m.eng.(backend.History); !ok {
		return max(0, m.live.Count-profile.RingTokens), to
	}
	if from = m.live.Count - profile.HistoryTokens; from > 0 {
		return min(from+historySlack, to), to
	}
	return 0, to
}

// records copies records from a number on; an engine that keeps none has those of the
// snapshot.
func (m *Model) records(from int64, dst []profile.Record) []profile.Record {
	if h, ok := m.eng.(backend.History); ok {
		return dst[:h.History(from, dst)]
	}
	n := 0
	for at := from; n < len(dst); at++ {
		r, ok := m.live.Latest(int(m.live.Count - 1 - at))
		if !ok {
			break
		}
		dst[n] = *r
		n++
	}
	return dst[:n]
}

// scrub moves what is held still by some tokens, back or on; what is not held still is
// held first.
func (m *Model) scrub(by int) {
	if m.eng == nil {
		return
	}
	at := m.scrubbing.at
	if at < 0 {
		_, to := m.known()
		at = to - 1
	}
	m.pickToken(at + int64(by))
}

// scrubTo goes to the first token that is known, or to the last.
func (m *Model) scrubTo(last bool) {
	if m.eng == nil {
		return
	}
	from, to := m.known()
	if last {
		from = to - 1
	}
	m.pickToken(from)
}

// pickToken holds the screen still at a token: its figures, its place in the picture and
// in the text. An engine that knows what all figures were then says so; of others the
// figures beside the token's own stay as they were when the screen was held.
func (m *Model) pickToken(at int64) {
	if m.eng == nil || m.live.Count == 0 {
		m.say(m.th.Read, "no token has been decoded yet")
		return
	}
	if m.frozen == nil {
		m.freeze()
	}
	if m.held == nil {
		m.held = m.frozen
	}
	from, to := m.known()
	at = min(max(at, from), to-1)
	if p, ok := m.eng.(backend.Moments); ok {
		s := new(profile.Snapshot)
		*s = *m.held
		experts := &profile.ExpertMap{}
		if p.Moment(at, s, experts) {
			m.frozen, m.residents.Map = s, experts
		}
	}
	m.scrubbing.at = at
	m.focusLens()
	r := &m.scrubbing.lens.Record
	m.scrubbing.lens.Text, _ = m.chat.Pick(r.Run, r.Step)
	m.show(m.frozen)
}

// pickSaid picks the token that said something in the chat; false: it cannot be picked,
// and the user is told why.
func (m *Model) pickSaid(run, step int) bool {
	if m.eng == nil {
		return false
	}
	if step == 1 {
		m.say(m.th.Read, "the first token comes of the prompt: it has no record of its own")
		return false
	}
	from, to := m.known()
	if m.frozen != nil {
		to = m.live.Count // what is held still may be older than the text
	}
	number := int64(-1)
	m.each(from, to, func(at int64, r *profile.Record) {
		if r.Run == run && r.Step == step {
			number = at
		}
	})
	if number < 0 {
		m.say(m.th.Read, fmt.Sprintf("token %d of run %d is %s: the latest %d are kept", step, run, units.NotMeasured, profile.HistoryTokens))
		return false
	}
	if _, to := m.known(); number >= to { // it came after the screen was held
		m.frozen, m.held = nil, nil
	}
	if m.pickToken(number); !m.scrubbing.picking() {
		return false
	}
	m.say(m.th.Accent, m.scrubbing.lens.Why[0]+"; Esc lets go of it, Tab has its keys")
	return true
}

// focusLens gives the first pane what it shows: the latest tokens, many in few
// columns, or those around the picked one.
func (m *Model) focusLens() {
	z := &m.scrubbing
	if !z.picking() && z.zoom == 1 || m.eng == nil {
		m.tokens().Look(nil)
		return
	}
	from, to := m.known()
	l := &z.lens
	*l = pane.Lens{Columns: l.Columns[:0], Zoom: z.zoom, Picked: z.at, Before: from > 0}
	if z.zoom > 1 {
		z.all.extend(m.records, z.zoom, from, m.live.Count)
		l.Columns = z.all.cols[:z.all.until(to)]
	}
	if z.picking() {
		first := max(z.at-lensSide, from)
		near := m.records(first, make([]profile.Record, min(z.at+lensSide, to)-first))
		i := int(z.at - first)
		if i >= len(near) {
			z.at = -1
			m.tokens().Look(nil)
			return
		}
		if z.zoom == 1 {
			cols := make([]pane.Column, len(near))
			for j := range near {
				cols[j] = pane.Column{Run: near[j].Run, First: first + int64(j)}
				cols[j].Add(&near[j])
			}
			l.Columns = cols
		}
		l.Record = near[i]
		l.Why = backend.WhyToken(m.eng, z.at, &l.Record)
		l.Near = slices.Clone(near[max(i-nearTokens, 0):min(i+nearTokens, len(near))])
		slices.Reverse(l.Near)
	}
	m.tokens().Look(l)
	m.column = nil
}

// letGo goes back to the latest tokens.
func (m *Model) letGo() {
	m.scrubbing.at = -1
	m.chat.Unpick()
	m.focusLens()
}

// slowest picks the slowest token of the run, of the picked one's if one is; asked
// again, the next slowest.
func (m *Model) slowest() {
	if m.eng == nil || m.live.Count == 0 {
		m.say(m.th.Read, "no token has been decoded yet")
		return
	}
	z := &m.scrubbing
	from, to := m.known()
	run := m.live.Run
	if z.picking() {
		run = z.lens.Record.Run
	}
	if run != z.slowRun || to != z.slowTo || !z.picking() {
		z.slow, z.slowRun, z.slowTo, z.slowAt = z.slow[:0], run, to, 0
		walls := map[int64]int64{}
		m.each(from, to, func(at int64, r *profile.Record) {
			if r.Run == run {
				z.slow = append(z.slow, at)
				walls[at] = r.Wall
			}
		})
		slices.SortStableFunc(z.slow, func(a, b int64) int { return cmp.Compare(walls[b], walls[a]) })
	} else {
		z.slowAt++
	}
	if len(z.slow) == 0 {
		m.say(m.th.Read, "the run has decoded nothing yet")
		return
	}
	nth := z.slowAt % len(z.slow)
	m.pickToken(z.slow[nth])
	which := "the slowest"
	if nth > 0 {
		which = fmt.Sprintf("the %d. slowest", nth+1)
	}
	m.say(m.th.Accent, fmt.Sprintf("%s of %s of run %d; again for the next", which, units.Plural(int64(len(z.slow)), "token"), run))
}

// each hands over records, the oldest first.
func (m *Model) each(from, to int64, f func(at int64, r *profile.Record)) {
	var buf [256]profile.Record
	for from < to {
		got := m.records(from, buf[:min(to-from, int64(len(buf)))])
		if len(got) == 0 {
			return
		}
		for i := range got {
			f(from, &got[i])
			from++
		}
	}
}

// zoom joins more tokens in a column, or fewer.
func (m *Model) zoom(out bool) {
	if m.eng == nil {
		return
	}
	z := &m.scrubbing
	from, to := m.known()
	switch {
	case out && z.zoom*int64(m.tokens().Columns()) >= to-from:
		m.say(m.th.Read, "all tokens that are known are in the picture")
		return
	case out && z.zoom == 1:
		z.zoom = leastZoom
	case out:
		z.zoom *= zoomStep
	case z.zoom <= leastZoom:
		z.zoom = 1
	default:
		z.zoom /= zoomStep
	}
	m.zoomed()
}

// zoomAll puts the whole run in the picture, or goes back to a token a column.
func (m *Model) zoomAll() {
	if m.eng == nil {
		return
	}
	z := &m.scrubbing
	if z.zoom > 1 {
		z.zoom = 1
		m.zoomed()
		return
	}
	from, to := m.known()
	run, n := m.live.Run, int64(0)
	if z.picking() {
		run = z.lens.Record.Run
	}
	m.each(from, to, func(_ int64, r *profile.Record) {
		if r.Run == run {
			n++
		}
	})
	room := int64(m.tokens().Columns())
	if n <= room {
		m.say(m.th.Accent, fmt.Sprintf("the whole run is in the picture: %s", units.Plural(n, "token")))
		return
	}
	for z.zoom = leastZoom; z.zoom*room < n; {
		z.zoom *= zoomStep
	}
	m.zoomed()
}

func (m *Model) zoomed() {
	m.focusLens()
	m.column = nil
	if z := m.scrubbing.zoom; z > 1 {
		m.say(m.th.Accent, fmt.Sprintf("a column is %d tokens, their mean; the line above it is the slowest of them", z))
	} else {
		m.say(m.th.Accent, "a column is a token")
	}
}

// overview is all tokens that are known, some in a column. It grows with the session
// and is made anew for another zoom.
type overview struct {
	zoom, upto int64
	cols       []pane.Column
}

// extend takes in the records up to a number.
func (o *overview) extend(read func(int64, []profile.Record) []profile.Record, zoom, from, to int64) {
	if o.zoom != zoom || to < o.upto || from > o.upto {
		*o = overview{zoom: zoom, upto: from, cols: o.cols[:0]}
	}
	var buf [256]profile.Record
	for o.upto < to {
		got := read(o.upto, buf[:min(to-o.upto, int64(len(buf)))])
		if len(got) == 0 {
			return
		}
		for i := range got {
			r := &got[i]
			if n := len(o.cols); n == 0 || o.cols[n-1].Run != r.Run || o.cols[n-1].Tokens == zoom {
				o.cols = append(o.cols, pane.Column{Run: r.Run, First: o.upto})
			}
			o.cols[len(o.cols)-1].Add(r)
			o.upto++
		}
	}
	old := 0
	for old < len(o.cols) && o.cols[old].First+o.cols[old].Tokens <= from {
		old++
	}
	o.cols = slices.Delete(o.cols, 0, old)
}

// until returns how many columns begin before a number.
func (o *overview) until(to int64) int {
	n, _ := slices.BinarySearchFunc(o.cols, to, func(c pane.Column, to int64) int { return cmp.Compare(c.First, to) })
	return n
}

// whyToken holds the screen still at a token of the last run and says why it was slow.
func (m *Model) whyToken(arg string) {
	step, err := whichToken(arg)
	if err == nil && m.eng == nil {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return
	}
	if err == nil {
		var at int64
		if at, _, err = backend.Token(m.eng, step); err == nil {
			m.pickToken(at)
			m.picked = 0
			if m.views.Top() != (expanded{m}) {
				m.toggle(expanded{m})
			}
			return
		}
	}
	m.say(m.th.Read, term.CleanLine(err.Error()))
}

// playOn sends the next question of a recording that is played.
func (m *Model) playOn() (text string, ok bool) {
	if len(m.script) == 0 {
		return "", false
	}
	text, m.script = m.script[0], m.script[1:]
	return text, true
}
