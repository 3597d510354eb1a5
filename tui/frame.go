package tui

import (
	"fmt"
	"strings"
	"time"

	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/pane"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// Below these the screen only says that it needs more room, and from
// wideFrom on chat and panes stand side by side.
const (
	minWidth, minHeight = 60, 16
	wideFrom            = 110
)

func (m *Model) tooSmall() bool { return m.w < minWidth || m.h < minHeight }

// geometry is how the screen is cut up.
type geometry struct {
	body        int // rows between the header and the status line
	left, right int // columns of the chat and of the panes; 0: not shown
	footer      int // rows
}

func (m *Model) geometry() geometry {
	g := geometry{footer: len(m.footer())}
	g.body = m.h - 2 - g.footer
	switch {
	case m.w >= wideFrom:
		g.right = min(max(m.w*45/100, 56), 90)
		g.left = m.w - g.right - 1
	case m.focus == onPrompt:
		g.left = m.w
	default:
		g.right = m.w
	}
	return g
}

// layout gives everything its size.
func (m *Model) layout() {
	m.column = nil
	if m.tooSmall() {
		return
	}
	g := m.geometry()
	m.laidOut, m.promptRows = g, nil
	if g.left > 0 {
		m.prompt.SetSize(g.left-4, min(max(g.body/3, 1), 8))
		m.chat.SetSize(g.left-4, max(g.body-3-m.prompt.Height(), 1))
	}
	m.sharePanes()
}

// sharePanes gives each pane its rows.
func (m *Model) sharePanes() {
	g := m.geometry()
	if g.right == 0 {
		return
	}
	w := g.right - 4
	for _, p := range m.panes {
		p.SetSize(w, 0)
		p.SetExpanded(false)
	}
	m.rows = pane.Stack(m.panes, m.picked, g.body)
	for i, p := range m.panes {
		p.SetSize(w, m.rows[i])
	}
}

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.ReportFocus = true
	if !m.o.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	switch {
	case m.tooSmall() || m.w <= 0:
	case m.finding.on:
		v.Cursor = tea.NewCursor(min(m.th.Width(findLabel+m.findShown()), m.w-1), 1+m.laidOut.body)
	case m.views.Top() == nil && m.focus == onPrompt:
		if c := m.prompt.Cursor(); c != nil {
			c.X += 2
			c.Y += 1 + 1 + m.chat.Height() + 1
			v.Cursor = c
		}
	}
	return v
}

// frame is the text of the screen.
func (m *Model) frame() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	if m.tooSmall() {
		return m.small()
	}
	th, foot := m.th, m.footer()
	if m.geometry() != m.laidOut { // a note in the footer has come or gone
		m.layout()
	}
	g := m.laidOut
	rows := make([]string, 0, m.h)
	rows = append(rows, m.header())
	if v := m.views.Top(); v != nil {
		inside := v.Render(m.w-4, g.body-2) // before its title: an expanded pane learns its size
		rows = append(rows, m.boxed(g.body, m.top(v.Title, m.badge(v.Figures()), th.G.TopLeft, th.G.TopRight, m.w, true), inside)...)
	} else {
		rows = append(rows, m.mainBody(g)...)
	}
	rows = append(rows, m.statusLine())
	rows = append(rows, foot...)
	return strings.Join(rows, "\n")
}

func (m *Model) mainBody(g geometry) []string {
	var left, right []string
	if g.left > 0 {
		left = m.chatBox(g)
	}
	if g.right > 0 {
		if m.column == nil {
			m.column = m.paneColumn(g.right)
		}
		right = m.column
	}
	rows := make([]string, g.body)
	for i := range rows {
		switch {
		case left == nil:
			rows[i] = right[i]
		case right == nil:
			rows[i] = left[i]
		default:
			rows[i] = left[i] + " " + right[i]
		}
	}
	return rows
}

