package play

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/model"
	"bmoe/internal/clock"
	"bmoe/profile"
)

// stateEvery is how often at most the screen's state is written down, ns: it is drawn
// 10 to 15 times a second.
const stateEvery = 100_000_000

// Session is a session of the engine that can be recorded. It is one in all other
// respects.
type Session struct {
	*engine.Session
	program string
	failed  func(error)
	w       *writer // nil: nothing is recorded
}

// Wrap makes a session one that can be recorded. program is what its recordings say
// they were made by; failed hears of the write that ended one early.
func Wrap(s *engine.Session, program string, failed func(error)) *Session {
	return &Session{Session: s, program: program, failed: failed}
}

// Record implements backend.Recordable: all runs from now on are written to a new file.
func (s *Session) Record(path string) error {
	if s.w != nil {
		return fmt.Errorf("recording goes on already, to %s", s.w.f.Name())
	}
	if path == "" {
		return errors.New("/record FILE writes the session down from now on, to be played back with --play")
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w := &writer{f: f, failed: s.failed, session: s.Session, states: newEncoder(snapshotShape, snapshotType), records: newEncoder(recordShape, recordType)}
	h := header{Info: s.Info(), Program: s.program, Warnings: s.Warnings(), Snapshot: snapshotShape.names, Record: recordShape.names}
	for _, row := range s.Settings() {
		if row.Kind != backend.Text { // paths are nobody else's business
			h.Settings = append(h.Settings, row)
		}
	}
	h.Experts = layoutOf(s.Session)
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.b = append(append(append(w.b, mark...), line...), '\n')
	w.flush()
	w.hears = model.Observer{Route: w.route}
	s.w = w
	s.Session.Watch(&w.hears)
	return nil
}

// Generate implements backend.Backend.
func (s *Session) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	if s.w == nil {
		return s.Session.Generate(ctx, r)
	}
	s.w.begin(r.Text)
	onDelta, onPrefill := r.OnDelta, r.OnPrefill
	r.OnDelta = s.w.delta(onDelta)
	r.OnPrefill = func(done, of int) {
		s.w.state(false)
		if onPrefill != nil {
			onPrefill(done, of)
		}
	}
	run, err := s.Session.Generate(ctx, r)
	s.w.end(run, err)
	return run, err
}

// Again implements backend.Backend.
func (s *Session) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	if s.w == nil {
		return s.Session.Again(ctx, onDelta)
	}
	s.w.begin(s.w.prompt)
	run, err := s.Session.Again(ctx, s.w.delta(onDelta))
	s.w.end(run, err)
	return run, err
}

// Close implements backend.Backend.
func (s *Session) Close() error {
	err := s.Session.Close()
	if s.w != nil {
		if cerr := s.w.close(); err == nil {
			err = cerr
		}
	}
	return err
}

// writer writes a recording. Its methods are for the goroutine that generates.
type writer struct {
	f       *os.File
	failed  func(error)
	session *engine.Session
	hears   model.Observer
	states  *encoder
	records *encoder

	prompt string
	began  int64
	stated int64
	live   profile.Snapshot
	chosen []int32
	misses [4096]profile.Miss
	maps   [2]profile.ExpertMap // now, and at the token before
	told   told
	b, tmp []byte
	closed sync.Once
}

// flush writes what has been gathered. A write that fails ends the recording, and not
// the answer.
func (w *writer) flush() {
	if w.f != nil {
		if _, err := w.f.Write(w.b); err != nil {
			w.f.Close() // the write's error is the one that matters
			w.f = nil
			w.failed(fmt.Errorf("record: %w: nothing more is written to it", err))
		}
	}
	w.b = w.b[:0]
}

func (w *writer) frame(kind byte, payload []byte) {
	w.b = append(binary.AppendUvarint(append(w.b, kind), uint64(len(payload))), payload...)
	w.flush()
}

// json writes a frame of an object.
func (w *writer) json(kind byte, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		w.failed(fmt.Errorf("record: %w", err))
		return
	}
	w.frame(kind, b)
}

func (w *writer) begin(prompt string) {
	w.prompt, w.began, w.stated = prompt, clock.Now(), 0
	w.chosen = w.chosen[:0]
	w.json(frameBegin, beginning{prompt})
	w.state(true)
}

// state writes down what the screen may know, if it is time.
func (w *writer) state(now bool) {
	at := clock.Now()
	if !now && at-w.stated < stateEvery {
		return
	}
	w.stated = at
	w.session.Snapshot(&w.live)
	w.tmp = binary.AppendUvarint(w.tmp[:0], uint64(at-w.began))
	w.tmp = w.states.add(w.tmp, reflect.ValueOf(&w.live).Elem())
	w.frame(frameState, w.tmp)
}

// route gathers what a single token is given.
func (w *writer) route(_, tokens int, ids []int32, _ []float32) {
	if tokens == 1 && len(w.chosen)+len(ids) <= mostRoute {
		w.chosen = append(w.chosen, ids...)
	}
}

// delta writes down what a step says and costs, and passes it on.
func (w *writer) delta(next func(backend.Delta)) func(backend.Delta) {
	return func(d backend.Delta) {
		t := token{at: clock.Now() - w.began, id: d.Token, text: d.Text, reasoning: d.Reasoning, record: d.Record}
		if d.Record != nil {
			t.route = w.chosen
			w.session.Snapshot(&w.live)
			n := 0
			n, t.known = w.session.Chain(w.live.Count-1, w.misses[:])
			t.misses = w.misses[:n]
		}
		w.maps[0], w.maps[1] = w.maps[1], w.maps[0]
		w.session.Experts(&w.maps[0])
		t.experts = w.told.of(&w.maps[0], &w.maps[1], d.Record == nil)
		w.tmp = t.append(w.tmp[:0], w.records)
		w.chosen = w.chosen[:0]
		w.frame(frameToken, w.tmp)
		w.state(d.Record == nil) // the first token ends the prompt
		if next != nil {
			next(d)
		}
	}
}

func (w *writer) end(run *backend.Run, err error) {
	w.state(true)
	var e ending
	if run != nil {
		e.Run = *run
		e.Run.Walls, e.Run.Err = nil, nil // of the records; and an error is an interface
		e.Run.Result.Config = nil         // the settings say it, but for paths
		rows := w.session.Settings()
		e.Run.Settings = slices.DeleteFunc(slices.Clone(e.Run.Settings), func(v backend.Value) bool { return backend.Find(rows, v.Name).Kind == backend.Text })
		err = run.Err
	}
	if err != nil {
		e.Failed = err.Error()
	}
	w.json(frameEnd, e)
}

func (w *writer) close() (err error) {
	w.closed.Do(func() {
		if w.f != nil {
			err = w.f.Close()
		}
	})
	return err
}
