package tui

import (
	"bmoe/engine/backend"
	"bmoe/profile"
)

// mapShown reports whether a view shows the experts or the layers, so that their map is
// wanted with every snapshot.
func (m *Model) mapShown() bool {
	top := m.views.Top()
	return top != nil && (top == m.pages["experts"] || top == m.pages["layers"])
}

// look copies an engine's map into dst, if there is one to copy into. An engine that
// knows of no experts leaves it empty.
func look(eng backend.Backend, dst *profile.ExpertMap) *profile.ExpertMap {
	if dst == nil {
		return nil
	}
	if r, ok := eng.(backend.Residency); ok {
		r.Experts(dst)
	} else {
		dst.Reset(0, 0)
	}
	return dst
}

// takeMap makes a map the latest, unless what is shown is held still.
func (m *Model) takeMap(latest *profile.ExpertMap) {
	if m.frozen != nil && m.residents.Map != nil {
		m.spareMap = latest
		return
	}
	m.residents.Map, m.spareMap = latest, m.residents.Map
}