// boxed frames rows that fill the whole body.
func (m *Model) boxed(h int, top string, rows []string) []string {
	side := m.th.Focused.On(m.th.G.Vertical)
	out := append(make([]string, 0, h), top)
	for i := range h - 2 {
		line := term.Blanks(m.w - 4)
		if i < len(rows) {
			line = rows[i]
		}
		out = append(out, side+" "+line+" "+side)
	}
	return append(out, m.th.FrameBottom(m.w, true))
}

// chatBox is the transcript over the prompt.
func (m *Model) chatBox(g geometry) []string {
	th := m.th
	focused := m.focus == onPrompt
	st := th.Frame
	if focused {
		st = th.Focused
	}
	side := st.On(th.G.Vertical)
	out := make([]string, 0, g.body)
	out = append(out, th.FrameTop(th.G.TopLeft, th.G.TopRight, th.Title.On("chat"), term.Part{}, g.left, focused))
	for _, l := range m.chat.Render() {
		out = append(out, side+" "+l+" "+side)
	}
	out = append(out, m.divider(g.left, st))
	if m.promptRows == nil {
		for _, l := range m.prompt.Lines() {
			l = strings.TrimRight(l, " ") // the box fills its rows by clusters; the terminal may measure otherwise
			m.promptRows = append(m.promptRows, side+" "+th.Pad(l, g.left-4)+" "+side)
		}
	}
	out = append(out, m.promptRows...)
	for len(out) < g.body-1 {
		out = append(out, side+term.Blanks(g.left-2)+side)
	}
	return append(out[:g.body-1], th.FrameBottom(g.left, focused))
}

// divider separates transcript and prompt; it tells how much is below what is shown,
// and, where the panes are not beside it, what they say in a line.
func (m *Model) divider(w int, st term.Style) string {
	th := m.th
	if n := m.chat.Below(); n > 0 {
		key := "^End"
		if m.prompt.Value() == "" || m.focus == onPanes {
			key = "End"
		}
		hint := fmt.Sprintf("%s %s below: %s jumps there", th.G.Down, units.Plural(int64(n), "line"), key)
		return st.On(th.G.TeeLeft+th.G.Horizontal) + " " + th.Read.On(hint) + " " + st.On(term.Repeat(th.G.Horizontal, w-5-th.Width(hint))+th.G.TeeRight)
	}
	if m.laidOut.right == 0 { // the panes are elsewhere
		if live := pane.Live(th, m.live, w-6); live != "" {
			return st.On(th.G.TeeLeft+th.G.Horizontal) + " " + live + " " + st.On(th.G.Horizontal+th.G.TeeRight)
		}
	}
	return st.On(th.G.TeeLeft + term.Repeat(th.G.Horizontal, w-2) + th.G.TeeRight)
}

// badge is what a frame must say of the figures inside, and whether they are held
// still; the header says more.
func (m *Model) badge(of view.Figures) term.Part {
	var ps []term.Part
	if of != view.None && m.live.Simulated {
		ps = append(ps, m.th.Text(0, m.th.Alert, "SIMULATED"))
	}
	if of != view.None && m.live.Lossy {
		ps = append(ps, m.th.Text(0, m.th.Alert, "LOSSY"))
	}
	if of == view.Live && m.frozen != nil {
		ps = append(ps, m.th.Text(0, m.th.Accent, "FROZEN"))
	}
	s, w := m.th.Fit(40, 1, ps...)
	return term.Part{S: s, W: w}
}

// top is the top line of a frame, with a title and a badge.
func (m *Model) top(title func(w int) string, badge term.Part, left, right string, w int, focused bool) string {
	text := title(w - 6)
	if m.th.Width(text)+badge.W+3 > w-6 {
		badge = term.Part{} // the header says it; figures go first
	}
	return m.th.FrameTop(left, right, text, badge, w, focused)
}

