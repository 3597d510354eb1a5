package tui

import (
	"slices"
	"strings"

	"bmoe/engine/backend"
	"bmoe/tui/term"
)

// completing is a command that Tab goes through the ends of.
type completing struct {
	list []string
	at   int
}

// beginsCommand reports that the prompt holds the beginning of a command.
func (m *Model) beginsCommand() bool {
	v := m.prompt.Value()
	return m.views.Top() == nil && m.focus == onPrompt && strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "//") && !strings.Contains(v, "\n")
}

// commandLines are the commands with what they take, sorted.
func (m *Model) commandLines() (lines []string) {
	for i := range keyTable {
		if c := keyTable[i].cmd; c != "" {
			lines = append(lines, c)
		}
	}
	for i := range m.settings {
		if s := &m.settings[i]; s.Live {
			lines = append(lines, usage(m.settings, s))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// completions are what a command that is being typed can become.
func (m *Model) completions(text string) (list []string) {
	cmd, arg, spaced := strings.Cut(text, " ")
	lower := strings.ToLower(cmd)
	for _, line := range m.commandLines() {
		word, takes, more := strings.Cut(line, " ")
		switch {
		case !spaced && strings.HasPrefix(word, lower):
			if more {
				word += " "
			}
			list = append(list, word)
		case spaced && word == lower && strings.HasPrefix(takes, "["):
			for _, v := range strings.Split(strings.Trim(takes, "[]"), "|") {
				if v == strings.ToLower(v) && strings.HasPrefix(v, strings.ToLower(arg)) { // capitals stand for something else
					list = append(list, word+" "+v)
				}
			}
		}
	}
	return list
}

// complete goes on with a command: by what all that it can become have in common, or by
// one after the other.
func (m *Model) complete() {
	c, text := &m.completing, m.prompt.Value()
	if len(c.list) > 1 && c.list[c.at] == text {
		c.at = (c.at + 1) % len(c.list)
		m.draft(c.list[c.at])
		return
	}
	*c = completing{list: m.completions(text)}
	switch len(c.list) {
	case 0:
		m.say(m.th.Read, "no command goes on like this; /help lists them")
		return
	case 1:
		m.draft(c.list[0])
		return
	}
	same := c.list[0]
	for _, s := range c.list[1:] {
		for !strings.HasPrefix(s, same) {
			same = same[:len(same)-1]
		}
	}
	if len(same) > len(text) {
		m.draft(same)
		return
	}
	m.draft(c.list[0])
}

// commandHint is what the status line says of a command that is being typed: what it
// can become, or what it does.
func (m *Model) commandHint() string {
	th, text := m.th, m.prompt.Value()
	typed, _, _ := strings.Cut(text, " ")
	var parts []term.Part
	for i, s := range m.completions(text) {
		parts = append(parts, th.Text(i+1, th.Accent, strings.TrimSpace(s)))
	}
	for i := range keyTable {
		r := &keyTable[i]
		if word, _, _ := strings.Cut(r.cmd, " "); word == strings.ToLower(typed) && r.cmd != "" {
			parts = []term.Part{th.Text(0, th.Accent, r.cmd), th.Text(0, th.Dim, r.help)}
		}
	}
	if s := commanded(m.settings, strings.ToLower(strings.TrimPrefix(typed, "/"))); s != nil && s.Live {
		parts = []term.Part{th.Text(0, th.Accent, usage(m.settings, s)), th.Text(0, th.Dim, backend.Mention(s.Help, m.settings, backend.AsCommand))}
	}
	if len(parts) > 1 && parts[0].Rank > 0 {
		parts = append([]term.Part{th.Text(0, th.Dim, "Tab:")}, parts...)
	}
	return " " + th.Row(m.w-1, 2, parts...)
}
