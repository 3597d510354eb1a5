package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

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
