package profile

// Phase says what the engine is doing, or did for a record.
type Phase uint8

// The phases of a session, in the order in which a run passes through them.
const (
	Idle Phase = iota
	Loading
	Prefill
	Decode
)

// String returns the phase's word on the screen.
func (p Phase) String() string {
	return [...]string{"idle", "loading", "prefill", "decoding"}[p]
}

// Record is what one token cost. Times are nanoseconds, sizes bytes.
//
// Wall runs from the previous token's emission to this one's, sampling
// included. Compute, Mgmt, Stall and Other are each worker's time in that
// state, summed over the workers and divided by their number: they add up to
// Wall. StallUnion is the time during which at least one worker stalled.
type Record struct {
	Run, Turn, Step, Steps int
	Token                  int32
	Tokens                 int64 // how many records are added up in this one; 0 in a record of its own

	Wall, Compute, Mgmt, Stall, Other, StallUnion int64

	IO          int64 // lanes' busy time, summed over lanes: may exceed Wall
	ExpertBytes int64 // logical bytes of the experts that were read
	WindowBytes int64 // bytes that the drive served for them
	Reads       int64

	Lookups, Hits, Evictions, Rereads int64

	MajorFaults Maybe[int64]
	CPU         Maybe[int64] // process CPU time, all threads
}

// Add accumulates another token's costs; identities stay as they are. A sum
// starts with its measured figures marked, see Maybe.
func (r *Record) Add(o *Record) {
	r.Tokens++
	r.Wall += o.Wall
	r.Compute += o.Compute
	r.Mgmt += o.Mgmt
	r.Stall += o.Stall
	r.Other += o.Other
	r.StallUnion += o.StallUnion
	r.IO += o.IO
	r.ExpertBytes += o.ExpertBytes
	r.WindowBytes += o.WindowBytes
	r.Reads += o.Reads
	r.Lookups += o.Lookups
	r.Hits += o.Hits
	r.Evictions += o.Evictions
	r.Rereads += o.Rereads
	addMaybe(&r.MajorFaults, o.MajorFaults)
	addMaybe(&r.CPU, o.CPU)
}

// addMaybe keeps a sum only while every part of it was measured.
func addMaybe(sum *Maybe[int64], v Maybe[int64]) {
	sum.Value += v.Value
	sum.OK = sum.OK && v.OK
}
