package backend

import "io"

// Keeper is a Backend whose conversation can be kept and taken up again later, by
// another process too. Its methods are called while nothing is generated.
type Keeper interface {
	// Chat returns the conversation.
	Chat() Chat
	// SetChat takes a conversation up in place of the present one. The next answer
	// reads the whole of it, unless Load brings what the model remembers of it.
	SetChat(Chat)
	// Save writes what the model remembers of the conversation.
	Save(io.Writer) error
	// Load takes back what Save wrote. What was written of another model, or with
	// settings that lead to other figures, is refused, and so is what was damaged:
	// then the model remembers nothing, and the conversation stays as it is.
	Load(io.Reader) error
}

// Chat is a conversation as it is kept.
type Chat struct {
	Messages []Message `json:"messages"`
	Dropped  int       `json:"dropped_turns"` // oldest turns that no longer fitted the context
}

// Message is one contribution to a conversation.
type Message struct {
	Role      string `json:"role"` // system, user or assistant
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"` // what the model thought before it said Text
}
