package play

import (
	"slices"

	"bmoe/engine"
	"bmoe/profile"
)

// layout is what a recording says of the experts' place in the model.
type layout struct {
	Experts int     `json:"experts"` // of a layer; 0: none are streamed
	Bytes   []int64 `json:"bytes"`   // of an expert, by layer; 0 where a layer has none
	// Policies are those by which experts are given up, as the token's frames number them.
	Policies []string `json:"policies"`
}

// mostCells bounds the layout of a recording, which anybody may have written.
const mostCells = 1 << 20

func layoutOf(s *engine.Session) layout {
	var m profile.ExpertMap
	s.Experts(&m)
	l := layout{Experts: m.Experts, Policies: m.Policies}
	for i := range m.Layers {
		l.Bytes = append(l.Bytes, m.Layers[i].Bytes)
	}
	return l
}

// experts rebuilds the map of experts from what a recording tells of its tokens: who was
// where when the prompt had been read, and of each token its route, its misses and who went
// for it. Of a recording that does not tell who went, misses say when what they missed had
// been given up.
type experts struct {
	m      profile.ExpertMap
	places []int             // layers that have experts
	gone   map[int32][]int32 // by token: cells that were given up for it, as later misses tell
	prompt int32             // of the run that begins
}

// init begins a recording anew.
func (e *experts) init(r *recording) {
	l := &r.Experts
	if l.Experts <= 0 || l.Experts > mostCells || len(l.Bytes)*l.Experts > mostCells {
		e.m.Reset(0, 0)
		return
	}
	e.m.Reset(len(l.Bytes), l.Experts)
	e.m.Rebuilt, e.m.Policies = true, l.Policies
	e.places = e.places[:0]
	for i, b := range l.Bytes {
		if e.m.Layers[i].Bytes = b; b > 0 {
			e.places = append(e.places, i)
		}
	}
	if e.gone != nil {
		return
	}
	e.gone = map[int32][]int32{}
	at := int32(0)
	for _, run := range r.runs {
		at += prompt(run)
		for i := range run.steps {
			t := run.steps[i].token
			if t == nil || t.record == nil {
				continue
			}
			at++
			for _, m := range t.misses {
				if cell := e.cell(&m); cell >= 0 && m.Away > 0 && m.Away < profile.LongAway {
					when := at - int32(m.Away)
					e.gone[when] = append(e.gone[when], int32(cell))
				}
			}
		}
	}
}

// prompt returns how many tokens a run read before its first.
func prompt(r *run) int32 {
	if r.end == nil {
		return 0
	}
	return int32(min(max(r.end.Run.Result.NPrompt-r.end.Run.Result.NCached, 0), mostTokens))
}

// cell returns the index of what was missed, -1 if there is no such expert.
func (e *experts) cell(m *profile.Miss) int {
	if int(m.Layer) >= len(e.m.Layers) || int(m.Expert) >= e.m.Experts {
		return -1
	}
	return int(m.Layer)*e.m.Experts + int(m.Expert)
}

// begin begins a run.
func (e *experts) begin(r *run) {
	if e.prompt = prompt(r); r.end != nil && r.end.Run.ColdCache {
		clear(e.m.Cells)
	}
	e.m.Token += e.prompt
	e.m.Rebuilt = true
	e.m.Estimated = false
	for i := range e.m.Layers {
		e.m.Layers[i] = profile.MapLayer{Bytes: e.m.Layers[i].Bytes}
	}
}

// token takes in what a token was given and what it missed.
func (e *experts) token(t *token, policy string) {
	if len(e.places) == 0 {
		return
	}
	m := &e.m
	if t.record == nil {
		if t.experts != nil && t.experts.all {
			e.begun(t.experts)
		}
		return
	}
	m.Token++
	k := len(t.route) / len(e.places)
	for i, id := range t.route {
		if place := i / max(k, 1); place < len(e.places) && int(id) < m.Experts && t.known {
			c := m.Cell(e.places[place], int(id))
			c.Used, c.State = m.Token, profile.Resident
			c.Uses++
		}
	}
	for i := range t.misses {
		miss := &t.misses[i]
		at := e.cell(miss)
		if at < 0 {
			continue
		}
		c := &m.Cells[at]
		c.Read = m.Token
		c.Reads++
		if miss.Early {
			c.Guessed = m.Token
		}
		if miss.Away == 0 { // it was there, and had to go, for this very token
			e.giveUp(c, policy)
		}
		c.State = profile.Resident
	}
	switch {
	case t.experts != nil:
		for _, w := range t.experts.cells {
			if w.at < len(m.Cells) {
				c := &m.Cells[w.at]
				c.Gone, c.By, c.Why, c.State = m.Token, w.By, w.Why, w.State
			}
		}
	default:
		for _, at := range e.gone[m.Token] {
			e.giveUp(&m.Cells[at], policy)
			m.Cells[at].State = profile.Absent
		}
	}
	if t.known {
		m.ShareStall(t.record, t.misses)
	}
}

// begun takes in where everybody was when the prompt had been read.
func (e *experts) begun(t *told) {
	m := &e.m
	clear(m.Cells)
	for i := range m.Cells {
		m.Cells[i].By = -1
	}
	m.Token, m.Rebuilt = t.token, false
	for _, w := range t.cells {
		if w.at < len(m.Cells) {
			m.Cells[w.at] = w.ExpertCell
		}
	}
}

// giveUp notes that an expert was evicted for the present token, nobody knows for whom.
func (e *experts) giveUp(c *profile.ExpertCell, policy string) {
	i := slices.Index(e.m.Policies, policy)
	if i < 0 {
		i = len(e.m.Policies)
		e.m.Policies = append(e.m.Policies[:i:i], policy)
	}
	c.Gone, c.By, c.Why = e.m.Token, -1, profile.GonePolicy+uint8(min(i, 200))
}

// read copies the map out.
func (e *experts) read(dst *profile.ExpertMap) {
	dst.Reset(len(e.m.Layers), e.m.Experts)
	layers, cells := dst.Layers, dst.Cells
	copy(layers, e.m.Layers)
	copy(cells, e.m.Cells)
	*dst = e.m
	dst.Layers, dst.Cells = layers, cells
}
