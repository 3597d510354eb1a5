package backend

import (
	"context"
	"time"

	"bmoe/profile"
)

// Models is what a screen may ask about the models that could be opened in place of
// the one that is. All methods take their time and are called beside the screen; ctx
// ends them.
type Models interface {
	// List finds the models there are and tells of them: at once, and again when more is
	// known of the same. With probe it measures for a second what memory and drives give,
	// for the speeds; nothing should be generated meanwhile.
	List(ctx context.Context, probe bool, tell func(Shelf)) error
	// Facts tells more of a model than the list does.
	Facts(ctx context.Context, id string) ([]Fact, error)
	// Prepare does all that can fail while another model is open. An error leaves nothing
	// behind.
	Prepare(ctx context.Context, id string) (*Opening, error)
	// Offer looks up a model to download, named OWNER/REPO or OWNER/REPO:QUANT. No byte of
	// it is read.
	Offer(ctx context.Context, name string) (*Offer, error)
	// Download brings what was offered, and goes on from what is there. It returns the
	// model's ID.
	Download(ctx context.Context, o *Offer, tell func(Download)) (id string, err error)
}

// Opening is a model about to be opened. Finish is called once at most, with no other
// model open, since two may not fit into memory.
type Opening struct {
	ID     string
	Name   string // what the screen calls it until it is open
	Path   string // empty if it is no file
	Finish func(ctx context.Context, progress func(stage string, frac float64)) (Backend, error)
}

// Shelf is the models that were found.
type Shelf struct {
	Models  []Model
	Machine string   // what was measured, in words; empty: nothing
	Notes   []string // on places that could not be read
	Memory  int64    // bytes of physical memory; 0: not known
}

// Model is one that could be opened.
type Model struct {
	ID    string // for Prepare
	Name  string
	Place string // where it was found, in words
	Arch  string
	Quant string
	Bytes int64  // of all its files; 0: it runs elsewhere
	Far   bool   // on a server: what only its files tell is not known
	Why   string // it cannot be opened; empty if it can

	Experts, Used int   // of a layer, and of them a token; 0: not MoE
	Active        int64 // bytes of weights that a token reads
	// Tokens a second, estimated; not measured where the drive decides and was not probed.
	Least, Most profile.Maybe[float64]
}

// Fact is a line about a model.
type Fact struct{ Name, Value string }

// Offer is a model that can be downloaded.
type Offer struct {
	Name  string // as it was asked for
	Lines []string
	Plan  any    // for who made the offer
	ID    string // of the model, if it is here already; then nothing is to be downloaded
}

// Download is how far one is.
type Download struct {
	Name        string
	Done, Total int64
	Rate        float64       // bytes a second; 0: not known yet
	Left        time.Duration // at this rate
	Checking    bool          // what was here before is read; nothing comes in
}
