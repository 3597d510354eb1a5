package tui

import (
	"strings"
	"time"

	"bmoe/tui/pane"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// armedFor is how long the second Ctrl+C may take.
const armedFor = 3 * time.Second

// key takes a key press. Full-screen views come first, then what works
// anywhere, then what has the focus.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	m.status = "" // it was about the key or the command before
	if name != "ctrl+c" && name != "ctrl+d" {
		m.armed = time.Time{}
	}
	if m.finding.on {
		if cmd, ok := m.findKey(name, k); ok {
			return cmd
		}
	}
	if v := m.views.Top(); v != nil && v.Key(name) {
		return m.obey()
	}
	if name == "tab" && m.beginsCommand() {
		m.complete()
		return nil
	}
	if b := m.lookup(name, anyKeys); b.act != actNone {
		return m.act(b)
	}
	if m.views.Top() != nil || m.focus == onPanes {
		return m.act(m.lookup(name, paneKeys))
	}
	switch b := m.lookup(name, chatKeys); b.act {
	case actHistoryUp:
		return m.recall(-1, k)
	case actHistoryDown:
		return m.recall(+1, k)
	case actCtrlD:
		if m.prompt.Value() == "" {
			return m.askToQuit("Ctrl+D")
		}
		return m.updatePrompt(k) // deletes, as in a shell
	case actNone:
	default:
		return m.act(b)
	}
	if m.prompt.Value() == "" && (name == "home" || name == "end") {
		return m.act(m.lookup(name, paneKeys))
	}
	return m.updatePrompt(k)
}

// act does what a key or a command asks for.
func (m *Model) act(b bind) tea.Cmd {
	switch b.act {
	case actOpen:
		m.toggle(m.pages[b.view])
		if m.views.Top() == m.sessions {
			return m.listSessions()
		}
		if m.views.Top() == m.models {
			return m.openModels()
		}
		if m.mapShown() {
			return m.wake()
		}
	case actSave:
		return m.save("")
	case actStepDown:
		return m.stepSetting(b.setting, -1)
	case actStepUp:
		return m.stepSetting(b.setting, +1)
	case actAgain:
		return m.again()
	case actNewChat:
		return m.newChat()
	case actFold:
		m.chat.Fold()
	case actSwitch:
		m.switchFocus()
	case actStop:
		m.escape()
	case actCtrlC:
		return m.ctrlC()
	case actSuspend:
		if m.state != idle { // a run's times would hold the pause
			m.say(m.th.Read, "not now: "+m.busyWith())
			return nil
		}
		if m.suspend != nil {
			m.suspend()
		}
	case actRepaint:
		return tea.ClearScreen
	case actLeave:
		if m.views.Top() != nil {
			m.closeView()
		} else {
			m.setFocus(onPrompt)
		}
	case actQuit:
		return tea.Quit
	case actFreeze:
		m.freeze()
	case actEarlier:
		m.scrub(-1)
	case actLater:
		m.scrub(1)
	case actCopy:
		return m.copyAnswer()
	case actFind:
		m.openFind("")
	case actSlowest:
		m.slowest()
	case actZoomOut:
		m.zoom(true)
	case actZoomIn:
		m.zoom(false)
	case actZoomAll:
		m.zoomAll()
	case actExpand:
		if v := m.views.Top(); v == (expanded{m}) || v == nil && m.focus == onPanes {
			m.toggle(expanded{m})
		}
	case actPick:
		m.pick(b.pane)
	case actPickNext:
		m.pick((m.picked + 1) % len(m.panes))
	case actWhy:
		m.picked = pane.Why()
		if m.views.Top() != (expanded{m}) {
			m.toggle(expanded{m})
		}
	case actPickUp:
		m.pick(m.picked - 1)
	case actPickDown:
		m.pick(m.picked + 1)
	case actPageUp:
		m.page(-1)
	case actPageDown:
		m.page(+1)
	case actTop:
		m.toEdge(false)
	case actBottom:
		m.toEdge(true)
	case actChatTop:
		m.chat.ToStart()
	case actChatBottom:
		m.chat.ToEnd()
	case actSend:
		return m.enter()
	case actNewline:
		m.prompt.Insert("\n")
		m.layout()
	}
	return nil
}

// toggle opens a view over what is shown, or closes it.
func (m *Model) toggle(v view.View) {
	m.views.Toggle(v)
	m.layout()
}

func (m *Model) closeView() {
	m.views.Close()
	m.layout()
}

func (m *Model) setFocus(f focus) {
	if m.focus == f {
		return
	}
	m.focus = f
	m.prompt.SetFocus(f == onPrompt)
	m.layout()
}

func (m *Model) switchFocus() {
	if m.views.Top() != nil {
		m.views.Clear()
		m.layout()
		return
	}
	if m.focus == onPrompt {
		m.setFocus(onPanes)
	} else {
		m.setFocus(onPrompt)
	}
}

func (m *Model) pick(i int) {
	if i < 0 || i >= len(m.panes) {
		return
	}
	m.picked = i
	if v := m.views.Top(); v != nil && v != (expanded{m}) {
		m.views.Clear()
	}
	m.layout()
}

// escape closes what is open, else stops the answer, else goes back to the
// prompt.
func (m *Model) escape() {
	switch {
	case m.views.Top() != nil:
		m.closeView()
	case m.queued != nil && !m.queued.again:
		o := m.queued
		m.queued = nil
		m.takeBack(o)
	case m.editing:
		m.editing, m.files = false, nil
		m.prompt.Clear()
		m.layout()
	case m.state == generating:
		m.halt()
	case m.goBack():
	case m.focus == onPanes:
		m.setFocus(onPrompt)
	case m.scrubbing.picking():
		m.freeze()
	}
}

