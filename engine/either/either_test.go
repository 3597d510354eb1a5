package either

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/profile"
)

// words is an engine that repeats what it was told, with its own name or without.
type words struct {
	name   string
	own    bool // says its name
	said   []backend.Message
	n      int
	warm   bool
	last   *backend.Request
	before []backend.Message
	forgot int
	closed bool
	temp   string
}

func (w *words) Info() backend.Info { return backend.Info{Engine: w.name, Model: "m"} }

func (w *words) Generate(_ context.Context, q backend.Request) (*backend.Run, error) {
	w.before, w.last = slices.Clone(w.said), &q
	return w.answer(), nil
}

func (w *words) Again(context.Context, func(backend.Delta)) (*backend.Run, error) {
	if w.last == nil {
		return nil, errors.New("nothing")
	}
	w.said, w.warm = slices.Clone(w.before), false
	return w.answer(), nil
}

func (w *words) answer() *backend.Run {
	text := "you said " + w.last.Text
	if w.own {
		text += " to " + w.name
	}
	w.n++
	r := &backend.Run{N: w.n, Engine: w.name, Settings: backend.Values(w.Settings()), ColdCache: !w.warm, StartKey: w.name + w.last.Text,
		Asked: backend.AskedKey(w.said, w.last.Text, w.last.MaxTokens), Walls: []float32{0.1, 0.1, 0.1}}
	r.Result.Text, r.Result.TextSHA256 = text, w.name+text
	w.said = append(w.said, backend.Message{Role: "user", Text: w.last.Text}, backend.Message{Role: "assistant", Text: text})
	w.warm = true
	return r
}

func (w *words) NewChat()                            { w.said, w.last = nil, nil }
func (w *words) Snapshot(s *profile.Snapshot)        { s.Model.Name = w.name }
func (w *words) Warnings() []string                  { return []string{w.name + " warns"} }
func (w *words) Close() error                        { w.closed = true; return nil }
func (w *words) NumberFrom(n int)                    { w.n = n }
func (w *words) Chat() backend.Chat                  { return backend.Chat{Messages: slices.Clone(w.said)} }
func (w *words) SetChat(c backend.Chat)              { w.said, w.last = slices.Clone(c.Messages), nil }
func (w *words) History(int64, []profile.Record) int { return 0 }
func (w *words) Save(io.Writer) error                { return nil }
func (w *words) Load(io.Reader) error                { return nil }
func (w *words) Step(_, from string, _ int) string   { return from + "+" }

func (w *words) Settings() []backend.Setting {
	return []backend.Setting{{Name: "temp", Value: w.temp, Live: true}, {Name: w.name + "-only", Value: "x", Live: true}}
}

func (w *words) Apply(wishes map[string]string) []backend.Outcome {
	w.temp = wishes["temp"]
	return []backend.Outcome{{Setting: "temp", Verdict: backend.Applied, Value: w.temp}}
}

// cold is words with something to forget.
type cold struct{ *words }

func (c cold) Forget() error { c.forgot++; c.warm = false; return nil }

func both(own bool) (*Either, *words, *words) {
	near, far := &words{temp: "0"}, &words{name: "server", temp: "0", own: own}
	return New(cold{near}, far, backend.Local), near, far
}

