package tui

import (
	"errors"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
)

// parsePrompt tells a message from a command. A command is a slash and a word
// of letters, small or capital, and hyphens; two slashes begin a message that begins with one.
func parsePrompt(text string) (message, cmd, arg string) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "//") {
		return text[1:], "", ""
	}
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return text, "", ""
	}
	word, arg, _ := strings.Cut(text[1:], " ")
	word = strings.ToLower(word)
	for _, r := range word {
		if (r < 'a' || r > 'z') && r != '-' {
			return text, "", ""
		}
	}
	if strings.Trim(word, "-") != word || word == "" {
		return text, "", ""
	}
	return "", word, strings.TrimSpace(arg)
}

// command obeys a command of the prompt.
func (m *Model) command(cmd, arg string) tea.Cmd {
	if todo, ok := m.sessionCommand(cmd, arg); ok {
		return todo
	}
	if todo, ok := m.chatCommand(cmd, arg); ok {
		return todo
	}
	a, ok := plainCommands[cmd]
	if cmd == "why" && arg != "" {
		m.whyToken(arg)
		return nil
	}
	if cmd == "record" {
		m.record(arg)
		return nil
	}
	if m.pages[cmd] != nil {
		a, ok = actOpen, true
	}
	if ok {
		if arg != "" {
			m.say(m.th.Read, "usage: /"+cmd+", nothing after it")
			return nil
		}
		return m.act(bind{act: a, view: cmd})
	}
	r, value, told, ok := settingCommand(m.settings, cmd, arg, m.wanted)
	switch {
	case !ok && m.state == loading:
		m.say(m.th.Read, "not now: "+m.busyWith())
	case !ok:
		m.say(m.th.Read, "unknown command /"+cmd+"; /help lists them, // begins a message with a slash")
	case told != "":
		m.say(m.th.Read, term.CleanLine(told))
	default:
		return m.wish(r, value)
	}
	return nil
}

// record has the session written down from now on.
func (m *Model) record(path string) {
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return
	}
	m.say(m.th.Read, term.CleanLine(record(m.eng, path)))
}

// record has an engine's runs written down, and says so.
func record(b backend.Backend, path string) string {
	r, ok := b.(backend.Recordable)
	if !ok {
		return "what this engine does cannot be recorded"
	}
	if err := r.Record(path); err != nil {
		return err.Error()
	}
	return "recording to " + path + "; bmoe --play plays it back"
}

// whichToken reads the argument of /why: a token's number, or the slowest, which is 0.
func whichToken(arg string) (step int, err error) {
	if arg == "slowest" {
		return 0, nil
	}
	if step, err = strconv.Atoi(arg); err != nil || step < 1 {
		return 0, errors.New("usage: /why, /why N for the N-th token of the last answer, or /why slowest")
	}
	return step, nil
}

// whyToken tells of a token in lines.
func whyToken(b backend.Backend, arg string) ([]string, error) {
	step, err := whichToken(arg)
	if err != nil {
		return nil, err
	}
	return backend.Why(b, step)
}

// plainCommands take no argument and do what a key does. So do the names of views.
var plainCommands = map[string]action{
	"why": actWhy, "copy": actCopy, "again": actAgain, "new": actNewChat, "thoughts": actFold,
	"freeze": actFreeze, "stop": actStop, "quit": actQuit,
}
