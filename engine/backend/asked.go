package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// The setting that says which of two engines answers, and its values.
const (
	EngineSetting = "engine"
	Local         = "local"
	Elsewhere     = "remote"
)

// SameStart reports whether two runs answered the same from the same start, so that
// their texts and times can be held against each other. Of one engine the states are
// compared that they started from; of two, the words.
func (r *Run) SameStart(o *Run) bool {
	if r.Engine == o.Engine {
		return r.StartKey == o.StartKey
	}
	return r.Asked != "" && r.Asked == o.Asked
}

// AskedKey is Run.Asked of a message after a conversation, with so many tokens at
// most.
func AskedKey(before []Message, text string, most int) string {
	said := make([][2]string, len(before))
	for i, m := range before {
		said[i] = [2]string{m.Role, m.Text}
	}
	key, err := json.Marshal([]any{said, text, most})
	if err != nil {
		panic(err) // texts and a number
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}
