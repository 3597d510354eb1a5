package term

// FrameTop draws a title, and on the right a badge, into the top line of a
// frame w columns wide.
func (t *Theme) FrameTop(left, right, title string, badge Part, w int, focused bool) string {
	st, lead := t.Frame, t.G.Horizontal
	if focused {
		st, lead = t.Focused, t.G.Focus
	}
	end := right
	if badge.W > 0 {
		end = t.G.Horizontal + right
		w--
	}
	title = t.Cut(title, w-6-badge.W)
	line := st.On(left+lead) + " " + title + " "
	if badge.W == 0 {
		return line + st.On(Repeat(t.G.Horizontal, w-5-t.Width(title))+end)
	}
	return line + st.On(Repeat(t.G.Horizontal, w-7-t.Width(title)-badge.W)) + " " + badge.S + " " + st.On(end)
}

// FrameBottom closes a frame.
func (t *Theme) FrameBottom(w int, focused bool) string {
	st := t.Frame
	if focused {
		st = t.Focused
	}
	return st.On(t.G.BottomLeft + Repeat(t.G.Horizontal, w-2) + t.G.BottomRight)
}
