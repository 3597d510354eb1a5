package backend

import (
	"fmt"
	"strings"
)

// SettingError is a value that a setting refuses. It names no flag and no
// command: each face does that in its own words.
type SettingError struct {
	Setting string // its name
	Value   string // empty where no single value is at fault
	Problem string // what is wrong: "want 1 to 64"
	Remedy  string // what to do about it, if the problem does not say. Both mention settings
}

// Error words the refusal with the setting's name.
func (e *SettingError) Error() string { return e.Words(nil, PlainName) }

// Words words the refusal for a face.
func (e *SettingError) Words(rows []Setting, say Say) string {
	text := "{" + e.Setting + "} "
	if e.Value != "" {
		text += e.Value
	}
	text = strings.TrimSpace(text) + ": " + e.Problem
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return Mention(text, rows, say)
}

// Say names a setting in the words of a face, with a value unless it is empty.
type Say func(s *Setting, value string) string

// Mention puts the settings that a text mentions in the words of a face. A
// mention is a name in braces, with the value to give it if there is one:
// {lanes}, {cache=3000}. Braces around anything else stay as they are.
func Mention(text string, rows []Setting, say Say) string {
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(text, "{")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		inside, tail, ok := strings.Cut(rest, "}")
		name, value, _ := strings.Cut(inside, "=")
		s := Find(rows, name)
		if s == nil && rows == nil {
			s = &Setting{Name: name} // who words it knows no more than the name
		}
		if s == nil || !ok || !isName(name) {
			b.WriteString("{")
			text = rest
			continue
		}
		b.WriteString(say(s, value))
		text = tail
	}
}

func isName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && r != '-' {
			return false
		}
	}
	return s != ""
}

// Find returns the setting of a name, or nil.
func Find(rows []Setting, name string) *Setting {
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}

// PlainName names a setting by its name.
func PlainName(s *Setting, value string) string {
	return strings.TrimSpace(s.Name + " " + value)
}

// AsFlag names a setting as on the command line: --cache-mb 3000,
// --overlap=false.
func AsFlag(s *Setting, value string) string {
	switch {
	case s.Flag == "":
		return PlainName(s, value)
	case s.Kind == Switch && value == Off:
		return "--" + s.Flag + "=false"
	case s.Kind == Switch || value == "":
		return "--" + s.Flag
	}
	return fmt.Sprintf("--%s %s", s.Flag, value)
}

// AsCommand names a setting as in the chat: /cache 3000. What cannot be changed
// there is named as on the command line.
func AsCommand(s *Setting, value string) string {
	if !s.Live {
		return AsFlag(s, value)
	}
	return strings.TrimSpace("/" + s.Name + " " + value)
}
