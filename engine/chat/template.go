// Package chat turns a conversation into the text that a model was trained on,
// by the template that its file carries, and takes the model's answer apart again.
package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bmoe/engine/chat/jinja"
)

// Values is a template's context: its variables by name, in order. The values are
// those of package jinja.
type Values = *jinja.Dict

// Template renders conversations.
type Template struct {
	// Now tells the date to templates that write it into the system message.
	Now func() time.Time

	source string
	parsed *jinja.Template
}

// ParseTemplate reads a template, as in the metadata key tokenizer.chat_template.
func ParseTemplate(source string) (*Template, error) {
	p, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{Now: time.Now, source: source, parsed: p}, nil
}

// TemplateFor returns the template of a model that carries source: it, or if there is
// none or it does not work the form that the vocabulary's tokens tell of. Then notice
// says so. hasToken tells whether a text is a token. The error is the context's.
func TemplateFor(ctx context.Context, source string, hasToken func(text string) bool) (t *Template, notice string, err error) {
	notice = "the model carries no chat template"
	if source != "" {
		if t, err = ParseTemplate(source); err == nil {
			if err = t.try(ctx); err == nil || ctx.Err() != nil {
				return t, "", err
			}
		}
		notice = "the model's own template fails (" + err.Error() + ")"
	}
	f := formFor(hasToken)
	why := ", which its vocabulary has tokens for; {chat-template} gives another"
	if f.tokens == nil {
		why = ", and answers may be poor: {chat-template} gives another, and with {raw=on} the model continues plain text"
	}
	t, err = ParseTemplate(f.template())
	return t, notice + ": " + f.name + " is used" + why, err
}

// try renders a question. A template may refuse it, which is for the conversation
// to find out; any other failure is its own.
func (t *Template) try(ctx context.Context) error {
	_, err := t.RenderMessages(ctx, []Message{{Role: User, Content: "?"}}, Options{AddGenerationPrompt: true})
	var e *jinja.Error
	if errors.As(err, &e) && e.Raised {
		return nil
	}
	return err
}

// thinkSwitches are the variables by which templates are told whether to have the model
// think, and what they are set to for yes and for no; nil leaves one out. A template
// knows a switch if it has the word, and the value for no if that is a text.
var thinkSwitches = []struct {
	variable string
	on, off  any
	word     string // that the template has beside the variable; "": any
}{
	{"enable_thinking", true, false, ""},                 // Qwen, GLM, Nemotron, Gemma 4, Laguna, SmolLM3, DeepSeek-V3.1 and later
	{"thinking", true, false, "elif thinking"},           // Granite
	{"thinking_budget", nil, int64(0), ""},               // Seed-OSS
	{"thinking_mode", "enabled", "disabled", ""},         // MiniMax-M3
	{"reasoning_effort", "high", "no_think", "no_think"}, // Hy3
	{"reasoning_effort", "high", "none", `== "none"`},    // Cohere
	{"reasoning_effort", "high", "minimal", "minimal"},   // Solar Open
}

// Thinks reports whether thinking can be switched: the template knows a variable for it.
func (t *Template) Thinks() bool {
	for _, x := range thinkSwitches {
		if strings.Contains(t.source, x.variable) && strings.Contains(t.source, x.word) {
			return true
		}
	}
	return false
}

// switchThinking sets the variables that the template knows.
func (t *Template) switchThinking(c Values, on bool) {
	for _, x := range thinkSwitches {
		if !strings.Contains(t.source, x.variable) || !strings.Contains(t.source, x.word) {
			continue
		}
		value := x.off
		if on {
			value = x.on
		}
		if _, set := c.Get(x.variable); value != nil && !set {
			c.Set(x.variable, value)
		}
	}
}

// Reasons reports whether the template knows a span for reasoning.
func (t *Template) Reasons() bool {
	if strings.Contains(t.source, markChannel+"analysis") {
		return true
	}
	for _, tag := range thinkTags {
		if strings.Contains(t.source, tag.open) {
			return true
		}
	}
	return false
}

// Render executes the template on a whole context. specials returns the places
// where a text spells out a special token, overlapping ones included; inside the
// messages those are text. With nil all of them are tokens. Render returns as soon
// as ctx ends: then the template, which looks at ctx too, is left behind.
func (t *Template) Render(ctx context.Context, vars Values, specials func(text string) [][2]int) (Prompt, error) {
	var standIns map[rune]rune
	if specials != nil {
		var err error
		if vars, standIns, err = plainContents(vars, t.source, specials); err != nil {
			return Prompt{}, err
		}
	}
	type result struct {
		text   string
		err    error
		failed any // a bug of ours, to be raised where it can be told
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.failed = recover()
			done <- r
		}()
		r.text, r.err = t.parsed.Render(ctx, vars, jinja.Options{Now: t.Now(), StandIns: standIns})
	}()
	select {
	case <-ctx.Done():
		return Prompt{}, ctx.Err()
	case r := <-done:
		switch {
		case r.failed != nil:
			panic(r.failed)
		case r.err != nil && ctx.Err() != nil:
			return Prompt{}, ctx.Err()
		case r.err != nil:
			return Prompt{}, fmt.Errorf("chat template: %w", r.err)
		}
		return uncover(r.text, standIns), nil
	}
}

// Options are what a template is told beside the messages.
type Options struct {
	AddGenerationPrompt bool  // end with the beginning of the model's answer
	EnableThinking      *bool // nil leaves it to the template
	Tools               any   // a *jinja.List of tool definitions, or nil
	BOS, EOS            string
	Specials            func(text string) [][2]int // see Render
}

// RenderMessages executes the template on messages.
func (t *Template) RenderMessages(ctx context.Context, messages []Message, o Options) (Prompt, error) {
	return t.Render(ctx, t.variables(messages, o), o.Specials)
}

// variables builds the variables that templates look for. A variable that has
// nothing to say is left out, because templates ask whether it is defined.
func (t *Template) variables(messages []Message, o Options) Values {
	list := jinja.NewList()
	for _, m := range messages {
		list.Items = append(list.Items, t.message(m))
	}
	c := jinja.NewDict()
	c.Set("messages", list)
	c.Set("add_generation_prompt", o.AddGenerationPrompt)
	if o.EnableThinking != nil {
		t.switchThinking(c, *o.EnableThinking)
	}
	if o.Tools != nil {
		c.Set("tools", o.Tools)
	}
	c.Set("bos_token", o.BOS)
	c.Set("eos_token", o.EOS)
	return c
}

// message is a message as templates know it. Reasoning goes into a field of its
// own, so that the template decides which of it the model sees again; most drop
// that of earlier turns.
func (t *Template) message(m Message) *jinja.Dict {
	d := jinja.NewDict()
	d.Set("role", m.Role)
	d.Set("content", m.Content)
	if m.Reasoning != "" {
		field := "reasoning_content"
		if !strings.Contains(t.source, field) && strings.Contains(t.source, "thinking") {
			field = "thinking" // gpt-oss
		}
		d.Set(field, m.Reasoning)
	}
	return d
}

// ReadContext reads a context from a JSON object, all of whose members are the
// template's variables: messages, and any of tools, add_generation_prompt,
// enable_thinking, bos_token, eos_token and whatever else a template knows. The
// order of members is kept.
func ReadContext(text []byte) (Values, error) {
	v, err := jinja.FromJSON(text)
	if err != nil {
		return nil, err
	}
	c, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	messages, _ := c.Get("messages")
	if _, ok := messages.(*jinja.List); !ok {
		return nil, errors.New("the member messages is missing or no array")
	}
	return c, nil
}
