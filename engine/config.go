package engine

import (
	"strconv"

	"bmoe/engine/sample"
)

// DensePolicy says where the weights live that every token needs.
type DensePolicy string

// The dense policies.
const (
	DenseMmap DensePolicy = "mmap" // in the model file's mapping
	DenseWarm DensePolicy = "warm" // the same, swept once into the page cache
	DenseAnon DensePolicy = "anon" // read with direct I/O into memory of our own
)

// Budget is what the expert cache may take.
type Budget struct {
	Bytes int64   // what was given; of an automatic budget what came of it, 0 before it is reckoned
	Auto  bool    // chosen from the model and the memory available
	Share float64 // with Auto: this share of all experts, if not 0
}

// MiB returns the budget in whole MiB.
func (b Budget) MiB() int64 { return b.Bytes >> 20 }

// MarshalJSON writes the MiB.
func (b Budget) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, b.MiB(), 10), nil }

// Config is what a session is opened with. Its JSON form, with every automatic
// value resolved, is what a result reports.
type Config struct {
	Model string `json:"model"` // path of the model, or of its first shard

	Ctx     int `json:"ctx"`     // positions; 0: the model's context, at most 4096
	Threads int `json:"threads"` // compute workers; 0: physical cores
	UBatch  int `json:"ubatch"`  // prompt tokens in a batch

	Stream      bool        `json:"moe_stream"`
	Cache       Budget      `json:"cache_mb"`
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

	Raw          bool   `json:"raw"`           // no chat template
	NoThink      bool   `json:"no_think"`      // asks the template for no reasoning
	ParseSpecial bool   `json:"parse_special"` // special tokens spelled out in messages are tokens
	Template     string `json:"-"`             // in place of the model's own template

	SimulateHost string `json:"simulate_host"` // "" or ntfs
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		UBatch: 256, Stream: true, Cache: Budget{Auto: true}, CachePolicy: "lru", Lanes: 4, IOEngine: "lanes", Overlap: true,
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