// paneColumn draws the panes on top of each other, their frames touching.
func (m *Model) paneColumn(w int) []string {
	th, badge := m.th, m.badge(view.Live)
	var out []string
	for i, p := range m.panes {
		focused := m.focus == onPanes && i == m.picked
		l, r := th.G.TeeLeft, th.G.TeeRight
		if i == 0 {
			l, r = th.G.TopLeft, th.G.TopRight
		}
		st := th.Frame
		if focused {
			st = th.Focused
		}
		side := st.On(th.G.Vertical)
		out = append(out, m.top(p.Title, badge, l, r, w, focused))
		for _, line := range p.Render() {
			out = append(out, side+" "+line+" "+side)
		}
	}
	last := m.focus == onPanes && m.picked == len(m.panes)-1
	return append(out, th.FrameBottom(w, last))
}

// badges warn about what all figures on the screen are to be taken with.
func (m *Model) badges() []term.Part {
	th := m.th
	var ps []term.Part
	if m.live.Simulated {
		ps = append(ps, th.Text(0, th.Alert, "SIMULATED"))
	}
	if m.live.Lossy {
		ps = append(ps, th.Text(0, th.Alert, "LOSSY"))
	}
	if m.live.Traced {
		ps = append(ps, th.Text(0, th.Read, "TRACED"))
	}
	if m.live.Process.Disturbed.Any() {
		ps = append(ps, th.Text(0, th.Read, "DISTURBED"))
	}
	if m.frozen != nil {
		ps = append(ps, th.Text(0, th.Accent, "FROZEN"))
	}
	return ps
}

// header says what is open and what it is doing.
func (m *Model) header() string {
	th, s := m.th, m.live
	right := m.badges()
	if m.state == loading {
		right = append(right, th.Text(0, th.Accent, m.loadingText()))
	} else {
		right = append(right, m.ctxPart(), th.Text(0, th.Bold, m.phaseText()))
		if s.Run > 0 {
			right = append(right, th.Text(0, th.Bold, s.DecodeTPS.Text(units.Sig, " tok/s")))
			if s.TTFT.OK {
				right = append(right, th.Labelled(1, "TTFT", s.TTFT.Text(units.Seconds, "")))
			}
			right = append(right, th.Text(4, "", units.Seconds(s.Elapsed)))
		}
	}
	name := term.CleanLine(s.Model.Name)
	if name == "" {
		name = term.CleanLine(m.o.Name)
	}
	name = th.Shown(name)
	r, rw := th.Fit(m.w-9-min(th.Width(name), max(8, m.w/5-4)), 3, right...)
	left := []term.Part{th.Text(0, th.Accent, "bmoe"), th.Text(0, th.Bold, th.Cut(name, m.w-rw-8))}
	if s.Model.Arch != "" {
		left = append(left, th.Text(4, "", term.CleanLine(s.Model.Arch)))
	}
	if q := term.CleanLine(s.Model.Quant); q != "" && !strings.Contains(name, q) {
		left = append(left, th.Text(5, "", q))
	}
	if s.Model.FileBytes > 0 {
		left = append(left, th.Text(3, "", units.Size(s.Model.FileBytes)+" on "+s.Model.HostMemory.Text(units.Size, "")+" RAM"))
	}
	l, lw := th.Fit(m.w-rw-2, 2, left...)
	return l + term.Blanks(m.w-lw-rw) + r
}

// ctxPart is how much of the context is used, noticeable from four fifths on.
func (m *Model) ctxPart() term.Part {
	s := m.live
	text := fmt.Sprintf("%d/%d", s.CtxUsed, s.Ctx)
	if s.Ctx == 0 && s.Remote.Server != "" { // it does not tell
		text = fmt.Sprintf("%d/%s", s.CtxUsed, units.NotMeasured)
	}
	if s.Ctx > 0 && s.CtxUsed*5 >= s.Ctx*4 {
		return m.th.Text(2, m.th.Read, "ctx "+text)
	}
	return m.th.Labelled(3, "ctx", text)
}

