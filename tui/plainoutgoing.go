package tui

import (
	"context"

	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/tui/term"
)

// edit sends a text in place of the last message.
func (p *plainChat) edit(ctx context.Context, text string) {
	o, err := lastMessage(p.eng, &p.sent)
	switch {
	case err != nil:
		p.say(err.Error())
	case text == "":
		p.say("usage: /edit TEXT, in place of: " + term.CleanLine(o.text))
	default:
		o.text, o.edits = text, true
		p.ask(ctx, o)
	}
}

// regenerate has the last message answered anew.
func (p *plainChat) regenerate(ctx context.Context, arg string) {
	o, err := lastMessage(p.eng, &p.sent)
	switch {
	case arg != "" && arg != "same":
		p.say(regenerateUsage)
		return
	case err != nil:
		p.say(err.Error())
		return
	}
	note, seed := anew(rowsOf(p.eng), arg == "same")
	p.say("[" + note + "]")
	if seed != "" {
		t := tunable(p.eng)
		for _, out := range t.Apply(map[string]string{"seed": seed}) {
			p.say(outcomeText(out, t.Settings()))
		}
	}
	o.again = true
	p.ask(ctx, o)
}

// attach adds a text file to the next message.
func (p *plainChat) attach(arg string) {
	var s profile.Snapshot
	p.eng.Snapshot(&s)
	switch arg {
	case "":
		if len(p.files) == 0 {
			p.say("usage: /file PATH adds a text file to the next message; /file off takes it back")
			return
		}
	case backend.Off:
		p.files = nil
		p.say("no file goes with the next message")
		return
	default:
		a, err := readFile(arg, s.Ctx)
		if err != nil {
			p.say(term.CleanLine(err.Error()))
			return
		}
		p.files = append(p.files, a)
	}
	p.say(term.CleanLine("with the next message: " + attached(p.files, &s)))
}