func ask(t *testing.T, e *Either, text string) *backend.Run {
	t.Helper()
	r, err := e.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func switchTo(t *testing.T, e *Either, name string) {
	t.Helper()
	if o := e.Apply(map[string]string{backend.EngineSetting: name}); len(o) != 1 || o[0].Verdict != backend.Applied || o[0].Value != name {
		t.Fatalf("%+v", o)
	}
}

// mapped is cold with experts.
type mapped struct{ cold }

func (mapped) Experts(dst *profile.ExpertMap) { dst.Reset(2, 3) }

// Experts are those of the engine in force, and none where that knows of none.
func TestExpertsOfTheEngineInForce(t *testing.T) {
	near, far := &words{}, &words{name: "server"}
	e := New(mapped{cold{near}}, far, backend.Local)
	var m profile.ExpertMap
	if e.Experts(&m); len(m.Cells) != 6 {
		t.Errorf("%d cells of the model here", len(m.Cells))
	}
	switchTo(t, e, backend.Elsewhere)
	if e.Experts(&m); len(m.Cells) != 0 || m.Experts != 0 {
		t.Errorf("%d cells of a server", len(m.Cells))
	}
}

// What one engine was asked the other is asked too, from the same conversation, and
// the runs are compared.
func TestTheSamePromptOnBoth(t *testing.T) {
	for _, own := range []bool{false, true} {
		e, near, far := both(own)
		ask(t, e, "one")
		first := ask(t, e, "two")
		switchTo(t, e, backend.Elsewhere)
		second, err := e.Again(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if second.N != 3 || second.Engine != "server" || !second.SameStart(first) || len(far.said) != 4 || far.said[2].Text != "two" {
			t.Errorf("the server's run is %+v after %+v", second, far.said)
		}
		third, err := e.Again(context.Background(), nil)
		if err != nil || third.N != 4 || third.Asked != second.Asked {
			t.Errorf("again on the same engine: %+v, %v", third, err)
		}
		switchTo(t, e, backend.Local)
		fourth, err := e.Again(context.Background(), nil)
		if err != nil || fourth.N != 5 || fourth.Asked != first.Asked || !fourth.ColdCache || near.forgot != 1 {
			t.Errorf("back on the first: %+v, %v, forgot %d times", fourth, err, near.forgot)
		}
		var l ab.Runs
		l.Add(fourth)
		l.Add(third)
		c, ok := l.Verdict()
		if !ok || !c.SameStart || c.Identical == own || c.What() != "engine server" || strings.Contains(c.Why, "another start") {
			t.Errorf("compared: %+v, %v: %s", c, ok, c.What())
		}
	}
}

// The conversation goes on with whoever answers, and a new chat is new for both.
func TestTheConversationGoesOn(t *testing.T) {
	e, near, far := both(true)
	ask(t, e, "one")
	switchTo(t, e, backend.Elsewhere)
	ask(t, e, "two")
	if len(far.said) != 4 || far.said[0].Text != "one" || len(near.said) != 2 {
		t.Errorf("the server knows %+v, the local engine %+v", far.said, near.said)
	}
	switchTo(t, e, backend.Local)
	if len(e.Chat().Messages) != 4 {
		t.Errorf("back: %+v", e.Chat())
	}
	e.NewChat()
	if len(near.said)+len(far.said) != 0 {
		t.Error("a new chat is not new")
	}
	if _, err := e.Again(context.Background(), nil); !errors.Is(err, ErrNothingToRepeat) {
		t.Errorf("a repeat of nothing: %v", err)
	}
	if err := e.Close(); err != nil || !near.closed || !far.closed {
		t.Errorf("closed %v, %v, %v", near.closed, far.closed, err)
	}
	if w := e.Warnings(); len(w) != 2 {
		t.Errorf("warnings %q", w)
	}
}

// The engine is a setting like others, ahead of those of the one in force.
func TestTheEngineIsASetting(t *testing.T) {
	e, _, far := both(true)
	if rows := e.Settings(); rows[0].Name != backend.EngineSetting || rows[0].Value != backend.Local || rows[2].Name != "-only" {
		t.Errorf("rows %+v", rows)
	}
	o := e.Apply(map[string]string{"temp": "0.5", backend.EngineSetting: backend.Elsewhere})
	if len(o) != 2 || o[0].Setting != backend.EngineSetting || far.temp != "0.5" {
		t.Errorf("applied %+v", o)
	}
	if o := e.Apply(map[string]string{backend.EngineSetting: "nowhere"}); o[0].Verdict != backend.Declined || o[0].Value != backend.Elsewhere {
		t.Errorf("applied %+v", o)
	}
	if e.Step(backend.EngineSetting, backend.Elsewhere, -1) != backend.Local || e.Step("temp", "1", 1) != "1+" {
		t.Error("steps")
	}
	var s profile.Snapshot
	e.Snapshot(&s)
	if s.Model.Name != "server" || e.Info().Engine != "server" {
		t.Errorf("shown is %+v", s.Model)
	}
	if r := ask(t, e, "one"); r.Settings[0].Name != backend.EngineSetting || r.Settings[0].Value != backend.Elsewhere {
		t.Errorf("a run's settings %+v", r.Settings)
	}
	// Where the last run cannot be compared with, the missing one is of the other engine.
	near := &words{temp: "0", warm: true}
	e = New(cold{near}, far, backend.Local)
	var l ab.Runs
	l.Add(ask(t, e, "one"))
	switchTo(t, e, backend.Elsewhere)
	old, now, ok := l.Missing(backend.Values(e.Settings()))
	if !ok || len(old) != 1 || old[backend.EngineSetting] != backend.Local || now[backend.EngineSetting] != backend.Elsewhere {
		t.Errorf("missing %v, %v, %v", old, now, ok)
	}
}
