package profile

import "bmoe/internal/stats"

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
// Wall. StallUnion is the time during which at least one worker stalled, and
// MgmtSerial the time that bookkeeping held the token up: worker 0's own, not
// divided by the workers that waited for it. Stall and StallUnion are not
// measured where nothing is streamed: reads are page faults there.
type Record struct {
	Run, Turn, Step, Steps int
	Token                  int32
	Tokens                 int64 // how many records are added up in this one; 0 in a record of its own
	// Undivided: what the wall time went to is not known, so that compute, mgmt, stall
	// and other are not measured. Such are the tokens that a server computes.
	Undivided bool

	Wall, Compute, Mgmt, Other, MgmtSerial int64
	Stall, StallUnion                      Maybe[int64]

	IO          int64 // lanes' busy time, summed over lanes: may exceed Wall
	ExpertBytes int64 // logical bytes of the experts that were read
	WindowBytes int64 // bytes that the drive served for them
	Reads       int64

	Lookups, Hits, Evictions, Rereads int64
	Dropped, Substituted              int64 // experts that were not in the cache and gave way; only lossy settings allow it

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
	r.MgmtSerial += o.MgmtSerial
	r.Other += o.Other
	addMaybe(&r.Stall, o.Stall)
	addMaybe(&r.StallUnion, o.StallUnion)
	r.IO += o.IO
	r.ExpertBytes += o.ExpertBytes
	r.WindowBytes += o.WindowBytes
	r.Reads += o.Reads
	r.Lookups += o.Lookups
	r.Hits += o.Hits
	r.Evictions += o.Evictions
	r.Rereads += o.Rereads
	r.Dropped += o.Dropped
	r.Substituted += o.Substituted
	addMaybe(&r.MajorFaults, o.MajorFaults)
	addMaybe(&r.CPU, o.CPU)
}

// newSum returns the sum of no records of a run.
func newSum(s *Start) Record {
	if s.Undivided {
		return Record{Run: s.Run, Turn: s.Turn, Undivided: true}
	}
	zero := Some[int64](0)
	return Record{Run: s.Run, Turn: s.Turn, Stall: zero, StallUnion: zero, MajorFaults: zero, CPU: zero}
}

// Means are the parts of a token's wall time in ns, the means over some tokens.
// See Record for what each is.
type Means struct{ Wall, Compute, Mgmt, Stall, Other, StallUnion, MgmtSerial Maybe[int64] }

// Means returns the parts of a mean token of a sum; without a token none of them
// is measured.
func (r *Record) Means() Means {
	mean := func(sum Maybe[int64]) Maybe[int64] {
		v, ok := stats.MeanOf(sum.Value, r.Tokens)
		return Maybe[int64]{v, ok && sum.OK}
	}
	part := func(sum int64) Maybe[int64] { return mean(r.Part(sum)) }
	return Means{Wall: mean(Some(r.Wall)), Compute: part(r.Compute), Mgmt: part(r.Mgmt), Stall: mean(r.Stall),
		Other: part(r.Other), StallUnion: mean(r.StallUnion), MgmtSerial: part(r.MgmtSerial)}
}

// Part returns a part of the wall time, or what was counted with it, if the
// record has such.
func (r *Record) Part(v int64) Maybe[int64] {
	if r.Undivided {
		return Maybe[int64]{}
	}
	return Some(v)
}

// addMaybe keeps a sum only while every part of it was measured.
func addMaybe(sum *Maybe[int64], v Maybe[int64]) {
	sum.Value += v.Value
	sum.OK = sum.OK && v.OK
}
