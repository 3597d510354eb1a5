package profile

import "strings"

// Result is what a run gave and cost: the object that --json prints. Objects
// are always there; unmeasured leaves are null.
type Result struct {
	Text       string         `json:"text"`
	Reasoning  string         `json:"reasoning"`
	TokenIDs   []int32        `json:"token_ids"`
	NPrompt    int            `json:"n_prompt"`
	NCached    int            `json:"n_cached"` // of them, reused from the KV of the previous turn
	NGen       int            `json:"n_gen"`
	StopReason string         `json:"stop_reason"` // eos, length, context, cancelled, error
	PrefillTPS Maybe[float64] `json:"prefill_tps"`
	DecodeTPS  Maybe[float64] `json:"decode_tps"`
	TTFT       Maybe[float64] `json:"ttft_s"`
	Load       Maybe[float64] `json:"load_s"`

	PerToken struct {
		Wall       Maybe[float64] `json:"wall"`
		Compute    Maybe[float64] `json:"compute"`
		Mgmt       Maybe[float64] `json:"mgmt"`
		Stall      Maybe[float64] `json:"stall"`
		Other      Maybe[float64] `json:"other"`
		StallUnion Maybe[float64] `json:"stall_union"`
		MgmtSerial Maybe[float64] `json:"mgmt_serial"` // worker 0's own, not divided by those that wait for it
	} `json:"s_per_token"`
	CeilingTPS        Maybe[float64] `json:"ceiling_tps"`
	ReadMiBPerToken   Maybe[float64] `json:"read_mib_per_token"`
	WindowMiBPerToken Maybe[float64] `json:"window_mib_per_token"`

	Cache struct {
		HitPct        Maybe[float64] `json:"hit_pct"` // of the run's decoding
		Lookups       Maybe[int64]   `json:"lookups"`
		Hits          Maybe[int64]   `json:"hits"`
		Evictions     Maybe[int64]   `json:"evictions"`
		Rereads       Maybe[int64]   `json:"rereads"`
		Dropped       Maybe[int64]   `json:"dropped"`     // experts that were left out; null unless a setting allows it
		Substituted   Maybe[int64]   `json:"substituted"` // experts that another took the place of; likewise
		ResidentMiB   Maybe[float64] `json:"resident_mib"`
		BudgetMiB     Maybe[float64] `json:"budget_mib"`
		TokenCycleMiB Maybe[float64] `json:"token_cycle_mib"`
		Policy        Maybe[string]  `json:"policy"`
	} `json:"cache"`
	// What was read before it was asked for, in the whole run.
	Prefetch struct {
		UsefulMiB Maybe[float64] `json:"useful_mib"` // there when it was demanded
		LateMiB   Maybe[float64] `json:"late_mib"`   // demanded while it was on its way
		WastedMiB Maybe[float64] `json:"wasted_mib"` // given up without having been demanded
		By        []Guesses      `json:"by"`
		Off       Maybe[bool]    `json:"switched_off"` // a trial found that a token takes less time without
	} `json:"prefetch"`
	IO struct {
		Engine Maybe[string]  `json:"engine"`
		Lanes  Maybe[int64]   `json:"lanes"`
		MiBs   Maybe[float64] `json:"mib_s"` // window bytes over the time in which at least one read was in flight
		P50    Maybe[float64] `json:"p50_ms"`
		P99    Maybe[float64] `json:"p99_ms"`
		Direct Maybe[bool]    `json:"direct"`
		Reads  Maybe[int64]   `json:"reads"`
	} `json:"io"`
	Mapping struct {
		State          MappingState  `json:"state"`
		Reason         Maybe[string] `json:"reason"`
		WeightsInside  Maybe[int64]  `json:"weights_inside"`
		WeightsChecked Maybe[int64]  `json:"weights_checked"`
	} `json:"mapping"`
	Process struct {
		CPUPerToken    Maybe[float64] `json:"cpu_s_per_token"`
		MajFltPerToken Maybe[float64] `json:"majflt_per_token"`
		RSSMiB         Maybe[float64] `json:"rss_mib"`
		GCPct          Maybe[float64] `json:"gc_pct"`
	} `json:"process"`
	Memory Memory     `json:"memory"`
	Remote *RemoteRun `json:"remote"` // null where the model runs here

	Diagnosis []Finding `json:"diagnosis"` // why it was slow, what costs most first; empty where nothing is wrong

	Config     any      `json:"config"` // the whole resolved configuration
	Build      string   `json:"build"`  // the program's version, revision and instruction set; set by the program
	Flags      []string `json:"flags"`  // traced, simulated, lossy, forced-route, contended (others on the drive), disturbed_cpu, throttled
	TextSHA256 string   `json:"text_sha256"`
}

// Guesses is what came of one kind of guess.
type Guesses struct {
	Kind      string  `json:"kind"` // prompt, 1 to 4 (routers so many layers early), token, previous
	UsefulMiB float64 `json:"useful_mib"`
	LateMiB   float64 `json:"late_mib"`
	WastedMiB float64 `json:"wasted_mib"`
}

// Memory is what the engine allocated, in MiB.
type Memory struct {
	DenseMiB   float64 `json:"dense_mib"` // dense weights in our own memory
	CacheMiB   float64 `json:"cache_mib"` // committed slots
	KVMiB      float64 `json:"kv_mib"`
	ScratchMiB float64 `json:"scratch_mib"`
	VocabMiB   float64 `json:"vocab_mib"`
	RecordsMiB float64 `json:"records_mib"` // what is kept of tokens: their costs, and what they waited for
	RuntimeMiB float64 `json:"runtime_mib"` // the Go runtime's own and heap not counted above
}

// Qualifiers are the words that qualify the figures, from Flags: "SIMULATED,
// disturbed: CPU". Empty: they are of this machine at rest.
func (r *Result) Qualifiers() string {
	var words []string
	var d Disturbed
	for _, f := range r.Flags {
		switch f {
		case flagDrive:
			d.Drive = Some(true)
		case flagCPU:
			d.CPU = Some(true)
		case flagThrottled:
			d.Throttled = Some(true)
		default:
			words = append(words, strings.ToUpper(f))
		}
	}
	if s := d.String(); s != "" {
		words = append(words, s)
	}
	return strings.Join(words, ", ")
}
