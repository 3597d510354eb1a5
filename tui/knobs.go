package tui

import (
	"fmt"
	"time"

	"bmoe/engine"
	"bmoe/profile"
)

// knob is a setting that can be changed between runs.
type knob uint8

const (
	knobNone knob = iota
	knobRelease
	knobLanes
	knobCache
	knobOverlap
	knobCount
)

// knobNames are the names that the engine's outcomes carry.
var knobNames = [knobCount]string{"", "release-mmap", "lanes", "cache", "overlap"}

// knobState is what became of the last wish for a knob.
type knobState struct {
	verdict engine.Verdict // empty once it is old news
	reason  string
	at      time.Time
}

// verdictShown is how long the footer keeps saying applied, declined or ignored.
const verdictShown = 12 * time.Second

// laneSteps are the counts that F3 and F4 walk.
var laneSteps = []int{1, 2, 4, 8}

// want* return the value that a knob will have once the waiting wishes are
// applied.

func (m *Model) wantRelease() bool {
	if m.want.ReleaseMmap != nil {
		return *m.want.ReleaseMmap
	}
	return m.cfg.ReleaseMmap
}

func (m *Model) wantOverlap() bool {
	if m.want.Overlap != nil {
		return *m.want.Overlap
	}
	return m.cfg.Overlap
}

func (m *Model) wantLanes() int {
	if m.want.Lanes != nil {
		return *m.want.Lanes
	}
	return m.cfg.Lanes
}

func (m *Model) wantCache() int {
	if m.want.CacheMiB != nil {
		return *m.want.CacheMiB
	}
	return cacheInForce(m.cfg, m.live)
}

// cacheInForce returns the budget in MiB, also when it was chosen by itself.
func cacheInForce(c engine.Config, s *profile.Snapshot) int {
	if c.CacheMiB > 0 {
		return c.CacheMiB
	}
	return int(s.Cache.Budget / mib)
}

// pending reports whether any wish waits.
func pending(c engine.Change) bool {
	return c.ReleaseMmap != nil || c.Lanes != nil || c.CacheMiB != nil || c.Overlap != nil
}

// pendingKnob reports whether a wish for one knob waits.
func (m *Model) pendingKnob(k knob) bool {
	switch k {
	case knobRelease:
		return m.want.ReleaseMmap != nil
	case knobLanes:
		return m.want.Lanes != nil
	case knobCache:
		return m.want.CacheMiB != nil
	case knobOverlap:
		return m.want.Overlap != nil
	}
	return false
}

// set* note a wish; wishing for what is in force takes a waiting wish back.

func (m *Model) setRelease(on bool) {
	m.want.ReleaseMmap = nil
	if on != m.cfg.ReleaseMmap {
		m.want.ReleaseMmap = &on
	}
	m.knobs[knobRelease] = knobState{}
}

func (m *Model) setOverlap(on bool) {
	m.want.Overlap = nil
	if on != m.cfg.Overlap {
		m.want.Overlap = &on
	}
	m.knobs[knobOverlap] = knobState{}
}

func (m *Model) setLanes(n int) {
	m.want.Lanes = nil
	if n != m.cfg.Lanes {
		m.want.Lanes = &n
	}
	m.knobs[knobLanes] = knobState{}
}

func (m *Model) setCache(n int) {
	m.want.CacheMiB = nil
	if n != cacheInForce(m.cfg, m.live) {
		m.want.CacheMiB = &n
	}
	m.knobs[knobCache] = knobState{}
}

// stepLanes returns the next count up or down.
func stepLanes(n, dir int) int {
	if dir > 0 {
		for _, s := range laneSteps {
			if s > n {
				return s
			}
		}
		return n
	}
	for i := len(laneSteps) - 1; i >= 0; i-- {
		if laneSteps[i] < n {
			return laneSteps[i]
		}
	}
	return n
}

// stepCache returns the next budget in MiB up or down, on multiples of an
// eighth of all experts, at least one MiB away.
func stepCache(n, dir int, all, step int64) int {
	if step <= 0 || all <= 0 {
		return n
	}
	bytes := int64(n) * mib
	up := func(b int64) int { return int((b + mib - 1) / mib) }
	if dir > 0 {
		for k := step; ; k += step {
			if k >= all {
				return max(up(all), n)
			}
			if up(k) > n {
				return up(k)
			}
		}
	}
	for k := (bytes - 1) / step * step; k > 0; k -= step {
		if up(k) < n {
			return up(k)
		}
	}
	return n
}

// knobValue is a knob's value as the footer shows it: the one wished for while
// a wish waits.
func (m *Model) knobValue(k knob) string {
	if !m.cfg.Stream && (k == knobLanes || k == knobCache || k == knobOverlap) {
		return notMeasured
	}
	switch k {
	case knobRelease:
		return onOff(m.wantRelease())
	case knobLanes:
		return fmt.Sprint(m.wantLanes())
	case knobCache:
		return fmt.Sprint(m.wantCache(), " MiB")
	case knobOverlap:
		return onOff(m.wantOverlap())
	}
	return ""
}

// knobNote is what the footer says after the value.
func (m *Model) knobNote(k knob) (string, style) {
	switch st := m.knobs[k]; {
	case m.state == applying && m.inHand[k]:
		return "applying", m.th.accent
	case m.pendingKnob(k):
		return "next run", m.th.accent
	case st.verdict == "" || m.now().Sub(st.at) > verdictShown:
		return "", ""
	case st.verdict == engine.Applied:
		return string(st.verdict), m.th.hit
	case st.verdict == engine.Declined:
		return string(st.verdict), m.th.alert
	default:
		return string(st.verdict), m.th.read
	}
}

// noteOutcome records what became of a wish, in the footer and in the chat.
func (m *Model) noteOutcome(o engine.Outcome) {
	for k := knobRelease; k < knobCount; k++ {
		if knobNames[k] == o.Knob {
			m.knobs[k] = knobState{o.Verdict, o.Reason, m.now()}
		}
	}
	text := fmt.Sprintf("%s %s: %s", o.Knob, cleanLine(o.Value), o.Verdict)
	if o.Reason != "" {
		text += ", " + cleanLine(o.Reason)
	}
	m.chat.addNote(m.now(), o.Verdict != engine.Applied, text)
}