func (m *Model) loadingText() string {
	stage, frac := m.load.get()
	if stage == "" {
		return "loading"
	}
	if frac < 0 {
		return "loading: " + term.CleanLine(stage)
	}
	return "loading: " + term.CleanLine(stage) + " " + units.Share(min(frac, 1))
}

func (m *Model) phaseText() string {
	s := m.live
	switch m.state {
	case applying:
		return "changing settings"
	case saving:
		return "keeping the session"
	case leaving:
		return "changing the model"
	}
	if text := s.SilenceText(); text != "" {
		return text
	}
	switch s.Phase {
	case profile.Prefill:
		if s.Prompt == 0 && s.Remote.Server != "" {
			return "waiting for the server"
		}
		text := fmt.Sprintf("prefill %d/%d", s.PromptDone, s.Prompt)
		if left := s.PrefillLeft(); left.OK && s.Elapsed >= int64(time.Second) {
			text += ", " + units.About(left.Value) + " left"
		}
		return text
	case profile.Decode:
		if s.Steps > 0 {
			return fmt.Sprintf("decoding %d/%d", s.Step, s.Steps)
		}
		return fmt.Sprintf("decoding %d", s.Step)
	}
	return s.Phase.String()
}

// statusLine is the line above the footer: what just happened, or what to do.
func (m *Model) statusLine() string {
	th := m.th
	told := m.status != "" && m.now().Before(m.statusUntil)
	if m.finding.on && !told {
		return m.findLine()
	}
	if m.state == generating && m.stopping {
		return th.Row(m.w, 2, th.Text(0, th.Read, " stopping after this token"))
	}
	if m.change != nil {
		return m.changeLine()
	}
	if told {
		return th.Row(m.w, 2, th.Text(0, m.statusStyle, " "+th.Shown(m.status)))
	}
	if m.beginsCommand() {
		return m.commandHint()
	}
	if o := m.queued; o != nil {
		return th.Row(m.w, 2, th.Text(0, th.Accent, " waiting to be sent: "+th.Shown(term.CleanLine(o.shown()))), th.Text(1, th.Dim, "Esc takes it back"))
	}
	if m.editing && m.views.Top() == nil {
		return th.Row(m.w, 2, th.Text(0, th.Accent, " editing the last message: Enter sends this in its place, Esc leaves it as it is"))
	}
	if len(m.files) > 0 && m.views.Top() == nil {
		return th.Row(m.w, 2, th.Text(0, th.Accent, " with the next message: "+th.Shown(term.CleanLine(attached(m.files, m.live)))), th.Text(1, th.Dim, "/file off takes it back"))
	}
	hints := []string{"Enter sends", "Alt+Enter new line", "Tab panes", "PgUp/PgDn scroll"}
	switch {
	case m.views.Top() != nil:
		hints = m.views.Top().Hints()
	case m.focus == onPanes && m.onTokens():
		hints = append([]string{"e says why"}, tokenHints...)
	case m.focus == onPanes:
		hints = []string{paneCaps() + " picks a pane", "e expands it", "Space freezes", "s slowest token", "Left/Right tokens"}
	case m.state == loading:
		hints = []string{"type already", "Enter sends when the model is ready", "Ctrl+C quits"}
	}
	parts := make([]term.Part, len(hints))
	for i, s := range hints {
		parts[i] = th.Text(i, th.Dim, s)
	}
	return " " + th.Row(m.w-1, 3, parts...)
}

// small asks for a bigger terminal.
func (m *Model) small() string {
	th := m.th
	lines := []string{
		"bmoe needs 60 x 16 characters.",
		fmt.Sprintf("This terminal has %d x %d.", m.w, m.h),
		"Make it bigger, or use --plain.",
		"Ctrl+C twice quits.",
	}
	for len(lines) < m.h {
		lines = append(lines, "")
	}
	lines = lines[:m.h]
	for i, l := range lines {
		lines[i] = th.Pad(l, m.w)
	}
	return strings.Join(lines, "\n")
}
