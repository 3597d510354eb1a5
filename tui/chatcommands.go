package tui

import (
	tea "charm.land/bubbletea/v2"

	"bmoe/engine/backend"
)

// chatCommand obeys the commands that are about the chat on the screen; false: it is
// none.
func (m *Model) chatCommand(cmd, arg string) (tea.Cmd, bool) {
	switch cmd {
	case "find":
		m.openFind(arg)
	case "edit":
		return m.edit(arg), true
	case "regenerate":
		return m.regenerate(arg), true
	case "file":
		return m.attach(arg), true
	case "markdown":
		m.markdown(arg)
	default:
		return nil, false
	}
	return nil, true
}

// markdown shows answers as what their marks mean, or as they were written.
func (m *Model) markdown(arg string) {
	on := !m.chat.Markdown()
	switch arg {
	case backend.On, backend.Off:
		on = arg == backend.On
	case "":
	default:
		m.say(m.th.Read, "usage: /markdown, /markdown on or /markdown off")
		return
	}
	m.chat.SetMarkdown(on)
	m.say(m.th.Accent, "Markdown "+backend.OnOff(on))
}
