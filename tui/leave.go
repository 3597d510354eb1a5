package tui

import (
	"fmt"
	"strings"

	"bmoe/engine"
	"bmoe/engine/backend"
)

// lastRuns is how many runs are told of on leaving.
const lastRuns = 5

// farewell is what stays on the terminal of a session: its last runs, a line
// each, nothing if there was none.
func (m *Model) farewell() []string {
	runs := m.runs.runs
	if len(runs) == 0 {
		return nil
	}
	first := max(0, len(runs)-lastRuns)
	lines := []string{"run    tok/s   waits     hits   settings that differ, text"}
	for i := first; i < len(runs); i++ {
		r := runs[i]
		line := fmt.Sprintf("%3d %8s %7s %8s   ", r.N, maybe(r.Result.DecodeTPS, sig, ""), waitShare(r), maybe(r.Result.Cache.HitPct, percent, " %"))
		base := m.runs.against(i)
		switch {
		case stoppedEarly(r):
			line += m.runs.endOfPrefill(r)
		case base < 0:
			line += "base"
		default:
			c := engine.Compare(runs[base], r)
			line += strings.Join(append(c.Differs, sameText(c)), ", ")
		}
		lines = append(lines, strings.TrimRight(m.th.shown(m.th.cut(line, max(m.w, minWidth))), " "))
	}
	if first > 0 {
		lines[0] += fmt.Sprintf(" (the last %d of %d)", lastRuns, len(runs))
	}
	return lines
}

// waitShare is the part of a run's time that it waited for the drive.
func waitShare(r *backend.Run) string {
	wall, stall := r.Result.PerToken.Wall, r.Result.PerToken.Stall
	if !wall.OK || !stall.OK || wall.Value <= 0 {
		return "n/a"
	}
	return fmt.Sprintf("%.0f %%", 100*stall.Value/wall.Value)
}
