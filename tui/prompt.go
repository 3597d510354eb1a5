package tui

import (
	"bmoe/internal/units"
	"bmoe/tui/term"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

const (
	askSomething = "ask something"
	// askFor is for an empty chat: a question that every model has an answer
	// to, the small one that the program brings along too.
	askFor = "Ask something, such as: Tell me a story about a dog.\n" +
		"Then change a setting (F2 to F7) and press ^G: the same question again, compared with the first answer."
)

// newPrompt returns the box that prompts are typed into. The terminal draws
// the cursor, so that nothing has to blink while nothing happens.
func newPrompt() textarea.Model {
	ta := textarea.New()
	ta.ShowLineNumbers = false
	ta.CharLimit = 0
	ta.DynamicHeight, ta.MinHeight, ta.MaxHeight, ta.MaxContentHeight = true, 1, 8, 10000
	ta.Placeholder = "the model is loading; you can type already"
	plain := textarea.StyleState{Placeholder: lipgloss.NewStyle().Foreground(lipgloss.Color("#8A8A8A"))}
	ta.SetStyles(textarea.Styles{Focused: plain, Blurred: plain, Cursor: textarea.CursorStyle{Shape: tea.CursorBlock, Blink: true}})
	ta.SetVirtualCursor(false)
	ta.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	// These keys have other meanings here.
	k := &ta.KeyMap
	k.InsertNewline.SetEnabled(false)
	k.TransposeCharacterBackward.SetEnabled(false)
	k.SelectAll.SetEnabled(false)
	k.PageUp.SetEnabled(false)
	k.PageDown.SetEnabled(false)
	k.InputBegin.SetKeys("alt+<")
	k.InputEnd.SetKeys("alt+>")
	k.LineNext.SetKeys("down")
	ta.Focus()
	return ta
}

// updatePrompt passes a message to the prompt, whose height may change by it.
// What is typed is cleaned: what the prompt shows is what is sent, so nothing can
// hide in it.
func (m *Model) updatePrompt(msg tea.Msg) tea.Cmd {
	if k, ok := msg.(tea.KeyPressMsg); ok && k.Text != "" {
		if k.Text = m.cleaned(k.Text); k.Text == "" {
			return nil
		}
		msg = k
	}
	var cmd tea.Cmd
	before := m.prompt.Height()
	m.prompt, cmd = m.prompt.Update(msg)
	if _, typed := msg.(tea.KeyPressMsg); !typed { // it may be the clipboard, which the prompt reads itself
		if text := m.prompt.Value(); term.Hidden(text) > 0 {
			m.draft(m.cleaned(text))
		}
	}
	if m.prompt.Height() != before {
		m.layout()
	}
	return cmd
}

// draft puts a text into the prompt in place of what is there.
func (m *Model) draft(text string) {
	m.prompt.SetValue(text)
	m.layout()
}

// paste puts pasted text into the prompt, whole: its lines are one message. It
// goes there from wherever the screen is.
func (m *Model) paste(text string) {
	if m.views.Top() != nil {
		m.views.Clear()
		m.layout()
	}
	m.setFocus(onPrompt)
	m.prompt.InsertString(m.cleaned(text))
	m.layout()
}

// cleaned is text for the prompt, and says what was left out of it.
func (m *Model) cleaned(text string) string {
	if n := term.Hidden(text); n > 0 {
		m.say(m.th.Read, units.Plural(int64(n), "invisible character")+" left out of the prompt")
	}
	return term.Clean(text)
}

// history is what has been sent, to be called back with Up and Down.
type history struct {
	sent  []string
	at    int    // index into sent; len(sent) is the draft
	draft string // what was being typed
}

func (h *history) add(s string) {
	if n := len(h.sent); n == 0 || h.sent[n-1] != s {
		h.sent = append(h.sent, s)
	}
	h.at, h.draft = len(h.sent), ""
}

// move returns the entry before (-1) or after (+1) the current one.
func (h *history) move(dir int, current string) (string, bool) {
	to := h.at + dir
	if to < 0 || to > len(h.sent) {
		return "", false
	}
	if h.at == len(h.sent) {
		h.draft = current
	}
	h.at = to
	if to == len(h.sent) {
		return h.draft, true
	}
	return h.sent[to], true
}

// walkHistory moves through the history, unless the cursor can move inside
// the prompt.
func (m *Model) walkHistory(dir int, msg tea.KeyPressMsg) tea.Cmd {
	li := m.prompt.LineInfo()
	first := m.prompt.Line() == 0 && li.RowOffset == 0
	last := m.prompt.Line() == m.prompt.LineCount()-1 && li.RowOffset >= li.Height-1
	if dir < 0 && !first || dir > 0 && !last {
		return m.updatePrompt(msg)
	}
	if s, ok := m.history.move(dir, m.prompt.Value()); ok {
		m.draft(s)
	}
	return nil
}
