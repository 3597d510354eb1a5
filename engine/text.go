package engine

import (
	"context"
	"fmt"

	"bmoe/engine/chat"
	"bmoe/engine/gguf"
	"bmoe/engine/tokenizer"
)

// Text is the part of a model that deals with text: its vocabulary and its
// chat template. It needs no weights, so it also opens vocabulary-only files.
type Text struct {
	Tokenizer *tokenizer.Tokenizer
	// Template is nil if TemplateErr says why there is none.
	Template    *chat.Template
	TemplateErr error
	// Notice says why the template is not the model's own, if it is not.
	Notice string
	// ParseSpecial takes special tokens that a message spells out for tokens.
	ParseSpecial bool
}

// OpenText reads a model's vocabulary and template. A template source other
// than "" takes the place of the file's own.
func OpenText(ctx context.Context, path, template string) (*Text, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	return newText(ctx, f, template)
}

func newText(ctx context.Context, f *gguf.File, template string) (*Text, error) {
	path := f.Shards[0].Path
	tok, err := tokenizer.New(f.Meta)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	tok.Show(chat.Shown)
	t := &Text{Tokenizer: tok}
	if template != "" {
		t.Template, t.TemplateErr = chat.ParseTemplate(template)
		return t, nil
	}
	if template, err = f.Meta.StringOr("tokenizer.chat_template", ""); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.Template, t.Notice, t.TemplateErr = chat.TemplateFor(ctx, template, func(s string) bool {
		_, ok := tok.ID(s)
		return ok
	})
	return t, ctx.Err()
}

// Prompt renders messages as the model expects them before it answers, and
// returns the text and its ids. thinking is nil where the template decides.
func (t *Text) Prompt(ctx context.Context, messages []chat.Message, thinking *bool) (string, []int32, error) {
	return t.render(ctx, messages, thinking, true)
}

// render renders messages, with the words that ask for an answer or without.
func (t *Text) render(ctx context.Context, messages []chat.Message, thinking *bool, ask bool) (string, []int32, error) {
	if t.TemplateErr != nil {
		return "", nil, t.TemplateErr
	}
	return t.encode(t.Template.RenderMessages(ctx, messages, chat.Options{
		AddGenerationPrompt: ask, EnableThinking: thinking,
		BOS: t.special(t.Tokenizer.BOS()), EOS: t.special(t.Tokenizer.EOS()), Specials: t.specials(),
	}))
}

// Render gives the template a whole context of the caller's, and returns the text
// and its ids.
func (t *Text) Render(ctx context.Context, vars chat.Values) (string, []int32, error) {
	if t.TemplateErr != nil {
		return "", nil, t.TemplateErr
	}
	return t.encode(t.Template.Render(ctx, vars, t.specials()))
}

func (t *Text) encode(p chat.Prompt, err error) (string, []int32, error) {
	if err != nil {
		return "", nil, err
	}
	return p.Text, t.Tokenizer.EncodePrompt(p.Text, p.Plain), nil
}

// specials finds what has to be kept from being parsed inside a message.
func (t *Text) specials() func(string) [][2]int {
	if t.ParseSpecial {
		return nil
	}
	return t.Tokenizer.Specials
}

// special returns the text of a special token, or nothing if there is none.
func (t *Text) special(id int32) string {
	if id == tokenizer.None {
		return ""
	}
	text, _ := t.Tokenizer.Token(id)
	return text
}

// RawPrompt returns the ids of a prompt that is taken as it is, special tokens
// parsed.
func (t *Text) RawPrompt(text string) []int32 {
	return t.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true, ParseSpecial: true})
}

// Bytes estimates the memory of the vocabulary: its texts, twice (as written
// and as bytes), and its tables.
func (t *Text) Bytes() int64 { return t.Tokenizer.Bytes() }
