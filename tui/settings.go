package tui

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// The settings that can be changed between runs are the backend's rows: the
// footer, the keys, the commands and the help go through them, and know none
// of them by name but for the keys that have been given to some.

// wishes are the settings that are to be changed, by name.
type wishes map[string]string

// settingNote is what became of the last wish for a setting.
type settingNote struct {
	verdict backend.Verdict
	at      time.Time
}

// verdictShown is how long the footer keeps saying applied, declined or ignored.
const verdictShown = 12 * time.Second

// tunable returns what changes the backend's settings, nil if nothing can.
func tunable(b backend.Backend) backend.Tunable {
	t, _ := b.(backend.Tunable)
	return t
}

// rowsOf returns the backend's settings, none if it has none.
func rowsOf(b backend.Backend) []backend.Setting {
	if t := tunable(b); t != nil {
		return t.Settings()
	}
	return []backend.Setting{}
}

// wanted is a setting's value: the one wished for, else the one being applied,
// else the one in force.
func (m *Model) wanted(r *backend.Setting) string {
	for _, ws := range []wishes{m.want, m.inHand} {
		if v, ok := ws[r.Name]; ok {
			return v
		}
	}
	return r.Value
}

// wish notes a wish; wishing for what is there already takes a waiting wish
// back. It is passed on at once when the engine is idle, else when the run ends.
func (m *Model) wish(r *backend.Setting, value string) tea.Cmd {
	delete(m.want, r.Name)
	delete(m.notes, r.Name)
	now, ok := m.inHand[r.Name]
	if !ok {
		now = r.Value
	}
	if value != now {
		m.want[r.Name] = value
	}
	if m.state == idle && len(m.want) > 0 {
		return m.apply()
	}
	return nil
}

