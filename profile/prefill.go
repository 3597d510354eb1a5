package profile

import (
	"fmt"

	"bmoe/internal/units"
)

// PrefillLeft estimates the time until the prompt has been read, at the speed so
// far. It is nothing outside a prefill and before the first token of one.
func (s *Snapshot) PrefillLeft() Maybe[int64] {
	if s.Phase != Prefill || s.PromptDone <= 0 || s.Elapsed <= 0 {
		return Maybe[int64]{}
	}
	left := float64(s.Elapsed) / float64(s.PromptDone) * float64(max(s.Prompt-s.PromptDone, 0))
	return Some(int64(left))
}

// PrefillText says how far a prefill is and how long it will take, such as
// "256 of 3000 tokens, about 40 s left".
func (s *Snapshot) PrefillText() string {
	if s.Prompt == 0 && s.Remote.Server != "" {
		return "the server has not said how far it is"
	}
	text := fmt.Sprintf("%d of %d tokens", s.PromptDone, s.Prompt)
	if left := s.PrefillLeft(); left.OK {
		text += ", about " + units.About(left.Value) + " left"
	}
	return text
}

// leastSilence is the silence of a server that is worth a word.
const leastSilence = 10 * units.Second

// SilenceText says for how long nothing has come of the answer under way; empty while
// that is not long.
func (s *Snapshot) SilenceText() string {
	if quiet := s.Remote.Silence; quiet.OK && quiet.Value >= leastSilence {
		return "nothing heard for " + units.About(quiet.Value)
	}
	return ""
}

// PrefillNotes decides when a reader of lines hears of a prefill: after the first
// second, and then each time that it has lasted twice as long, at least every
// half minute.
type PrefillNotes struct {
	run  int
	next int64 // ns of the run at which the next note is due
}

const (
	firstNote = units.Second
	mostNotes = 30 * units.Second // between two
)

// Due reports whether it is time for a note.
func (n *PrefillNotes) Due(s *Snapshot) bool {
	if s.Phase != Prefill {
		return false
	}
	if s.Run != n.run {
		n.run, n.next = s.Run, firstNote
	}
	if s.Elapsed < n.next {
		return false
	}
	n.next = s.Elapsed + min(s.Elapsed, mostNotes)
	return true
}
