package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"bmoe/engine"
	dialogue "bmoe/engine/chat"
	"bmoe/engine/tokenizer"
	"bmoe/internal/cli"
	"bmoe/internal/tty"
	"bmoe/tui/term"
)

// openText opens what the text modes need of the model: no weights. The path that
// comes back is the template's.
func (o *options) openText(ctx context.Context) (*engine.Text, string, error) {
	c, err := o.config(ctx)
	if err != nil {
		return nil, "", err
	}
	t, err := engine.OpenText(ctx, c.Model, c.Template)
	if err != nil {
		return nil, "", err
	}
	t.ParseSpecial = c.ParseSpecial
	if o.given("chat-template-file") {
		return t, c.TemplateFile, nil // what is wrong with the template is wrong there
	}
	return t, c.Model, nil
}

// warnOf tells of what is not as it should be, if there is anything.
func warnOf(notice string) {
	if notice != "" {
		fmt.Fprintf(os.Stderr, "bmoe: warning: %s\n", term.CleanLine(notice))
	}
}

// tokenize prints the ids of a text.
func tokenize(ctx context.Context, o *options, out *cli.Output) error {
	t, _, err := o.openText(ctx)
	if err != nil {
		return err
	}
	return out.Line("", orEmpty(t.Tokenizer.Encode(o.tokenize, tokenizer.Options{ParseSpecial: o.cfg.ParseSpecial})))
}

// orEmpty is [] rather than null in JSON.
func orEmpty(ids []int32) []int32 {
	if ids == nil {
		return []int32{}
	}
	return ids
}

// showPrompt prints what the model would see, and the ids of it.
func showPrompt(ctx context.Context, o *options, out *cli.Output) error {
	prompt, ids, err := o.render(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return out.Line("", struct {
			Prompt string  `json:"prompt"`
			IDs    []int32 `json:"ids"`
		}{prompt, orEmpty(ids)})
	}
	b, err := json.Marshal(orEmpty(ids))
	if err != nil {
		return err
	}
	if tty.Is(os.Stdout) {
		prompt = term.Clean(prompt)
	}
	return out.Text(fmt.Sprintf("%s\n%s\n", prompt, b))
}

// render returns the prompt as the model would get it.
func (o *options) render(ctx context.Context) (string, []int32, error) {
	if o.given("conversation") {
		return o.renderConversation(ctx)
	}
	text, err := o.readPrompt(ctx)
	if err != nil {
		return "", nil, err
	}
	t, path, err := o.openText(ctx)
	switch {
	case err != nil:
		return "", nil, err
	case o.cfg.Raw:
		return text, t.RawPrompt(text), nil
	}
	var thinking *bool
	if o.cfg.NoThink {
		thinking = new(bool)
	}
	warnOf(o.words(t.Notice))
	prompt, ids, err := t.Prompt(ctx, []dialogue.Message{{Role: dialogue.User, Content: text}}, thinking)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return prompt, ids, nil
}

// renderConversation gives the template the context that a file holds.
func (o *options) renderConversation(ctx context.Context) (string, []int32, error) {
	text, err := readFile(ctx, o.conversation, "conversation", false)
	if err != nil {
		return "", nil, err
	}
	values, err := dialogue.ReadContext([]byte(text))
	if err != nil {
		return "", nil, fmt.Errorf("conversation %s: %w", o.conversation, err)
	}
	t, path, err := o.openText(ctx)
	if err != nil {
		return "", nil, err
	}
	warnOf(o.words(t.Notice))
	prompt, ids, err := t.Render(ctx, values)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return prompt, ids, nil
}
