package chat

import (
	"strings"
	"time"

	"bmoe/tui/term"
)

// Kind says who speaks in a block.
type Kind uint8

// The user, the model, or the program itself: what was applied, what a run cost,
// warnings.
const (
	FromUser Kind = iota
	FromModel
	FromUs
)

// Block is one turn, or one note between turns. Its lines are kept, so that drawing a
// frame touches only the block that grows.
type Block struct {
	Kind Kind
	When time.Time
	Tag  string // beside the speaker: "again", "run 2"
	Warn bool   // a note that should be noticed
	Run  int    // that an answer came of; 0: not known

	text      strings.Builder // clean; of the answer, without the reasoning
	reasoning strings.Builder
	thought   int64 // ns spent reasoning
	thinking  bool  // the reasoning goes on
	open      bool  // the reasoning is unfolded
	live      bool  // the answer goes on

	textClean, reasonClean term.Cleaner
	textDoc, reasonDoc     doc
	tokens                 []token
	hits                   hits
	in                     *Transcript
}

// token is where a token's text ends.
type token struct {
	step         int32
	text, reason int32 // lengths of both once it was there
}

// mostTokens is of how many tokens of an answer the places are kept.
const mostTokens = 1 << 16

// Text is what was said, cleaned for a terminal and without the reasoning.
func (b *Block) Text() string { return b.text.String() }

// Reasoning is what the model thought before it, cleaned likewise.
func (b *Block) Reasoning() string { return b.reasoning.String() }

// Thought is for how many ns there was reasoning.
func (b *Block) Thought() int64 { return b.thought }

// AddText appends to what is said.
func (b *Block) AddText(s string) {
	b.textClean.Write(&b.text, s)
	b.changed()
}

// AddReasoning appends to the reasoning.
func (b *Block) AddReasoning(s string) {
	b.reasonClean.Write(&b.reasoning, s)
	b.changed()
}

// Said tells which token all text ends with that has been added. Steps go up.
func (b *Block) Said(step int) {
	if n := len(b.tokens); n > 0 && int(b.tokens[n-1].step) == step {
		b.tokens = b.tokens[:n-1]
	}
	if len(b.tokens) < mostTokens {
		b.tokens = append(b.tokens, token{int32(step), int32(b.text.Len()), int32(b.reasoning.Len())})
	}
}

// TextWasThought makes all that was said part of the reasoning: a model had begun to
// think without saying so.
func (b *Block) TextWasThought() {
	b.AddReasoning(b.text.String())
	b.text.Reset()
	b.textClean, b.textDoc = term.Cleaner{}, doc{}
	for i := range b.tokens {
		b.tokens[i].reason += b.tokens[i].text
		b.tokens[i].text = 0
	}
	b.changed()
}

// changed tells the transcript that the block has other rows.
func (b *Block) changed() {
	b.hits = hits{}
	if b.in != nil {
		b.in.changed(b)
	}
}

// SetThought tells for how many ns there was reasoning, and whether it goes on.
func (b *Block) SetThought(ns int64, goesOn bool) { b.thought, b.thinking = ns, goesOn }

// Finish ends an answer.
func (b *Block) Finish() { b.live, b.thinking = false, false }
