package main

import (
	"context"
	"os"
	"slices"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/either"
	"bmoe/engine/remote"
	"bmoe/profile"
)

// sectionRemote is the heading of the flags of servers.
const sectionRemote = "Remote"

// keyVariable is where the key for a server is. There is no flag for it: others on
// the machine could read it.
const keyVariable = "OPENAI_API_KEY"

// connects reports whether a server is to be used; nothing of the network is touched
// otherwise.
func (o *options) connects() bool { return o.far.URL != "" }

// hasModel reports whether a model is named that runs here.
func (o *options) hasModel() bool { return o.cfg.Model != "" || o.hf != "" }

// setOne gives a setting a value, whichever engine it is of.
func (o *options) setOne(name, value string) error {
	switch {
	case name == backend.EngineSetting:
		row := either.Setting(o.engine, backend.FromFlag)
		if err := row.Check(value); err != nil {
			return err
		}
		o.engine = value
		return nil
	case backend.Find(remote.Settings(o.far), name) == nil || name == "temp" || name == "seed" || name == "n-predict": // those are of both
		return o.cfg.Set(name, value, backend.FromFlag)
	}
	return o.far.Set(name, value, backend.FromFlag)
}

// remoteConfig is what the server is opened with.
func (o *options) remoteConfig() remote.Config {
	c := o.far
	if o.given("temp") && !c.Temp.OK { // an experiment may have set it already
		c.Temp = profile.Some(o.cfg.Sampling.Temp)
	}
	if c.Origins["seed"] == "" {
		c.Seed = o.cfg.Sampling.Seed
	}
	if c.Origins["n-predict"] == "" {
		c.MaxTokens = o.cfg.MaxTokens
	}
	c.Key = os.Getenv(keyVariable)
	c.Notice = func(text string) {
		if o.notice != nil {
			o.notice(text)
		}
	}
	return c
}

// beginRemote connects to the server.
func (o *options) beginRemote(ctx context.Context) (*opening, error) {
	r, err := remote.Open(ctx, o.remoteConfig())
	if err != nil {
		return nil, err
	}
	return &opening{id: ofServer + r.Info().Model, name: r.Info().Model, finish: func(context.Context, func(string, float64)) (backend.Backend, error) { return r, nil }}, nil
}

// beginBoth connects to the server, and reads the header of the model.
func (o *options) beginBoth(ctx context.Context) (*opening, error) {
	own, err := o.beginOwn(ctx)
	if err != nil {
		return nil, err
	}
	far, err := remote.Open(ctx, o.remoteConfig())
	if err != nil {
		return nil, err
	}
	id := own.id
	if o.engine != backend.Local {
		id = ofServer + far.Info().Model
	}
	return &opening{id, own.name, own.path, func(ctx context.Context, progress func(string, float64)) (backend.Backend, error) {
		near, err := own.finish(ctx, progress)
		if err != nil {
			return nil, closing(far, err)
		}
		return either.New(near.(either.Engine), far, o.engine), nil
	}}, nil
}

// closing closes what is no longer needed, and keeps the error that came first.
func closing(b backend.Backend, err error) error {
	if cerr := b.Close(); err == nil {
		return cerr
	}
	return err
}

// variable returns the settings that an experiment can vary.
func (o *options) variable() []backend.Setting {
	if !o.connects() {
		return engineRows(o.settings)
	}
	rows := remote.Settings(o.remoteConfig())
	if o.hasModel() {
		rows = append([]backend.Setting{either.Setting(o.engine, backend.FromFlag)}, rows...)
	}
	return rows
}

// engineRows are the rows of this program's own engine.
func engineRows(rows []backend.Setting) []backend.Setting {
	return slices.DeleteFunc(slices.Clone(rows), func(r backend.Setting) bool { return r.Section == sectionRemote })
}

// vary gives a setting the value that an experiment has for it.
func (o *options) vary(name, value string) error {
	if !o.connects() || name == backend.EngineSetting {
		return o.setOne(name, value)
	}
	return o.far.Set(name, value, backend.FromFlag)
}

// remoteActs are the flags of a mode that do something where only a server answers.
func remoteActs(acts []string) []string {
	own := []string{"Model", "Compute", "Streaming", "Sampling", "route-trace", "io-trace", "compute-trace"}
	if !slices.Contains(acts, "ab") {
		own = append(own, "csv") // an experiment's rows are of runs
	}
	left := slices.DeleteFunc(slices.Clone(acts), func(a string) bool { return slices.Contains(own, a) })
	return append(left, "temp", "seed", "n-predict")
}

// A session is one of two engines.
var _ either.Engine = (*engine.Session)(nil)
