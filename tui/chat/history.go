package chat

import "slices"

// history is what has been sent, to be called back with Up and Down.
type history struct {
	sent  []string
	at    int    // index into sent; len(sent) is the draft
	draft string // what was being typed
}

func (h *history) add(s string) {
	if n := len(h.sent); n == 0 || h.sent[n-1] != s {
		h.sent = append(h.sent, s)
	}
	h.at, h.draft = len(h.sent), ""
}

// remember puts what was sent in earlier sessions before what was since.
func (h *history) remember(earlier []string) {
	h.sent = append(slices.Clip(earlier), h.sent...)
	h.at += len(earlier)
}

// move returns the entry before (-1) or after (+1) the current one.
func (h *history) move(dir int, current string) (string, bool) {
	to := h.at + dir
	if to < 0 || to > len(h.sent) {
		return "", false
	}
	if h.at == len(h.sent) {
		h.draft = current
	}
	h.at = to
	if to == len(h.sent) {
		return h.draft, true
	}
	return h.sent[to], true
}
