package tui

import (
	"testing"

	"bmoe/engine/backend"
)

// A thought that nothing had opened is shown as one as soon as its end has come.
func TestWhatWasAThoughtBecomesOne(t *testing.T) {
	for _, drawn := range []bool{false, true} { // between its parts
		h := midRun(t, 120, 40, 0)
		h.m.deltas.add(backend.Delta{Text: "Let me wonder"})
		if drawn {
			h.tick()
			h.wants("Let me wonder")
		}
		h.m.deltas.add(backend.Delta{Reasoning: " a while.", WasThought: true})
		h.m.deltas.add(backend.Delta{Text: "Forty-two."})
		h.tick()
		h.lacks("Let me wonder")
		h.wants("Forty-two.", "[+]")
		h.keys("ctrl+t")
		h.wants("Let me wonder a while.")
		h.finish()
	}
}
