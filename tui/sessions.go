package tui

import (
	"fmt"
	"strings"

	"bmoe/internal/sessions"
	"bmoe/tui/chat"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// entries is the transcript as it is kept.
func entries(t *chat.Transcript) (out []sessions.Entry) {
	from := map[chat.Kind]string{chat.FromUser: sessions.FromUser, chat.FromModel: sessions.FromModel, chat.FromUs: sessions.FromUs}
	for _, b := range t.Blocks() {
		out = append(out, sessions.Entry{From: from[b.Kind], When: b.When, Tag: b.Tag, Warn: b.Warn, Text: b.Text(), Reasoning: b.Reasoning(), Thought: b.Thought()})
	}
	return out
}

// showEntries brings a kept transcript back.
func (m *Model) showEntries(all []sessions.Entry) {
	for _, e := range all {
		when := settleTime(e.When, m.now())
		switch e.From {
		case sessions.FromUser:
			m.chat.Ask(when, e.Text)
		case sessions.FromModel:
			b := m.chat.Answer(when, e.Tag)
			b.AddText(e.Text)
			b.AddReasoning(e.Reasoning)
			b.SetThought(e.Thought, false)
			b.Finish()
		default:
			m.chat.Note(when, e.Warn, e.Text)
		}
	}
}

// captured is the chat as it is now.
func (m *Model) captured() *sessions.Session {
	return m.keep.session(entries(m.chat), m.runs, m.eng, m.o.Model)
}

// save saves the chat, under a name if one is given: now, or as soon as the engine has
// nothing to do.
func (m *Model) save(name string) tea.Cmd {
	switch {
	case m.keep.store == nil:
		m.say(m.th.Read, errNotKept.Error())
		return nil
	case m.state != idle:
		m.queuedSave = &name
		m.say(m.th.Accent, "saved as soon as this is over")
		return nil
	}
	s := m.captured()
	if name != "" {
		s.Name = sessions.Name(name)
	}
	m.state = saving
	store, eng := m.keep.store, m.eng
	return tea.Batch(m.wake(), m.job(func() tea.Msg { return savedMsg(save(store, s, eng)) }))
}

func (m *Model) onSaved(r saveResult) tea.Cmd {
	cmd := m.settle()
	m.tellSaved(r)
	return cmd
}

// tellSaved notes what became of a save. What matters stays in the chat.
func (m *Model) tellSaved(r saveResult) {
	m.keep.took(r)
	text, warn := r.text()
	text = term.CleanLine(text)
	if warn {
		m.chat.Note(m.now(), true, text)
	} else {
		m.say(m.th.Accent, text)
	}
}

// unsaved is what a chat that makes room for another is saved by first: nil if there
// is nothing to be lost, or the user has been told that it cannot be saved.
func (m *Model) unsaved() func() *saveResult {
	if !m.keep.due() || m.keep.lost {
		return func() *saveResult { return nil }
	}
	s, store, eng := m.captured(), m.keep.store, m.eng
	return func() *saveResult {
		r := save(store, s, eng)
		return &r
	}
}

// newChat forgets the conversation, once it is saved.
func (m *Model) newChat() tea.Cmd {
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	m.state = saving
	eng, unsaved := m.eng, m.unsaved()
	return m.job(func() tea.Msg {
		saved := unsaved()
		if saved == nil || saved.err == nil {
			eng.NewChat()
		}
		return newChatMsg{saved}
	})
}

func (m *Model) onNewChat(msg newChatMsg) tea.Cmd {
	if msg.saved != nil {
		m.tellSaved(*msg.saved)
		if msg.saved.err != nil {
			m.chat.Note(m.now(), true, "this chat stays, since it could not be saved; ask again to leave it")
			return m.settle()
		}
	}
	m.chat.Clear()
	m.repeatable, m.editing, m.sent = false, false, outgoing{}
	m.keep.begin(m.runsSoFar())
	text := "new chat"
	if msg.saved != nil {
		text += fmt.Sprintf("; the one before is saved as %q", term.CleanLine(msg.saved.out.Name))
	}
	cmd := m.settle()
	m.say(m.th.Accent, text)
	return cmd
}

func (m *Model) runsSoFar() int {
	if last := m.runs.Last(); last != nil {
		return last.N
	}
	return 0
}

// takeUp goes on with a session, once the chat before it is saved.
func (m *Model) takeUp(name string) tea.Cmd {
	switch {
	case m.keep.store == nil:
		m.say(m.th.Read, errNotKept.Error())
		return nil
	case m.state != idle:
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	m.state = saving
	store, eng, unsaved := m.keep.store, m.eng, m.unsaved()
	return tea.Batch(m.wake(), m.job(func() tea.Msg {
		msg := takenUpMsg{saved: unsaved()}
		if msg.saved != nil && msg.saved.err != nil {
			msg.err = msg.saved.err
			return msg
		}
		msg.s, msg.notes, msg.err = resume(store, name, eng)
		return msg
	}))
}

func (m *Model) onTakenUp(msg takenUpMsg) tea.Cmd {
	if msg.saved != nil {
		m.tellSaved(*msg.saved)
	}
	if msg.err == nil {
		m.chat.Clear()
		m.views.Clear()
		m.repeatable, m.editing, m.sent = false, false, outgoing{}
		m.keep.begin(m.runsSoFar())
		m.keep.s = *msg.s
		m.showEntries(msg.s.Transcript)
		m.dropped = msg.s.Chat.Dropped
	}
	for _, n := range msg.notes {
		m.chat.Note(m.now(), true, term.CleanLine(n))
	}
	cmd := m.settle()
	if msg.err != nil {
		m.chat.Note(m.now(), true, term.CleanLine(msg.err.Error()))
	} else {
		m.say(m.th.Accent, term.CleanLine(resumedText(msg.s)))
	}
	m.layout()
	return cmd
}

// exportTo writes the chat as Markdown.
func (m *Model) exportTo(path string) tea.Cmd {
	if m.eng == nil {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	s, table := m.captured(), m.runs.CSV()
	return m.job(func() tea.Msg {
		if err := export(path, s, table); err != nil {
			return toldMsg{err.Error(), true}
		}
		return toldMsg{"written to " + path, false}
	})
}

// writeRuns writes the list of runs beside the sessions.
func (m *Model) writeRuns() tea.Cmd {
	store := m.keep.store
	switch {
	case store == nil:
		m.say(m.th.Read, "nothing is kept here: /export FILE.csv writes the runs anywhere")
		return nil
	case m.runs.Last() == nil:
		m.say(m.th.Read, "no run yet")
		return nil
	}
	when, table, runs := m.now(), m.runs.CSV(), keptRuns(m.runs, 0)
	return m.job(func() tea.Msg {
		path, err := exportRuns(store, when, table, runs)
		if err != nil {
			return toldMsg{err.Error(), true}
		}
		return toldMsg{"written to " + path + ".csv and .md", false}
	})
}

// listSessions reads the folder for the view of sessions.
func (m *Model) listSessions() tea.Cmd {
	store := m.keep.store
	if store == nil {
		m.sessions.Fail(errNotKept.Error())
		return nil
	}
	return m.job(func() tea.Msg {
		all, notes := store.List()
		return listedMsg{all: all, notes: notes}
	})
}

func (m *Model) onListed(msg listedMsg) {
	var rows []view.Session
	for _, s := range msg.all {
		rows = append(rows, view.Session{ID: s.ID(), Name: s.Name, Model: s.Model.Name, Saved: s.Saved.Local(), Questions: s.Questions(), StateBytes: s.StateBytes, Open: s.ID() == m.keep.s.ID()})
	}
	for _, n := range msg.notes {
		m.chat.Note(m.now(), true, term.CleanLine(n))
	}
	m.sessions.Set(rows)
	if msg.err != nil {
		m.say(m.th.Alert, term.CleanLine(msg.err.Error()))
	}
}

// obey does what was asked for in a view.
func (m *Model) obey() tea.Cmd {
	if m.views.Top() == m.models {
		return m.obeyModels()
	}
	if w, ok := m.rowsPage.Asked(); ok {
		if w.Dir == 0 {
			return m.setTyped(w.Name, w.Value)
		}
		return m.stepSetting(w.Name, w.Dir)
	}
	switch m.runs.Asked() {
	case view.KeepNote:
		m.keep.said = true
		return nil
	case view.WriteRuns:
		return m.writeRuns()
	}
	w, ok := m.sessions.Asked()
	if !ok {
		return nil
	}
	store := m.keep.store
	change := func(f func() error) tea.Cmd {
		return m.job(func() tea.Msg {
			err := f()
			all, notes := store.List()
			return listedMsg{all, notes, err}
		})
	}
	switch w.Do {
	case view.TakeUp:
		return m.takeUp(w.ID)
	case view.Rename:
		return change(func() error { return store.Rename(w.ID, w.Name) })
	case view.Delete:
		if w.ID == m.keep.s.ID() {
			m.keep.begin(m.keep.from) // what is on the screen is saved anew
			m.keep.said = true
		}
		return change(func() error { return store.Delete(w.ID) })
	}
	return nil
}

// keepOnLeaving saves what would be lost as the program ends, and says so in a line.
// The terminal has been given back, and the engine has nothing to do.
func (m *Model) keepOnLeaving() (line string, err error) {
	m.drain()
	if m.eng == nil || !m.keep.due() {
		return "", nil
	}
	r := save(m.keep.store, m.captured(), m.eng)
	m.keep.took(r)
	if r.err != nil {
		return "", r.err
	}
	text, _ := r.text()
	return "session " + term.CleanLine(text) + "; bmoe --resume goes on with it", nil
}

// sessionCommand obeys the commands that are about sessions; false: it is none.
func (m *Model) sessionCommand(cmd, arg string) (tea.Cmd, bool) {
	switch cmd {
	case "save":
		return m.save(arg), true
	case "resume":
		return m.takeUp(arg), true
	case "export":
		return m.exportTo(strings.TrimSpace(arg)), true
	case "note":
		text, warn := m.keep.note(m.runs, arg)
		st := m.th.Accent
		if warn {
			st = m.th.Read
		}
		m.say(st, text)
		return nil, true
	}
	return nil, false
}
