package tui

import (
	"fmt"
	"time"

	"bmoe/internal/sessions"
	"bmoe/tui/term"
)

// heard notes what was said.
func (p *plainChat) heard(from, text, reasoning string) {
	p.said = append(p.said, sessions.Entry{From: from, When: time.Now(), Text: text, Reasoning: reasoning})
	p.keep.said = true
}

func (p *plainChat) session() *sessions.Session {
	return p.keep.session(p.said, p.runs, p.eng, p.o.Model)
}

func (p *plainChat) runsSoFar() int {
	if last := p.runs.Last(); last != nil {
		return last.N
	}
	return 0
}

// save saves the chat, under a name if one is given.
func (p *plainChat) save(name string) error {
	if p.keep.store == nil {
		return errNotKept
	}
	s := p.session()
	if name != "" {
		s.Name = sessions.Name(name)
	}
	r := save(p.keep.store, s, p.eng)
	p.keep.took(r)
	if r.err != nil {
		return r.err
	}
	text, _ := r.text()
	p.say("[" + term.CleanLine(text) + "]")
	return nil
}

// leave saves the chat before another takes its place, and reports whether it may. A
// chat that cannot be saved is left at the second try.
func (p *plainChat) leave() bool {
	if !p.keep.due() || p.keep.lost {
		return true
	}
	err := p.save("")
	if err != nil {
		p.say("[" + term.CleanLine(err.Error()) + "; ask again to leave this chat all the same]")
	}
	return err == nil
}

// takeUp goes on with a session.
func (p *plainChat) takeUp(name string) {
	if p.keep.store == nil {
		p.say("[" + errNotKept.Error() + "]")
		return
	}
	if !p.leave() {
		return
	}
	s, notes, err := resume(p.keep.store, name, p.eng)
	for _, n := range notes {
		p.say("[" + term.CleanLine(n) + "]")
	}
	if err != nil {
		p.say("[" + term.CleanLine(err.Error()) + "]")
		return
	}
	p.keep.begin(p.runsSoFar())
	p.keep.s, p.said, p.dropped = *s, s.Transcript, s.Chat.Dropped
	p.say("[" + term.CleanLine(resumedText(s)) + "]")
	for _, e := range lastTurn(s.Transcript) {
		who := "bmoe: "
		if e.From == sessions.FromUser {
			who = "you: "
		}
		p.say(who + term.Clean(e.Text))
	}
}

// lastTurn is the last question with its answer, so that one knows where one was.
func lastTurn(all []sessions.Entry) (turn []sessions.Entry) {
	for _, e := range all {
		switch e.From {
		case sessions.FromUser:
			turn = []sessions.Entry{e}
		case sessions.FromModel:
			turn = append(turn, e)
		}
	}
	return turn
}

// listSessions lists what is kept.
func (p *plainChat) listSessions() {
	if p.keep.store == nil {
		p.say("[" + errNotKept.Error() + "]")
		return
	}
	all, notes := p.keep.store.List()
	for _, n := range notes {
		p.say("[" + term.CleanLine(n) + "]")
	}
	for _, s := range all {
		p.say(sessionRow(s))
	}
	if len(all) == 0 {
		p.say(fmt.Sprint(sessions.ErrNone))
	}
}
