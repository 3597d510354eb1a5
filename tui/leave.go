package tui

import (
	"fmt"
	"strings"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/view"
)

// lastRuns is how many runs are told of on leaving.
const lastRuns = 5

// farewell is what stays on the terminal of a session: its last runs, equal ones
// on a line, nothing if there was none.
func (m *Model) farewell() []string {
	l := m.runs
	groups := l.Groups()
	if len(groups) == 0 {
		return nil
	}
	first := max(0, len(groups)-lastRuns)
	lines := []string{"run       tok/s   waits     hits   text, change, settings"}
	for _, g := range groups[first:] {
		r := g.First()
		what, text, change := l.Relation(g)
		line := fmt.Sprintf("%-6s %8s %7s %8s   %s", g.Name(), g.Median(ab.DecodeTPS).Text(units.Sig, ""), waitShare(r), g.Median(view.HitRate).Text(units.Percent, " %"), strings.TrimPrefix(strings.Join([]string{text, change, what}, ", "), "-, "))
		lines = append(lines, strings.TrimRight(m.th.Shown(m.th.Cut(line, max(m.w, minWidth))), " "))
	}
	if first > 0 {
		lines[0] += fmt.Sprintf(" (the last %d of %d)", lastRuns, len(groups))
	}
	return lines
}

// waitShare is the part of a run's time that it waited for the drive.
func waitShare(r *backend.Run) string {
	wall, stall := r.Result.PerToken.Wall, r.Result.PerToken.Stall
	if !wall.OK || !stall.OK {
		return units.NotMeasured
	}
	return profile.Ratio(stall.Value, wall.Value).Text(units.Share, "")
}
