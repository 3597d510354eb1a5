package engine

import (
	"bmoe/engine/expert"
	"bmoe/engine/sample"
	"bmoe/internal/units"
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
func (b Budget) MiB() int64 { return units.MiBDown(b.Bytes) }

// Config is what a session is opened with. Each field but Template, Locks and Origins is a row of
// the table of settings, which reads, checks and writes it.
type Config struct {
	Model string // path of the model, or of its first shard

	Ctx     int // positions; 0: the model's context, at most 4096
	Threads int // compute workers; 0: physical cores
	UBatch  int // prompt tokens in a batch; 0: chosen

	MaxTokens int // of an answer; 0: until the model ends or the context is full

	Stream      bool
	Cache       Budget
	ForceCache  bool
	CachePolicy string
	Lanes       int
	IOEngine    string // lanes or uring
	NoDirect    bool
	Overlap     bool
	LoadAll     bool // read every expert of every layer for each token
	Dense       DensePolicy
	ReleaseMmap bool

	Numerics string // fast or exact
	KVType   string // f32, f16 or q8_0; "": f32 with exact numerics, else f16

	Sampling sample.Options // what has no origin gives way to the model's general.sampling.* keys

	Raw          bool // no chat template
	NoThink      bool // asks the template for no reasoning
	ParseSpecial bool // special tokens spelled out in messages are tokens
	// TemplateFile is the path of a chat template in place of the model's own.
	// Template is its text: who makes the configuration reads it.
	TemplateFile, Template string

	// Locks is a folder in which engines of a user see each other by the drive that they
	// read; "": they do not.
	Locks string

	// Origins says of settings, by name, where their values come from; what is
	// not in it is a default. Set keeps it.
	Origins map[string]string

	SimulateHost string // "" or ntfs

	CacheFloor, CacheCeil int // MiB within which an automatic budget stays; 0: no bound

	Foresight expert.Foresight // how far each of what reads ahead is turned up

	ExpertsUsed int // experts of a token; 0: as the file says
	// What may be done in decoding about experts that are not in the cache, see
	// model.Thrift.
	DropCold, Substitute float64
	DropRenorm           bool
	ForceRoute           string // path of a recorded route that takes the routers' place

	dense bool // the model that was opened has no experts
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Stream: true, Cache: Budget{Auto: true}, CachePolicy: "lookalike", Lanes: 4, IOEngine: "lanes", Overlap: true, Foresight: standardForesight(),
		Dense: DenseAnon, Numerics: "fast", Sampling: sample.Defaults(),
	}
}

func standardForesight() (f expert.Foresight) {
	for i, p := range expert.Predictors {
		f[i] = p.Default
	}
	return f
}
