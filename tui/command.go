package tui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// parsePrompt tells a message from a command. A command is a slash and a word
// of letters, small or capital; two slashes begin a message that begins with one.
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
		if r < 'a' || r > 'z' {
			return text, "", ""
		}
	}
	if word == "" {
		return text, "", ""
	}
	return "", word, strings.ToLower(strings.TrimSpace(arg))
}

// maxLanes is what /lanes takes at most.
const maxLanes = 64

// command obeys a command of the prompt.
func (m *Model) command(cmd, arg string) tea.Cmd {
	wrong := func(usage string) tea.Cmd {
		m.say(m.th.Read, "usage: "+usage)
		return nil
	}
	switch cmd {
	case "release":
		on, ok := parseOnOff(arg, !m.wantRelease())
		if !ok {
			return wrong("/release [on|off]")
		}
		return m.turn(func() { m.setRelease(on) })
	case "overlap":
		on, ok := parseOnOff(arg, !m.wantOverlap())
		if !ok {
			return wrong("/overlap [on|off]")
		}
		return m.turn(func() { m.setOverlap(on) })
	case "lanes":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 || n > maxLanes {
			return wrong("/lanes N, from 1 to " + strconv.Itoa(maxLanes))
		}
		return m.turn(func() { m.setLanes(n) })
	case "cache":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return wrong("/cache MIB, the budget in MiB; auto is there only at the start, as --cache-mb auto")
		}
		return m.turn(func() { m.setCache(n) })
	}
	if a, ok := plainCommands[cmd]; ok {
		if arg != "" {
			return wrong("/" + cmd + ", nothing after it")
		}
		return m.act(a)
	}
	m.say(m.th.Read, "unknown command /"+cmd+"; /help lists them, // begins a message with a slash")
	return nil
}

// plainCommands take no argument and do what a key does.
var plainCommands = map[string]action{
	"help": actHelp, "runs": actRuns, "again": actAgain, "new": actNewChat, "thoughts": actFold,
	"freeze": actFreeze, "stop": actStop, "quit": actQuit,
}

// parseOnOff reads on or off; nothing means the other way.
func parseOnOff(s string, otherwise bool) (on, ok bool) {
	switch s {
	case "":
		return otherwise, true
	case "on":
		return true, true
	case "off":
		return false, true
	}
	return false, false
}
