package engine

import "bmoe/engine/sample"

// DensePolicy says where the weights live that every token needs.
type DensePolicy string

// The dense policies.
const (
	DenseMmap DensePolicy = "mmap" // in the model file's mapping
	DenseWarm DensePolicy = "warm" // the same, swept once into the page cache
	DenseAnon DensePolicy = "anon" // read with direct I/O into memory of our own
)

// Config is what a session is opened with. Its JSON form, with every automatic
// value resolved, is what a result reports.
type Config struct {
	Model string `json:"model"` // path of the model, or of its first shard

	Ctx     int `json:"ctx"`     // positions; 0: the model's context, at most 4096
	Threads int `json:"threads"` // compute workers; 0: physical cores
	UBatch  int `json:"ubatch"`  // prompt tokens in a batch

	Stream      bool        `json:"moe_stream"`
	CacheMiB    int         `json:"cache_mb"` // budget; 0 (auto): from the model and the memory available
	CacheShare  float64     `json:"-"`        // with an automatic budget: this share of all experts, if not 0
	CacheBytes  int64       `json:"-"`        // in place of CacheMiB, for models of less than a MiB
	ForceCache  bool        `json:"force_cache"`
	CachePolicy string      `json:"cache_policy"`
	Lanes       int         `json:"io_threads"`
	IOEngine    string      `json:"io_engine"` // lanes or uring
	NoDirect    bool        `json:"no_odirect"`
	Overlap     bool        `json:"overlap"`
	Dense       DensePolicy `json:"dense_weights"`
	ReleaseMmap bool        `json:"release_mmap"`

	Numerics string `json:"numerics"` // fast or exact
	KVType   string `json:"kv_type"`  // f32, f16 or q8_0; "": f32 with exact numerics, else f16

	Sampling sample.Options `json:"sampling"`
	// SamplingSet names the sampling flags that the user gave; the others come
	// from the model's general.sampling.* keys.
	SamplingSet map[string]bool `json:"-"`

	Raw      bool   `json:"raw"`      // no chat template
	NoThink  bool   `json:"no_think"` // asks the template for no reasoning
	Template string `json:"-"`        // in place of the model's own template

	SimulateHost string `json:"simulate_host"` // "" or ntfs
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		UBatch: 256, Stream: true, CachePolicy: "lru", Lanes: 4, IOEngine: "lanes", Overlap: true,
		Dense: DenseAnon, Numerics: "fast", Sampling: sample.Defaults(),
	}
}

// Change is what a user asks to change between runs; nil fields stay as they are.
type Change struct {
	ReleaseMmap *bool
	Lanes       *int
	CacheMiB    *int
	Overlap     *bool
}

// Verdict says what became of one wish of a Change.
type Verdict string

// The verdicts.
const (
	Applied  Verdict = "applied"
	Declined Verdict = "declined"
	Ignored  Verdict = "ignored"
)

// Outcome is what became of one wish, and why.
type Outcome struct {
	Knob    string // release-mmap, lanes, cache, overlap
	Verdict Verdict
	Value   string // the setting in force now, as a screen shows it
	Reason  string // empty when applied without anything to add
}
