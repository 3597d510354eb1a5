package profile

// Observer hears of a session's runs as they happen, on the goroutine that
// generates. Its methods must return quickly: a token waits for them. What they
// are given is valid during the call only.
type Observer interface {
	// Began tells of a run that is about to begin, and the state of things.
	Began(s *Start, live *Snapshot)
	// Token tells what a decoded token cost. The first token comes of the prefill
	// and has no record.
	Token(r *Record)
	// Ended tells of a run's end, whatever ended it.
	Ended(r *Result)
}
