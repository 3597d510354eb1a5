package tui

import (
	"fmt"
	"time"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/tui/term"
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
	verdict backend.Verdict // empty once it is old news
	at      time.Time
}

// verdictShown is how long the footer keeps saying applied, declined or ignored.
const verdictShown = 12 * time.Second

// laneSteps are the counts that F3 and F4 walk.
var laneSteps = []int{1, 2, 4, 8}

// A knob's value is the one wished for, else the one being applied, else the
// one in force.

func latest[T any](wish, inHand *T, inForce T) T {
	switch {
	case wish != nil:
		return *wish
	case inHand != nil:
		return *inHand
	}
	return inForce
}

func (m *Model) wantRelease() bool {
	return latest(m.want.ReleaseMmap, m.inHand.ReleaseMmap, m.cfg.ReleaseMmap)
}

func (m *Model) wantOverlap() bool { return latest(m.want.Overlap, m.inHand.Overlap, m.cfg.Overlap) }

func (m *Model) wantLanes() int { return latest(m.want.Lanes, m.inHand.Lanes, m.cfg.Lanes) }

func (m *Model) wantCache() int {
	return latest(m.want.CacheMiB, m.inHand.CacheMiB, cacheInForce(m.cfg, m.live))
}

// cacheInForce returns the budget in MiB, also when it was chosen by itself.
func cacheInForce(c engine.Config, s *profile.Snapshot) int {
	if c.Cache.Bytes > 0 {
		return int(c.Cache.MiB())
	}
	return int(s.Cache.Budget / term.MiB)
}

// holds reports whether a change says something of a knob.
func holds(c engine.Change, k knob) bool {
	switch k {
	case knobRelease:
		return c.ReleaseMmap != nil
	case knobLanes:
		return c.Lanes != nil
	case knobCache:
		return c.CacheMiB != nil
	case knobOverlap:
		return c.Overlap != nil
	}
	return false
}

// pending reports whether any wish waits.
func pending(c engine.Change) bool {
	return holds(c, knobRelease) || holds(c, knobLanes) || holds(c, knobCache) || holds(c, knobOverlap)
}

// wish notes a wish; wishing for what is there already takes a waiting wish
// back.
func wish[T comparable](to T, waiting **T, inHand *T, inForce T) {
	*waiting = nil
	if to != latest(nil, inHand, inForce) {
		*waiting = &to
	}
}

func (m *Model) setRelease(on bool) {
	wish(on, &m.want.ReleaseMmap, m.inHand.ReleaseMmap, m.cfg.ReleaseMmap)
	m.knobs[knobRelease] = knobState{}
}

func (m *Model) setOverlap(on bool) {
	wish(on, &m.want.Overlap, m.inHand.Overlap, m.cfg.Overlap)
	m.knobs[knobOverlap] = knobState{}
}

func (m *Model) setLanes(n int) {
	wish(n, &m.want.Lanes, m.inHand.Lanes, m.cfg.Lanes)
	m.knobs[knobLanes] = knobState{}
}

func (m *Model) setCache(n int) {
	wish(n, &m.want.CacheMiB, m.inHand.CacheMiB, cacheInForce(m.cfg, m.live))
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
	bytes := int64(n) * term.MiB
	up := func(b int64) int { return int((b + term.MiB - 1) / term.MiB) }
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
		return term.NotMeasured
	}
	switch k {
	case knobRelease:
		return term.OnOff(m.wantRelease())
	case knobLanes:
		return fmt.Sprint(m.wantLanes())
	case knobCache:
		return fmt.Sprint(m.wantCache(), " MiB")
	case knobOverlap:
		return term.OnOff(m.wantOverlap())
	}
	return ""
}

// knobNote is what the footer says after the value.
func (m *Model) knobNote(k knob) (string, term.Style) {
	switch st := m.knobs[k]; {
	case holds(m.inHand, k):
		return "applying", m.th.Accent
	case holds(m.want, k):
		return "next run", m.th.Accent
	case st.verdict == "" || m.now().Sub(st.at) > verdictShown:
		return "", ""
	case st.verdict == backend.Applied:
		return string(st.verdict), m.th.Hit
	case st.verdict == backend.Declined:
		return string(st.verdict), m.th.Alert
	default:
		return string(st.verdict), m.th.Read
	}
}

// noteOutcome records what became of a wish, in the footer and in the chat.
func (m *Model) noteOutcome(o backend.Outcome) {
	for k := knobRelease; k < knobCount; k++ {
		if knobNames[k] == o.Setting {
			m.knobs[k] = knobState{o.Verdict, m.now()}
		}
	}
	m.chat.addNote(m.now(), o.Verdict != backend.Applied, outcomeText(o))
}

// outcomeText says what became of a wish. The value is the one in force, which
// is not the one wished for unless the wish was applied.
func outcomeText(o backend.Outcome) string {
	verb := ""
	if o.Verdict != backend.Applied {
		verb = "stays "
	}
	text := fmt.Sprintf("%s %s%s: %s", o.Setting, verb, term.CleanLine(o.Value), o.Verdict)
	if o.Reason != "" {
		text += ", " + term.CleanLine(o.Reason)
	}
	return text
}
