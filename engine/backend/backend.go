// Package backend says what a screen or a command may ask of an engine,
// whatever engine it is: to answer, to repeat an answer, to be measured, and,
// where it can, to have its settings changed. It knows none of them.
package backend

import (
	"context"
	"time"

	"bmoe/profile"
)

// Backend is an open model. Generate, Again, NewChat and Close are never called
// at the same time; Snapshot is called at any time, from any goroutine. What
// only some engines can do is an interface of its own, asked for by a type
// assertion.
type Backend interface {
	// Info tells what is open; it stays the same until Close.
	Info() Info
	// Generate answers a message. An error is a request that cannot run. A
	// generation that was cancelled or failed part way comes back as a run whose
	// Err says so.
	Generate(context.Context, Request) (*Run, error)
	// Again repeats the last prompt from the same start, as Generate would.
	Again(context.Context, func(Delta)) (*Run, error)
	// NewChat forgets the conversation.
	NewChat()
	// Snapshot copies out all that a screen may know.
	Snapshot(*profile.Snapshot)
	// Warnings are what opening had to say, a line each. They mention settings as
	// Mention reads them.
	Warnings() []string
	Close() error
}

// Tunable is a Backend whose settings can be changed between runs. Settings and
// Apply are called while nothing is generated; Step at any time.
type Tunable interface {
	// Settings returns every setting with the value in force, in the order in
	// which they are shown.
	Settings() []Setting
	// Step returns the value that lies dir steps from another value of a
	// setting, in the form that Apply takes. At the end of its range a setting
	// stays where it is.
	Step(name, from string, dir int) string
	// Apply changes settings, given by name, and says what became of each wish,
	// in the order of Settings.
	Apply(map[string]string) []Outcome
}

// History is a Backend that keeps the records of many tokens.
type History interface {
	// History copies the records from number from on, counted from the first
	// token of the session, and returns how many there were.
	History(from int64, dst []profile.Record) int
}

// Chains is a Backend that knows what its latest tokens waited for.
type Chains interface {
	// Chain copies what a token's record, numbered as in History, missed in the cache
	// and how each of it came, and returns how many there were; false where that is not
	// known, or no longer.
	Chain(record int64, dst []profile.Miss) (int, bool)
}

// Residency is a Backend that knows which experts are in memory.
type Residency interface {
	// Experts copies out where every expert is and what happened to it last, and what
	// each layer cost. Like Snapshot it may be called at any time, from any goroutine; the
	// same map is best given again, since its memory is kept.
	Experts(*profile.ExpertMap)
}

// Recordable is a Backend whose session can be written down, for Played to play.
type Recordable interface {
	// Record has all runs from now on written to a new file. It is called between runs.
	Record(path string) error
}

// Played is a Backend that plays what was recorded: it answers what was asked then.
type Played interface {
	// Prompts are the questions, in order.
	Prompts() []string
}

// Moments is a Backend that knows what its figures were at any earlier token.
type Moments interface {
	// Moment fills in the snapshot as it was when a record, numbered as in History, was
	// the latest; false where that is not known.
	// The map of experts is filled in with it, unless it is nil.
	Moment(record int64, dst *profile.Snapshot, experts *profile.ExpertMap) bool
}

// Observable is a Backend that tells of its runs as they happen.
type Observable interface {
	// Observe adds somebody who hears of every run from now on. It is called between
	// runs.
	Observe(profile.Observer)
}

// Scorer is a Backend that can say how well it foretells a text. Both methods are
// called while nothing is generated.
type Scorer interface {
	// Heard returns the ids that the model has seen, prompt and answer.
	Heard() []int32
	// Score computes ids one at a time, as in an answer, from an empty state and an
	// empty cache: the nats that each but the first was not foretold by, and the id
	// that was the likeliest in its place. The conversation is forgotten.
	Score(ctx context.Context, ids []int32) (nll []float32, top1 []int32, err error)
}

// Info tells what a backend has open.
type Info struct {
	Engine string // what runs the model: empty where it is this program
	Model  string // what the screen calls it
	Arch   string // empty if the backend does not know
	// Thinking says whether the model can be asked for an answer without
	// reasoning: always true for a model that does not reason.
	Thinking bool
}

// Request is one generation.
type Request struct {
	Text      string // the user's message, or the raw prompt where templates are off
	MaxTokens int    // 0: until the model ends or the context is full
	OnDelta   func(Delta)
	// OnPrefill hears how many of the prompt's tokens have been read, of those that
	// have to be: before the first batch and after each. Like OnDelta it must
	// return quickly. A repeat does not call it.
	OnPrefill func(done, of int)
}

// Delta is what one step of a generation adds. It arrives on the goroutine
// that generates: the callback must return quickly and must not call the
// backend, but for Snapshot.
type Delta struct {
	Text      string          // visible text; may be empty while a character is incomplete
	Reasoning string          // text of the reasoning span
	Token     int32           // its id, 0 where the engine tells none; negative: no token, what had been held back
	Record    *profile.Record // valid during the call only; nil for the first token
	// WasThought says that all text so far was a thought which nothing had opened: its
	// end has come now. Who has shown it can show it as such.
	WasThought bool
}

// Run is one finished (or stopped) generation and the settings under which it
// ran.
type Run struct {
	N        int    // from 1
	Engine   string // see Info
	Prompt   string
	When     time.Time // of day, for the screen
	Settings []Value   // in force, in the order in which they are shown
	Result   profile.Result
	Sum      profile.Record // over the decoded tokens
	// Walls are the seconds that each decoded token took, up to profile.HistoryTokens
	// of them.
	Walls []float32
	// Disturbed says whether anything else went on that spoiled the figures.
	Disturbed profile.Disturbed
	// StartKey identifies the state that the run started from (conversation
	// before the last user message, the message, sampling, limits). Only runs
	// with equal keys are compared.
	StartKey string
	// Asked identifies what was asked in words: the conversation before, the message,
	// the most tokens. Runs of different engines are compared if theirs are equal.
	Asked string
	// ColdCache is true when the run started with an empty expert cache.
	ColdCache bool
	Err       error // an I/O error or a cancellation; the result holds what there was
}
