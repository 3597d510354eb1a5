package tui

import (
	"bmoe/internal/units"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
)

const (
	loadingHint  = "the model is loading; you can type already"
	askSomething = "ask something"
	// askFor is for an empty chat: a question that every model has an answer
	// to, the small one that the program brings along too.
	askFor = "Ask something, such as: Tell me a story about a dog.\n" +
		"Then change a setting (F2 to F7) and press ^G: the same question again, compared with the first answer."
	// askServer is the same where the keys have nothing to change.
	askServer = "Ask something, such as: Tell me a story about a dog.\n" +
		"Then change a setting (/help lists them) and press ^G: the same question again, compared with the first answer."
)

// updatePrompt passes a message to the prompt, whose height may change by it.
func (m *Model) updatePrompt(msg tea.Msg) tea.Cmd {
	before := m.prompt.Height()
	cmd := m.prompt.Update(msg)
	m.sayLeftOut()
	if m.prompt.Height() != before {
		m.layout()
	}
	return cmd
}

// draft puts a text into the prompt in place of what is there.
func (m *Model) draft(text string) {
	m.prompt.Set(text)
	m.layout()
}

// paste puts pasted text into the prompt, from wherever the screen is.
func (m *Model) paste(text string) {
	if m.finding.on {
		m.finding.text += term.CleanLine(text)
		m.chat.Find(m.finding.text)
		return
	}
	if m.views.Top() == m.models {
		m.models.Paste(text)
		return
	}
	if m.views.Top() != nil {
		m.views.Clear()
		m.layout()
	}
	m.setFocus(onPrompt)
	m.prompt.Insert(text)
	m.sayLeftOut()
	m.layout()
}

func (m *Model) sayLeftOut() {
	if n := m.prompt.LeftOut(); n > 0 {
		m.say(m.th.Read, units.Plural(int64(n), "invisible character")+" left out of the prompt")
	}
}

// recall moves through what was sent, unless the cursor can move inside the prompt.
func (m *Model) recall(dir int, msg tea.KeyPressMsg) tea.Cmd {
	if !m.prompt.Recall(dir) {
		return m.updatePrompt(msg)
	}
	m.layout()
	return nil
}
