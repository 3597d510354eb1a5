// Package either is two engines behind one screen, of which one answers at a time:
// the model that runs here, and a server. Their runs stand in one list, and what one
// of them was asked the other can be asked too, from the same conversation.
package either

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// Engine is what either needs of an engine.
type Engine interface {
	backend.Backend
	backend.Tunable
	backend.History
	backend.Keeper
	// NumberFrom makes the next run the one after n.
	NumberFrom(n int)
}

// Forgetful is an Engine that can be brought back to what it was when it was opened,
// so that a run begins with empty caches.
type Forgetful interface{ Forget() error }

// ErrNothingToRepeat is returned by Again before there was a run.
var ErrNothingToRepeat = errors.New("there is no run to repeat yet")

// Either is two engines. It is used as any backend.Backend.
type Either struct {
	here, there Engine
	at          atomic.Pointer[place]
	last        *beginning
	ran         int
}

// place is one of the two: what the setting calls it, and it.
type place struct {
	name string
	Engine
}

// beginning is what the last run was asked.
type beginning struct {
	request backend.Request
	before  backend.Chat
	by      string // the place
}

var (
	_ backend.Backend   = (*Either)(nil)
	_ backend.Tunable   = (*Either)(nil)
	_ backend.History   = (*Either)(nil)
	_ backend.Chains    = (*Either)(nil)
	_ backend.Keeper    = (*Either)(nil)
	_ backend.Residency = (*Either)(nil)
)

// New puts two engines together; name says which answers first: backend.Local or
// backend.Elsewhere.
func New(here, there Engine, name string) *Either {
	e := &Either{here: here, there: there}
	e.at.Store(e.place(name))
	return e
}

func (e *Either) place(name string) *place {
	if name == backend.Local {
		return &place{name, e.here}
	}
	return &place{backend.Elsewhere, e.there}
}

// Setting is the row of the setting that says which engine answers.
func Setting(value, origin string) backend.Setting {
	return backend.Setting{Name: backend.EngineSetting, Flag: backend.EngineSetting, Section: "Model", Kind: backend.Word, Words: []string{backend.Local, backend.Elsewhere},
		Want: backend.Local + " or " + backend.Elsewhere, Default: backend.Elsewhere, Value: value, Origin: origin, Live: true,
		Help: "with {connect} and a model: which of them answers, the model here or the server; the other can be asked the same"}
}

// Info tells what is open of the engine that answers.
func (e *Either) Info() backend.Info { return e.at.Load().Info() }

// Generate has the engine in force answer.
func (e *Either) Generate(ctx context.Context, q backend.Request) (*backend.Run, error) {
	at := e.at.Load()
	e.last = &beginning{request: q, before: at.Chat(), by: at.name}
	return e.run(func() (*backend.Run, error) { return at.Generate(ctx, q) })
}

// Again repeats the last prompt from the same start, on the engine in force, whichever
// answered it before.
func (e *Either) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	if e.last == nil {
		return nil, ErrNothingToRepeat
	}
	at := e.at.Load()
	if at.name == e.last.by {
		return e.run(func() (*backend.Run, error) { return at.Again(ctx, onDelta) })
	}
	at.SetChat(e.last.before)
	if f, ok := at.Engine.(Forgetful); ok {
		if err := f.Forget(); err != nil {
			return nil, err
		}
	}
	q := e.last.request
	q.OnDelta, q.OnPrefill = onDelta, nil
	e.last.by = at.name
	return e.run(func() (*backend.Run, error) { return at.Generate(ctx, q) })
}

// run gives a run its number among those of both, and the engine among its settings.
func (e *Either) run(f func() (*backend.Run, error)) (*backend.Run, error) {
	at := e.at.Load()
	at.NumberFrom(e.ran)
	run, err := f()
	if run != nil {
		e.ran = run.N
		run.Settings = append(backend.Values([]backend.Setting{Setting(at.name, backend.FromKey)}), run.Settings...)
	}
	return run, err
}

// NewChat forgets the conversation.
func (e *Either) NewChat() {
	e.last = nil
	e.here.NewChat()
	e.there.NewChat()
}

// Snapshot copies out all that a screen may know of the engine in force.
func (e *Either) Snapshot(dst *profile.Snapshot) { e.at.Load().Snapshot(dst) }

// History copies the records of the engine in force.
func (e *Either) History(from int64, dst []profile.Record) int {
	return e.at.Load().History(from, dst)
}

// Chain tells what a token of the engine in force missed; of a server that is not known.
func (e *Either) Chain(record int64, dst []profile.Miss) (int, bool) {
	if c, ok := e.at.Load().Engine.(backend.Chains); ok {
		return c.Chain(record, dst)
	}
	return 0, false
}

// Experts tells of the experts of the engine in force; a server has none that are known.
func (e *Either) Experts(dst *profile.ExpertMap) {
	if r, ok := e.at.Load().Engine.(backend.Residency); ok {
		r.Experts(dst)
	} else {
		dst.Reset(0, 0)
	}
}

// Warnings returns what opening both had to say.
func (e *Either) Warnings() []string {
	return append(append([]string{}, e.here.Warnings()...), e.there.Warnings()...)
}

// Settings returns which engine is in force, and its settings.
func (e *Either) Settings() []backend.Setting {
	at := e.at.Load()
	return append([]backend.Setting{Setting(at.name, backend.FromKey)}, at.Settings()...)
}

// Step returns the other engine, or the value dir steps away of a setting of the
// one in force.
func (e *Either) Step(name, from string, dir int) string {
	switch {
	case name != backend.EngineSetting:
		return e.at.Load().Step(name, from, dir)
	case dir > 0:
		return backend.Elsewhere
	}
	return backend.Local
}

// Apply changes which engine answers, and then settings of that one. The engine that
// takes over goes on with the conversation.
func (e *Either) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	rest := map[string]string{}
	for name, value := range wishes {
		if name != backend.EngineSetting {
			rest[name] = value
			continue
		}
		row := Setting(e.at.Load().name, backend.FromKey)
		o := backend.Outcome{Setting: name, Verdict: backend.Applied}
		if err := row.Check(value); err != nil {
			o.Verdict, o.Reason = backend.Declined, err.Error()
		} else if value != row.Value {
			to := e.place(value)
			to.SetChat(e.at.Load().Chat())
			e.at.Store(to)
			if e.last != nil {
				e.last.by = "" // neither has the start any more: it is set up again
			}
		}
		o.Value = e.at.Load().name
		out = append(out, o)
	}
	if len(rest) > 0 {
		out = append(out, e.at.Load().Apply(rest)...)
	}
	return out
}

// Chat returns the conversation.
func (e *Either) Chat() backend.Chat { return e.at.Load().Chat() }

// SetChat takes a conversation up.
func (e *Either) SetChat(c backend.Chat) {
	e.last = nil
	e.at.Load().SetChat(c)
}

// Save writes what the model in force remembers.
func (e *Either) Save(to io.Writer) error { return e.at.Load().Save(to) }

// Load takes back what Save wrote.
func (e *Either) Load(from io.Reader) error { return e.at.Load().Load(from) }

// Close closes both.
func (e *Either) Close() error { return errors.Join(e.here.Close(), e.there.Close()) }
