package chat

import (
	"fmt"
	"slices"
)

// The roles that every template knows.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Message is one contribution to a conversation.
type Message struct {
	Role      string
	Content   string // what the other side sees
	Reasoning string // what the model thought before it said Content
}

// Conversation is a list of messages. It divides into turns: a turn is a user's
// message with all that follows it up to the next one.
type Conversation struct {
	Messages []Message
}

// Append adds a message.
func (c *Conversation) Append(m Message) { c.Messages = append(c.Messages, m) }

// Clone returns a copy that changes independently.
func (c *Conversation) Clone() *Conversation {
	return &Conversation{Messages: slices.Clone(c.Messages)}
}

// DropOldestTurn forgets the first turn. System messages stay, and so does the
// last turn: then it reports false.
func (c *Conversation) DropOldestTurn() bool {
	first := slices.IndexFunc(c.Messages, func(m Message) bool { return m.Role != System })
	if first < 0 {
		return false
	}
	n := slices.IndexFunc(c.Messages[first+1:], func(m Message) bool { return m.Role == User })
	if n < 0 {
		return false
	}
	next := first + 1 + n
	kept := slices.Clone(c.Messages[:first])
	for _, m := range c.Messages[first:next] {
		if m.Role == System {
			kept = append(kept, m)
		}
	}
	c.Messages = append(kept, c.Messages[next:]...)
	return true
}

// TooLongError tells that a prompt does not fit even without the turns before it.
type TooLongError struct {
	Tokens  int // of the prompt
	Context int // tokens that the context holds
	Reserve int // of them kept free for the answer
}

// Error gives the numbers and what to do.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, but the context of %d leaves %d for it (%d are kept for the answer): shorten it, or raise {ctx}",
		e.Tokens, e.Context, max(e.Context-e.Reserve, 0), e.Reserve)
}

// Fit drops the oldest turns, whole, until the conversation leaves reserve tokens
// of a context of nCtx free. encode renders messages and returns their ids; Fit
// returns those of what is left, and how many turns it dropped. If the last turn
// alone is too long it returns a *TooLongError and the conversation is as before.
func (c *Conversation) Fit(nCtx, reserve int, encode func([]Message) ([]int32, error)) (ids []int32, dropped int, err error) {
	left := c.Clone()
	for {
		if ids, err = encode(left.Messages); err != nil {
			return nil, 0, err
		}
		if len(ids) <= nCtx-reserve {
			c.Messages = left.Messages
			return ids, dropped, nil
		}
		if !left.DropOldestTurn() {
			return nil, 0, &TooLongError{Tokens: len(ids), Context: nCtx, Reserve: reserve}
		}
		dropped++
	}
}

// CommonPrefix returns the number of ids that a and b begin with alike: what a
// state that has seen a can keep for b.
func CommonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
