package tui

import (
	"bmoe/engine/backend"
	"bmoe/profile"
)

// scrub moves what is held still by some tokens, back or on; what is not held still is
// held first. An engine that knows what all figures were then says so; of others the
// tokens move, and the rest stays as it was when the screen was held.
func (m *Model) scrub(by int) {
	if m.eng == nil || m.live.Count == 0 {
		return
	}
	if m.frozen == nil {
		m.freeze()
	}
	if m.held == nil {
		m.held = m.frozen
	}
	at := min(max(m.frozen.Count+int64(by), 1), m.held.Count)
	s := new(profile.Snapshot)
	*s = *m.held
	if p, ok := m.eng.(backend.Moments); !ok || !p.Moment(at-1, s) {
		s.Count = at
		if h, ok := m.eng.(backend.History); ok { // the ring has forgotten what lay before
			from := max(0, at-profile.RingTokens)
			records := make([]profile.Record, at-from)
			n := h.History(from, records)
			if last, ok := s.Latest(0); n == len(records) && ok && records[n-1].Step == last.Step {
				for i, r := range records {
					s.Tokens[(from+int64(i))%profile.RingTokens] = r
				}
			}
		}
		if last, ok := s.Latest(0); ok {
			s.Step = last.Step
		}
	}
	m.frozen = s
	m.show(s)
}

// playOn sends the next question of a recording that is played.
func (m *Model) playOn() (text string, ok bool) {
	if len(m.script) == 0 {
		return "", false
	}
	text, m.script = m.script[0], m.script[1:]
	return text, true
}
