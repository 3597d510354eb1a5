package pane

import (
	"strings"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

// shares is a row of w columns that says where a token's time goes: a bar between the
// share that it waits and the one that it computes.
func shares(th *term.Theme, mean *profile.Means, w int) string {
	wall := float64(mean.Wall.Value)
	if !mean.Wall.OK || wall <= 0 {
		return th.Row(w, 2, th.Text(0, th.Dim, "waits "+units.NotMeasured))
	}
	share := func(v profile.Maybe[int64]) string {
		return profile.Maybe[float64]{Value: float64(v.Value) / wall, OK: v.OK}.Text(units.Share, "")
	}
	waits, computes := "waits "+share(mean.Stall), "computes "+share(mean.Compute)
	room := w - len(waits) - len(computes) - 3
	if room < 8 {
		return th.Row(w, 2, th.Text(0, th.Bold, waits), th.Text(0, "", computes))
	}
	var bar strings.Builder
	drawn, sum := 0, 0.0
	for _, part := range []struct {
		time  profile.Maybe[int64]
		st    term.Style
		glyph string
	}{{mean.Stall, th.Stall, th.G.Stall}, {mean.Other, th.Other, th.G.Other}, {mean.Mgmt, th.Mgmt, th.G.Mgmt}, {mean.Compute, th.Compute, th.G.Compute}} {
		sum += float64(part.time.Value) / wall
		to := min(max(int(sum*float64(room)+0.5), drawn), room)
		bar.WriteString(part.st.On(term.Repeat(part.glyph, to-drawn)))
		drawn = to
	}
	return th.Bold.On(waits) + " " + bar.String() + term.Blanks(room-drawn) + "  " + computes
}

// Live is the panes in one line of at most w columns, for a screen that has no room for
// them beside the chat; empty before there is anything to tell.
func Live(th *term.Theme, s *profile.Snapshot, w int) string {
	if s.Phase == profile.Loading || !s.Mean.Wall.OK {
		return ""
	}
	var parts []term.Part
	if s.Cache.Streaming {
		parts = append(parts, th.Labelled(1, "hits", s.Cache.HitRun.Text(units.Percent, " %")))
	}
	if s.Mapping.State != "" {
		parts = append(parts, th.Text(2, "", strings.ToUpper(string(s.Mapping.State))))
	}
	parts = append(parts, th.Text(0, th.Bold, s.DecodeTPS.Text(units.Sig, " tok/s")))
	tail, used := th.Fit(w-30, 2, parts...)
	return shares(th, &s.Mean, w-used-2) + "  " + tail
}