// stepSetting obeys a key that changes a setting by a step.
func (m *Model) stepSetting(name string, dir int) tea.Cmd {
	if m.state == loading {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	r := backend.Find(m.settings, name)
	switch {
	case r == nil:
		m.say(m.th.Read, "there is no such setting here")
		return nil
	case r.Idle != "":
		m.say(m.th.Read, r.Name+": "+backend.Mention(r.Idle, m.settings, backend.AsCommand))
		return nil
	}
	from := m.wanted(r)
	if r.Kind == backend.Whole && r.Check(from) == nil && strings.Trim(from, "0123456789") != "" {
		from = r.Value // a word for a number: the number that it has come to so far
	}
	to := tunable(m.eng).Step(name, from, dir)
	if to == from {
		m.say(m.th.Read, fmt.Sprintf("that is as far as keys go; %s takes %s", commandFor(m.settings, r), r.Want))
		return nil
	}
	return m.wish(r, to)
}

// shownValue is a setting's value as the footer shows it: the one wished for
// while a wish waits.
func (m *Model) shownValue(r *backend.Setting) string {
	if r.Idle != "" {
		return units.NotMeasured
	}
	return r.Show(m.wanted(r))
}

// settingNote is what the footer says after the value.
func (m *Model) settingNote(r *backend.Setting) (string, term.Style) {
	_, inHand := m.inHand[r.Name]
	_, waits := m.want[r.Name]
	switch n := m.notes[r.Name]; {
	case inHand:
		return "applying", m.th.Accent
	case waits:
		return "next run", m.th.Accent
	case n.verdict == "" || m.now().Sub(n.at) > verdictShown:
		return "", ""
	case n.verdict == backend.Applied:
		return string(n.verdict), m.th.Hit
	case n.verdict == backend.Declined:
		return string(n.verdict), m.th.Alert
	default:
		return string(n.verdict), m.th.Read
	}
}

// noteOutcome records what became of a wish, in the footer and in the chat.
func (m *Model) noteOutcome(o backend.Outcome) {
	m.notes[o.Setting] = settingNote{o.Verdict, m.now()}
	m.chat.Note(m.now(), o.Verdict != backend.Applied, outcomeText(o, m.settings))
}

// outcomeText says what became of a wish. The value is the one in force, which
// is not the one wished for unless the wish was applied.
func outcomeText(o backend.Outcome, rows []backend.Setting) string {
	text := o.Setting
	switch o.Verdict {
	case backend.Applied:
		text += " " + term.CleanLine(o.Value)
	case backend.Declined:
		text += " stays " + term.CleanLine(o.Value)
	}
	text += ": " + string(o.Verdict)
	if o.Reason != "" {
		text += ", " + term.CleanLine(backend.Mention(o.Reason, rows, backend.AsCommand))
	}
	return text
}

// commandFor is the shortest command for a setting: its name, or the first word
// of it where nothing else begins so.
func commandFor(rows []backend.Setting, r *backend.Setting) string {
	if short, _, ok := strings.Cut(r.Name, "-"); ok && commanded(rows, short) == r {
		return "/" + short
	}
	return "/" + r.Name
}

// commanded finds the setting that a command is for: by its name, or by the
// beginning of the name if no other setting and no command begins so.
func commanded(rows []backend.Setting, cmd string) *backend.Setting {
	if r := backend.Find(rows, cmd); r != nil {
		return r
	}
	if _, taken := plainCommands[cmd]; taken {
		return nil
	}
	var found *backend.Setting
	for i := range rows {
		if strings.HasPrefix(rows[i].Name, cmd+"-") {
			if found != nil {
				return nil
			}
			found = &rows[i]
		}
	}
	return found
}

// usage is a setting's command with what it takes.
func usage(rows []backend.Setting, r *backend.Setting) string {
	takes := ""
	switch {
	case !r.Live:
		return commandFor(rows, r)
	case r.Kind == backend.Switch:
		takes = "on|off"
	case r.Kind == backend.Text:
		takes = r.Unit
	case r.Kind == backend.Word:
		takes = strings.Join(r.Words, "|")
	default:
		takes = "N"
		if r.Unit != "" {
			takes = r.Unit
		}
		takes = strings.Join(append([]string{takes}, r.Words...), "|")
	}
	return commandFor(rows, r) + " [" + takes + "]"
}

// settingCommand works out what a command asks of a setting: to be told of it,
// or a wish. now is the value that a bare switch turns. A command that is not of
// a setting is not ok.
func settingCommand(rows []backend.Setting, cmd, arg string, now func(*backend.Setting) string) (r *backend.Setting, value, told string, ok bool) {
	if r = commanded(rows, cmd); r != nil && r.Kind != backend.Text {
		arg = strings.ToLower(arg)
	}
	var refused *backend.SettingError
	switch {
	case r == nil:
		return nil, "", "", false
	case !r.Live && arg != "":
		told = fmt.Sprintf("%s is fixed once the model is open: start with %s", r.Name, backend.AsFlag(r, arg))
	case r.Idle != "":
		told = r.Name + " changes nothing: " + backend.Mention(r.Idle, rows, backend.AsCommand)
	case arg == "" && r.Live && r.Kind == backend.Switch:
		value = backend.On
		if now(r) == backend.On {
			value = backend.Off
		}
	case arg == "":
		shown := r.Show(now(r))
		if shown == "" {
			shown = "not set"
		}
		told = strings.TrimSpace(r.Name + " " + shown)
		if r.Live {
			told += fmt.Sprintf("; %s takes %s", commandFor(rows, r), r.Want)
		}
	case errors.As(r.Check(arg), &refused):
		told = fmt.Sprintf("%s %s: %s", commandFor(rows, r), refused.Value, refused.Problem)
	default:
		value = arg
	}
	return r, value, told, true
}

// settingRows are the rows of the page of settings.
func (m *Model) settingRows() []view.Setting {
	out := make([]view.Setting, len(m.settings))
	for i := range m.settings {
		r := &m.settings[i]
		note, _ := m.settingNote(r)
		out[i] = view.Setting{Name: r.Name, Value: r.Show(m.wanted(r)), Note: note, Origin: r.Origin, How: howToChange(m.settings, r),
			Help: backend.Mention(r.Help, m.settings, backend.AsCommand), Idle: backend.Mention(r.Idle, m.settings, backend.AsCommand), Live: r.Live, Typed: r.Kind != backend.Switch && r.Idle == ""}
		for j := range m.table {
			if m.table[j].setting == r.Name {
				out[i].Keys = caps(m.table[j].any, " ")
			}
		}
	}
	return out
}

// setTyped obeys a value that was typed on the page.
func (m *Model) setTyped(name, value string) tea.Cmd {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil
	}
	r, value, told, ok := settingCommand(m.settings, name, value, m.wanted)
	switch {
	case !ok || m.state == loading:
		m.say(m.th.Read, "not now: "+m.busyWith())
	case told != "":
		m.say(m.th.Read, term.CleanLine(told))
	default:
		return m.wish(r, value)
	}
	return nil
}

// howToChange says how a setting is changed: now, or at the next start.
func howToChange(rows []backend.Setting, r *backend.Setting) string {
	if r.Live {
		return usage(rows, r) + " changes it"
	}
	value := "VALUE"
	if r.Kind == backend.Switch {
		value = backend.On
		if r.Value == backend.On {
			value = backend.Off
		}
	}
	return "Fixed once the model is open: start with " + backend.AsFlag(r, value)
}
