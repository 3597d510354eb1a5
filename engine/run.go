package engine

import (
	"time"

	"bmoe/profile"
)

// Delta is what one step of a generation adds. It arrives on the goroutine
// that generates: the callback must return quickly and must not call the
// session.
type Delta struct {
	Text      string // visible text; may be empty while a character is incomplete
	Reasoning string // text of the reasoning span
	Token     int32
	Record    *profile.Record // valid during the call only
}

// Request is one generation.
type Request struct {
	Text      string // the user's message, or the raw prompt with Config.Raw
	MaxTokens int    // 0: until the model ends or the context is full
	OnDelta   func(Delta)
}

// Run is one finished (or stopped) generation and the configuration under
// which it ran.
type Run struct {
	N      int // from 1
	Prompt string
	When   time.Time // of day, for the screen
	Config Config
	Result profile.Result
	Sum    profile.Record // over the decoded tokens
	// Disturbed says whether anything else went on that spoiled the figures.
	Disturbed profile.Disturbed
	// StartKey identifies the state that the run started from (conversation
	// before the last user message, the message, sampling, limits). Only runs
	// with equal keys are compared.
	StartKey string
	// ColdCache is true when the run started with an empty expert cache.
	ColdCache bool
	Err       error // an I/O error or a cancellation; the result holds what there was
}
