package main

import (
	"context"
	"path/filepath"
	"runtime"

	"bmoe/engine"
	"bmoe/engine/backend"
)

// opening is an engine that is about to be opened: what is wrong with a file, an
// address or a setting has been found. Whichever engine it is, what comes of it is a
// backend.
type opening struct {
	id     string // of the model, for the list of models
	name   string // what the screen calls the model until it is open
	path   string // of the model; empty if it is not a file
	finish func(ctx context.Context, progress func(stage string, done float64)) (backend.Backend, error)
}

// begin does what can fail at once.
func (o *options) begin(ctx context.Context) (*opening, error) {
	switch own := !o.connects() || o.hasModel() && o.engine == backend.Local; {
	case o.connects() && o.hasModel() && o.both:
		return o.beginBoth(ctx)
	case own:
		return o.beginOwn(ctx)
	}
	return o.beginRemote(ctx)
}

// open opens the engine that the command line asks for.
func (o *options) open(ctx context.Context, progress func(stage string, done float64)) (backend.Backend, error) {
	if progress != nil {
		progress("header", 0)
	}
	opening, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	return opening.finish(ctx, progress)
}

// beginOwn reads the header of the model, for this program's own engine.
func (o *options) beginOwn(ctx context.Context) (*opening, error) {
	c, err := o.config(ctx)
	if err != nil {
		return nil, err
	}
	begun, err := engine.Begin(ctx, c)
	if err != nil {
		return nil, err
	}
	name := "the demo model"
	switch {
	case o.cfg.Model != "":
		name = filepath.Base(o.cfg.Model)
	case o.hf != "":
		name = o.hf
	}
	path, err := filepath.Abs(c.Model)
	if err != nil {
		return nil, err
	}
	return &opening{fileID(path), name, path, func(ctx context.Context, progress func(string, float64)) (backend.Backend, error) {
		s, err := begun.Finish(ctx, progress)
		if err != nil {
			return nil, err // not a nil session in an interface
		}
		giveProcessors(s)
		s.Notify(func(text string) {
			if o.notice != nil {
				o.notice(text)
			} else {
				warnOf(text)
			}
		})
		return o.recorded(s)
	}}, nil
}

// giveProcessors lets as many goroutines run at once as the engine needs.
func giveProcessors(s *engine.Session) {
	// A lane that comes back from its system call needs a processor at once,
	// beside the workers; waiting for one would look like a slow drive
	// (docs/architecture.md, "Where time is counted"). Two more are for the screen
	// and the collector.
	runtime.GOMAXPROCS(s.MostThreads() + s.MostLanes() + 2)
}
