// Package remote is an engine that computes elsewhere: a server that speaks
// OpenAI's interface, as llama-server, vLLM, Ollama and LM Studio do. It measures
// what can be seen from here, takes what the server tells of itself, and leaves
// everything else unmeasured.
package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/clock"
	"bmoe/internal/crash"
	"bmoe/internal/units"
	"bmoe/profile"
)

// ErrNothingToRepeat is returned by Again before there was a run.
var ErrNothingToRepeat = errors.New("there is no run to repeat yet")

// Remote is a connected server. It is used as any backend.Backend.
type Remote struct {
	cfg      Config // without the key
	key      string // empty: none, or withheld
	withheld bool   // there is a key, which others could have read on the way
	at       *address
	kind     kind
	models   []string
	context  int // tokens; 0: not known
	warnings []string
	took     int64 // to connect, ns

	now     func() int64
	client  *http.Client
	rec     *profile.Recorder
	metrics metrics

	messages []backend.Message // what has been said
	last     *beginning
	ran      int // runs so far

	asking    atomic.Bool  // an answer is under way
	heardAt   atomic.Int64 // when something of it came last; at its start, that
	roundTrip atomic.Int64 // ns; 0: not known
	told      int64        // the heardAt of the silence of which the user was told; the pulse's own

	quit   context.Context
	end    context.CancelFunc
	pulsed chan struct{} // closed when the pulse has ended
	once   sync.Once
}

// A server is all that a face may ask for.
var (
	_ backend.Backend = (*Remote)(nil)
	_ backend.Tunable = (*Remote)(nil)
	_ backend.History = (*Remote)(nil)
	_ backend.Keeper  = (*Remote)(nil)
)

// pulseEvery is how often a server is looked after beside the answer: whether it
// is still there, and what its metrics say.
const pulseEvery = time.Second

// Open connects to a server and asks it for its models.
func Open(ctx context.Context, c Config) (*Remote, error) {
	beats := time.NewTicker(pulseEvery)
	r, err := open(ctx, c, clock.Now, beats.C)
	if err != nil {
		beats.Stop()
		return nil, err
	}
	context.AfterFunc(r.quit, beats.Stop)
	return r, nil
}

// open is Open with a clock and with what beats once a second.
func open(ctx context.Context, c Config, now func() int64, beats <-chan time.Time) (*Remote, error) {
	at, err := parseAddress(c.URL)
	if err != nil {
		return nil, err
	}
	r := &Remote{cfg: c, at: at, now: now, rec: profile.NewRecorder(now), pulsed: make(chan struct{})}
	if err := r.takeKey(&c); err != nil {
		return nil, err
	}
	began := now()
	r.client = r.newClient()
	if err := r.meet(ctx); err != nil {
		r.client.CloseIdleConnections()
		return nil, err
	}
	r.took = now() - began
	r.quit, r.end = context.WithCancel(context.Background())
	r.describe()
	go r.pulse(beats)
	return r, nil
}

// takeKey takes the key, unless others could read it on the way. In the
// configuration, which is shown and written, it does not stay.
func (r *Remote) takeKey(c *Config) error {
	r.cfg.Key = ""
	key := strings.TrimSpace(c.Key)
	switch {
	case key == "":
	case strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }):
		return errors.New("OPENAI_API_KEY holds something that is no key: blanks, line ends or characters outside of ASCII")
	case r.at.private() || c.Insecure:
		r.key = key
	default:
		r.withheld = true
		r.warnings = append(r.warnings, "the key in OPENAI_API_KEY is not sent: on the way to "+r.at.String()+" others could read it; use https, or {connect-insecure=on}")
	}
	return nil
}

// Info tells what is open.
func (r *Remote) Info() backend.Info { return backend.Info{Engine: r.label(), Model: r.cfg.Model} }

// label is the engine's name in a list of runs.
func (r *Remote) label() string { return r.kind.name + " " + r.at.api.Host }

// describe puts what is open into the snapshot.
func (r *Remote) describe() {
	r.rec.Update(func(l *profile.Snapshot) {
		if l.Phase == profile.Loading {
			l.Phase = profile.Idle
		}
		l.Model.Name, l.Ctx = r.cfg.Model, r.context
		l.Mapping.State = profile.MappingNone
		l.Remote.Server, l.Remote.Address = r.kind.name, r.at.api.Host
	})
}

// Warnings returns what connecting had to say.
func (r *Remote) Warnings() []string { return r.warnings }

// Snapshot copies out all that a screen may know.
func (r *Remote) Snapshot(dst *profile.Snapshot) {
	r.rec.Snapshot(dst)
	if n := r.roundTrip.Load(); n > 0 {
		dst.Remote.RoundTrip = profile.Some(n)
	}
	if r.asking.Load() {
		dst.Remote.Silence = profile.Some(max(dst.At-r.heardAt.Load(), 0))
	}
}

// History copies the records of deltas, see profile.Recorder.History.
func (r *Remote) History(from int64, dst []profile.Record) int { return r.rec.History(from, dst) }

// NewChat forgets the conversation.
func (r *Remote) NewChat() {
	r.messages, r.last = nil, nil
	r.rec.Update(func(l *profile.Snapshot) { l.CtxUsed = 0 })
}

// Chat returns the conversation.
func (r *Remote) Chat() backend.Chat { return backend.Chat{Messages: slices.Clone(r.messages)} }

// SetChat takes a conversation up; the server is sent the whole of it with the next
// message, as with every one.
func (r *Remote) SetChat(c backend.Chat) { r.messages, r.last = slices.Clone(c.Messages), nil }

// Save writes nothing: what the model remembers is the server's affair.
func (r *Remote) Save(io.Writer) error { return nil }

// Load takes nothing back, see Save.
func (r *Remote) Load(io.Reader) error { return nil }

// NumberFrom makes the next run the one after n.
func (r *Remote) NumberFrom(n int) { r.ran = n }

// Close ends what looks after the server, and its connections.
func (r *Remote) Close() error {
	r.once.Do(func() {
		r.end()
		<-r.pulsed
		r.client.CloseIdleConnections()
	})
	return nil
}

// pulse looks after the server until Close.
func (r *Remote) pulse(beats <-chan time.Time) {
	defer crash.Catch("server")
	defer close(r.pulsed)
	for {
		select {
		case <-r.quit.Done():
			return
		case <-beats:
			r.watch()
			r.metrics.poll(r)
		}
	}
}

// silent is after how long without a byte the user is told.
const silent = 10 * units.Second

// heard notes that something of the answer has come.
func (r *Remote) heard() { r.heardAt.Store(r.now()) }

// watch tells once of each silence.
func (r *Remote) watch() {
	heard := r.heardAt.Load()
	if !r.asking.Load() || r.now()-heard < silent || r.told == heard {
		return
	}
	r.told = heard
	if r.cfg.Notice != nil {
		r.cfg.Notice("nothing has come from " + r.at.api.Host + " for 10 s: it may still be reading the prompt or loading the model; the answer can be stopped")
	}
}