// ctrlC clears a draft, as in a shell, and quits where there is none.
func (m *Model) ctrlC() tea.Cmd {
	if m.prompt.Value() != "" && m.views.Top() == nil && m.focus == onPrompt {
		m.prompt.Clear()
		m.layout()
		return nil
	}
	return m.askToQuit("Ctrl+C")
}

// askToQuit quits at the second press; while there is nothing to lose, at the
// first.
func (m *Model) askToQuit(key string) tea.Cmd {
	if m.state == loading || m.state != generating && m.runs.Last() == nil || m.now().Before(m.armed) {
		return tea.Quit
	}
	m.armed = m.now().Add(armedFor)
	text := key + " again quits"
	if m.state == generating {
		text += "; Esc stops the answer"
	}
	m.say(m.th.Read, text)
	m.statusUntil = m.armed
	return nil
}

// enter sends what the prompt holds, or obeys it if it is a command.
func (m *Model) enter() tea.Cmd {
	text := m.prompt.Value()
	msg, cmd, arg := parsePrompt(text)
	if msg == "" && cmd == "" {
		return nil
	}
	m.prompt.Take()
	m.layout()
	if cmd != "" {
		return m.command(cmd, arg)
	}
	return tea.Batch(m.submit(msg), m.keepPrompt(strings.TrimSpace(text)))
}

// earlierPrompts reads what was sent in earlier sessions.
func (m *Model) earlierPrompts() tea.Cmd {
	store := m.keep.store
	if store == nil {
		return nil
	}
	return guarded("prompts", func() tea.Msg {
		all, err := store.Prompts()
		return promptsMsg{all, err}
	})
}

// keepPrompt keeps a message that was sent for sessions to come. One that cannot be kept is told
// of once.
func (m *Model) keepPrompt(text string) tea.Cmd {
	store, writing := m.keep.store, &m.keep.prompts
	if store == nil || m.keep.promptLost {
		return nil
	}
	return guarded("prompts", func() tea.Msg {
		if !writing.enter() {
			return nil
		}
		defer writing.leave()
		if err := store.AddPrompt(text); err != nil {
			return promptLostMsg{err}
		}
		return nil
	})
}

// resumed is what the screen does after the program was stopped.
func (m *Model) resumed(msg resumedMsg) tea.Cmd {
	if !msg.stopped || msg.told {
		m.say(m.th.Read, resumeNotice)
	}
	if !msg.stopped {
		return nil
	}
	if m.th.Method != ansi.GraphemeWidth {
		return tea.ClearScreen
	}
	// The renderer has left the mode in which the terminal measures by clusters,
	// and enters it by the terminal's answer.
	again := tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset}
	return tea.Sequence(func() tea.Msg { return again }, tea.ClearScreen)
}

// page moves by a page: of tokens while one is picked and the panes have the focus.
func (m *Model) page(dir int) {
	switch {
	case m.onTokens():
		m.scrub(10 * dir)
	case m.views.Top() == nil:
		m.chat.Page(dir)
	}
}

// toEdge goes to the first or the last of what page pages through.
func (m *Model) toEdge(last bool) {
	switch {
	case m.onTokens():
		m.scrubTo(last)
	case last:
		m.chat.ToEnd()
	default:
		m.chat.ToStart()
	}
}

// onTokens reports that keys which move go through the tokens.
func (m *Model) onTokens() bool {
	v := m.views.Top()
	return m.scrubbing.picking() && (v == nil && m.focus == onPanes || v == expanded{m})
}

func (m *Model) wheel(w tea.MouseWheelMsg) {
	dir := 0
	switch w.Button {
	case tea.MouseWheelUp:
		dir = -1
	case tea.MouseWheelDown:
		dir = +1
	}
	if v := m.views.Top(); v != nil {
		v.Wheel(dir)
	} else {
		m.chat.Scroll(dir * 3)
	}
}

// click acts as the key under the mouse, picks the pane there, or folds the reasoning whose header
// was hit.
func (m *Model) click(c tea.MouseClickMsg) tea.Cmd {
	if c.Button != tea.MouseLeft || m.tooSmall() {
		return nil
	}
	g := m.geometry()
	if from := m.h - g.footer; c.Y >= from {
		return m.clickFooter(c.X, c.Y-from)
	}
	if m.views.Top() == nil {
		m.clickBody(c, g)
	}
	return nil
}

// clickBody is a click on the chat or on a pane.
func (m *Model) clickBody(c tea.MouseClickMsg, g geometry) {
	y := c.Y - 1 // under the header
	if y < 0 || y >= g.body {
		return
	}
	if g.left > 0 && c.X < g.left {
		m.setFocus(onPrompt)
		if run, step, ok := m.chat.TokenAt(c.X-2, y-1); ok {
			m.pickSaid(run, step)
			return
		}
		m.chat.Click(y - 1)
		return
	}
	if g.right > 0 && c.X >= m.w-g.right {
		m.setFocus(onPanes)
		for i, h := range m.rows {
			if y <= h {
				m.pick(i)
				if at, ok := m.tokens().At(c.X - (m.w - g.right) - 2); i == 0 && y > 0 && ok {
					m.pickToken(at)
				}
				return
			}
			y -= h + 1
		}
	}
}
