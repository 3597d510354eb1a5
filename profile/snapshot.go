package profile

import "bmoe/internal/units"

// RingTokens is how many of the latest tokens a snapshot carries.
const RingTokens = 256

// MaxLanes bounds the lanes that a snapshot can describe.
const MaxLanes = 64

// Snapshot is all that a screen may know, copied out at one instant. It holds
// no pointer into the engine. Times are nanoseconds, sizes bytes, rates bytes
// a second unless a name says otherwise.
type Snapshot struct {
	At    int64 // clock.Now
	Phase Phase
	Model Model

	Turn         int // of the conversation, from 1
	Held, Kept   int // positions that the state held when the run was asked for, and of them those it could keep
	Run          int // number of the current or last run, from 1; 0 before the first
	Step, Steps  int // tokens generated, and at most
	Prompt       int // tokens of the prompt that had to be prefilled
	PromptDone   int // of them, done
	CtxUsed, Ctx int
	Started      int64        // clock.Now at the run's start
	Elapsed      int64        // of the current run, or of the last when idle
	TTFT         Maybe[int64] // from the start of the run to the first token
	PrefillTPS   Maybe[float64]
	DecodeTPS    Maybe[float64]
	Ceiling      Maybe[float64] // tokens a second if flash were free; not measured where a token also waits for the mapping
	DroppedTurns int            // turns of the conversation dropped because they no longer fit

	Sum    Record             // over the run's decoded tokens
	Tokens [RingTokens]Record // ring of decoded tokens of all runs
	Count  int64              // records ever written; the latest is Tokens[(Count-1)%RingTokens]

	Mean Means                           // of the run's decoded tokens
	Wall struct{ P50, P95 Maybe[int64] } // likewise

	KV      KV
	Cache   Cache
	Lanes   Lanes
	Mapping Mapping
	Process Process
	Remote  Remote

	Simulated bool // figures come from a simulated host
	Lossy     bool // settings change what the model says
	Traced    bool // runs are written down in detail, which takes time: figures are no benchmark's
}

// Latest returns the i-th latest record, 0 being the newest.
func (s *Snapshot) Latest(i int) (*Record, bool) {
	if i < 0 || int64(i) >= min(s.Count, RingTokens) {
		return nil, false
	}
	return &s.Tokens[(s.Count-1-int64(i))%RingTokens], true
}

// Model describes the open model.
type Model struct {
	Name, Arch, Quant                       string
	FileBytes                               int64
	Shards                                  int
	Layers, MoELayers, Experts, ExpertsUsed int
	ExpertBytesAll                          int64  // slot bytes of all routed experts, the budget that holds them
	TokenCycle                              int64  // layers x top-k x slot bytes
	TokenBytes                              int64  // logical bytes of the weights that one token is computed with
	SlowBytes                               int64  // of TokenBytes, those of tensor types without kernels of their own
	SlowTypes                               string // their names
	HostMemory                              Maybe[int64]
}

// KV is the memory of the sequence: keys and values, the states of recurrent
// layers, and the marks to which those go back.
type KV struct {
	Bytes     int64 // of a full context, marks included
	MarkBytes int64 // of it, the marks
	Marks     int   // kept now
	MostMarks int   // 0 where the model needs none
}

// Cache is the state of the expert cache.
type Cache struct {
	Streaming        bool // false: experts are computed from the mapping
	Policy           string
	Budget, Resident int64 // slot bytes
	Arena            int64 // bytes committed for slots
	Slots, SlotsUsed int
	HitNow           Maybe[float64] // percent, of the last 16 tokens
	HitRun           Maybe[float64] // percent, of the run's decoding
	LayerWorkingSet  int64          // the least budget that works at all
	Lookups          int64          // since the cache was last emptied, prefill included
	EvictionsPerTok  Maybe[float64]
	RereadsPerTok    Maybe[float64]
	ReadPerTok       Maybe[float64] // logical bytes a decoded token
	Thrifty          bool           // missing experts may give way, which the next two count
	DroppedPerTok    Maybe[float64] // experts left out
	ReplacedPerTok   Maybe[float64] // experts that another took the place of, a token
	BelowTokenCycle  bool
	BudgetAuto       bool
	Fits             Maybe[int64]        // the budget that memory allows now, slot bytes
	WhatIf           [MostWhatIfs]WhatIf // by budget, ascending
	WhatIfs          int                 // of them; 0 before a run has decoded
}

// LatencyBins is in how many ranges reads are counted by their latency.
const LatencyBins = 32

// LatencyBounds are where ranges of latencies end, ns: from 16 µs on two to a doubling. The
// last range has no end.
var LatencyBounds = func() (b [LatencyBins - 1]int64) {
	for i := range b {
		b[i] = 16 * units.Microsecond << (i / 2)
		if i%2 == 1 {
			b[i] = b[i] * 181 / 128 // the root of two
		}
	}
	return b
}()

// Lanes is the state of the readers.
type Lanes struct {
	Engine    string // lanes, uring; empty when nothing is streamed
	Mode      string // direct, BUFFERED, SIMULATED
	Reason    string // why not direct, or why not the engine asked for
	N         int
	Overlap   bool
	Queue     int                // requests waiting
	Rate      Maybe[float64]     // bytes a second served while a run was reading, over the last second of run time
	RateRun   Maybe[float64]     // bytes served over the time with a read in flight: what the drive gave during the run
	Alone     Maybe[float64]     // what one lane gives on this file when no other reads, measured when the lanes were opened
	P50, P99  Maybe[int64]       // latency inside the system call, of the run
	Wake50    Maybe[int64]       // from completion until a waiting worker ran again
	Latency   [LatencyBins]int64 // reads of the run by how long they were inside the system call, see LatencyBounds
	Lane      [MaxLanes]Lane
	Reads     int64 // of the run
	Bytes     int64 // window bytes of the run
	BusyNanos int64 // summed over lanes, of the run
}

// Lane is one reader.
type Lane struct {
	Rate Maybe[float64] // bytes a second, over the last second of run time
}

// MappingState is what has become of the model file's mapping.
type MappingState string

// The states of a mapping.
const (
	MappingNone     MappingState = "none"
	MappingMapped   MappingState = "mapped"
	MappingReleased MappingState = "released"
	MappingDeclined MappingState = "declined"
)

// Mapping is the state of the model file's mapping.
type Mapping struct {
	State          MappingState
	Reason         string // when declined
	Bytes          int64  // mapped now
	Views          int    // shards mapped now
	WeightsChecked Maybe[int64]
	WeightsInside  Maybe[int64]   // by asking the OS
	Inside         string         // names of the first few inside
	LanesReopened  bool           // since the mapping was released
	Dense          string         // the dense policy
	DenseResident  Maybe[float64] // fraction of the dense weights in RAM
}

// Process is what the process costs the host.
type Process struct {
	CPUPerToken      Maybe[int64]
	MajFltPerToken   Maybe[float64]
	RSS, RSSAnon     Maybe[int64]
	Swap             Maybe[int64] // memory of ours that the system has moved out, to a drive or compressed
	AvailableMemory  Maybe[int64]
	ForeignIO        Maybe[float64] // bytes a second that others move on the model's drive now
	ForeignCPU       Maybe[float64] // percent of the processors' time that others use now
	GCPercent        Maybe[float64] // share of CPU time spent in garbage collection, of the run
	Temperature      Maybe[float64] // degrees Celsius
	MemoryRate       Maybe[float64] // bytes a second that memory gives all workers together
	Threads, MaxProc int
	Disturbed        Disturbed // what spoiled the run: the current one's so far, or the last one's
}
