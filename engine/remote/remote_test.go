package remote

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/profile"
)

func TestAConversation(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL, Temp: profile.Some(0.25), Seed: 42})
	if i := h.Info(); i.Model != "tiny" || !strings.HasPrefix(i.Engine, "server 127.0.0.1:") {
		t.Errorf("open is %+v", i)
	}
	var got strings.Builder
	run, err := h.Generate(context.Background(), backend.Request{Text: "tell me", MaxTokens: 9, OnDelta: func(d backend.Delta) {
		got.WriteString(d.Text)
	}})
	if err != nil || run.Err != nil || run.Result.Text != "Once upon a time" || got.String() != run.Result.Text || run.Result.StopReason != "eos" || run.N != 1 || run.Engine != h.Info().Engine {
		t.Fatalf("%+v, %v; deltas %q", run, err, got.String())
	}
	if r := &run.Result; r.NPrompt != 7 || r.NGen != 3 || len(r.TextSHA256) != 64 {
		t.Errorf("%d prompt tokens, %d generated, hash %q", r.NPrompt, r.NGen, r.TextSHA256)
	}
	second := ask(t, h, "go on")
	q := s.requests()
	first, then := q[0], q[1]
	if first.Model != "tiny" || first.Temp == nil || *first.Temp != 0.25 || first.Seed != 42 || first.Limit != 9 || !first.Stream || !first.Options.Usage || first.Progress {
		t.Errorf("asked %+v", first)
	}
	want := []contribution{{"user", "tell me"}, {"assistant", "Once upon a time"}, {"user", "go on"}}
	if !slices.Equal(then.Messages, want) || then.Limit != 0 {
		t.Errorf("the second question came with %+v", then)
	}
	// Again is the same question, with the same seed and temperature.
	again, err := h.Again(context.Background(), nil)
	if err != nil || again.N != 3 || again.StartKey != second.StartKey || again.Asked != second.Asked || again.Result.TextSHA256 != second.Result.TextSHA256 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if q = s.requests(); !slices.Equal(q[2].Messages, want) || q[2].Seed != 42 || *q[2].Temp != 0.25 {
		t.Errorf("again asked %+v", q[2])
	}
	if n := len(h.Chat().Messages); n != 4 {
		t.Errorf("%d messages after a repeat", n)
	}
	h.NewChat()
	if _, err := h.Again(context.Background(), nil); !errors.Is(err, ErrNothingToRepeat) {
		t.Errorf("a repeat of nothing: %v", err)
	}
	ask(t, h, "anew")
	if q = s.requests(); len(q[3].Messages) != 1 {
		t.Errorf("a new chat began with %+v", q[3].Messages)
	}
}

// What can be seen from here is measured; where a token's time went is not.
func TestWhatIsMeasuredFromHere(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	steps, waits := make(chan struct{}), []int64{2e9, 300e6, 500e6}
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		h.clock.Add(waits[0]) // the run has begun
		for i, w := range []string{"one ", "two ", "three"} {
			if i > 0 {
				<-steps
			}
			stream(piece(w))
		}
		stream(ended)
	}
	var seen []profile.Phase
	n := 0
	run, err := h.Generate(context.Background(), backend.Request{Text: "count", OnDelta: func(backend.Delta) {
		seen = append(seen, live(h).Phase)
		if n++; n < len(waits) {
			h.clock.Add(waits[n])
			steps <- struct{}{}
		}
	}})
	if err != nil || run.Err != nil {
		t.Fatal(err, run)
	}
	r, l := &run.Result, live(h)
	if !near(r.TTFT, 2) || !near(r.PerToken.Wall, 0.4) || !near(r.DecodeTPS, 2.5) || len(run.Walls) != 2 || run.Walls[0] != 0.3 {
		t.Errorf("first after %v, a token %v, %v tokens/s, gaps %v", r.TTFT, r.PerToken.Wall, r.DecodeTPS, run.Walls)
	}
	if l.Count != 2 || l.Tokens[0].Wall != 300e6 || l.Tokens[1].Wall != 500e6 || l.Phase != profile.Idle || !slices.Equal(seen, []profile.Phase{profile.Decode, profile.Decode, profile.Decode}) {
		t.Errorf("the snapshot has %d tokens, phase %v, phases %v", l.Count, l.Phase, seen)
	}
	if rec := make([]profile.Record, 9); h.History(0, rec) != 2 || rec[1].Wall != 500e6 || !rec[1].Undivided {
		t.Errorf("the history has %+v", rec[:2])
	}
	if m := l.Mean; m.Compute.OK || m.Mgmt.OK || m.Stall.OK || m.Other.OK || !m.Wall.OK || l.Ceiling.OK || l.PrefillTPS.OK {
		t.Errorf("measured what cannot be: %+v, ceiling %v, prefill %v", m, l.Ceiling, l.PrefillTPS)
	}
	if c := r.Cache; c.HitPct.OK || c.Lookups.OK || c.Policy.OK || r.IO.P50.OK || r.ReadMiBPerToken.OK || r.PerToken.Stall.OK || r.Process.CPUPerToken.OK {
		t.Errorf("measured what cannot be: %+v", r)
	}
	// Nobody counted: each delta is taken for a token, and that is said.
	if far := r.Remote; far.Told || far.Prompt.OK || far.Cached.OK || r.NGen != 3 || far.Deltas != 3 {
		t.Errorf("counted by nobody: %+v", far)
	}
	if !l.Remote.RoundTrip.OK {
		t.Error("no round trip")
	}
}

// A delta of several tokens: the speed is that of the tokens that were counted.
func TestSeveralTokensInADelta(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	heard := make(chan struct{})
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		stream(piece("one two three four "))
		<-heard
		stream(piece("five six seven eight"))
		stream(ended)
		stream(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9}}`)
	}
	first := true
	run, err := h.Generate(context.Background(), backend.Request{Text: "count", OnDelta: func(backend.Delta) {
		if first {
			first = false
			h.clock.Add(1e9)
			close(heard)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !near(run.Result.DecodeTPS, 8) || !near(run.Result.PerToken.Wall, 0.125) || run.Walls[0] != 0.125 {
		t.Errorf("%v tokens/s, %v a token, %v", run.Result.DecodeTPS, run.Result.PerToken.Wall, run.Walls)
	}
}

// Thoughts come in fields of their own, whatever those are called, or in tags.
func TestReasoning(t *testing.T) {
	for name, events := range map[string][]string{
		"reasoning_content": {`{"choices":[{"delta":{"reasoning_content":"let me "}}]}`, `{"choices":[{"delta":{"reasoning_content":"think"}}]}`, piece("42")},
		"reasoning":         {`{"choices":[{"delta":{"reasoning":"let me ","content":""}}]}`, `{"choices":[{"delta":{"reasoning":"think","content":null}}]}`, piece("42")},
		"tags":              {piece("<th"), piece("ink>let me "), piece("think</think>"), piece("42")},
	} {
		s := serve(t)
		h := connect(t, Config{URL: s.URL})
		s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
			for _, e := range events {
				stream(e)
			}
			stream(ended)
		}
		var thought, text string
		run, err := h.Generate(context.Background(), backend.Request{Text: "what?", OnDelta: func(d backend.Delta) { thought, text = thought+d.Reasoning, text+d.Text }})
		if err != nil || run.Result.Reasoning != "let me think" || run.Result.Text != "42" || thought != run.Result.Reasoning || text != "42" {
			t.Errorf("%s: thought %q, said %q, deltas %q and %q, %v", name, run.Result.Reasoning, run.Result.Text, thought, text, err)
		}
		ask(t, h, "why?")
		if m := s.requests()[1].Messages[1]; m.Content != "42" {
			t.Errorf("%s: the thought was sent back: %q", name, m.Content)
		}
	}
}

func TestModels(t *testing.T) {
	const three = `{"data":[{"id":"a:latest","owned_by":"library"},{"id":"B","owned_by":"library"},{"id":"c","owned_by":"library"}]}`
	s := serve(t)
	s.models = three
	_, err := tryConnect(t, Config{URL: s.URL})
	oneLine(t, err, "3 models", "{remote-model}", "a:latest, B, c")
	_, err = tryConnect(t, Config{URL: s.URL, Model: "d"})
	oneLine(t, err, "no such model", "a:latest, B, c")
	h := connect(t, Config{URL: s.URL, AnyModel: true})
	if w := h.Warnings(); len(w) != 1 || !strings.Contains(w[0], "a:latest answers") || h.Info().Model != "a:latest" {
		t.Errorf("took %q, said %q", h.Info().Model, w)
	}
	h = connect(t, Config{URL: s.URL, Model: "a"})
	if h.Info().Model != "a:latest" || !strings.HasPrefix(h.Info().Engine, "Ollama ") {
		t.Errorf("named without its tag: %+v", h.Info())
	}
	if got := h.Step("remote-model", "a:latest", 1); got != "B" {
		t.Errorf("the next model is %q", got)
	}
	o := h.Apply(map[string]string{"remote-model": "c", "temp": "0.5", "connect": "http://other"})
	if len(o) != 3 || o[0].Verdict != backend.Declined || o[1].Verdict != backend.Applied || o[2].Value != "0.5" || live(h).Model.Name != "c" {
		t.Errorf("applied %+v", o)
	}
	if o := h.Apply(map[string]string{"remote-model": "d"}); o[0].Verdict != backend.Declined || !strings.Contains(o[0].Reason, "a:latest") || o[0].Value != "c" {
		t.Errorf("a model that is not there: %+v", o)
	}
	ask(t, h, "hello")
	if q := s.requests()[0]; q.Model != "c" || *q.Temp != 0.5 {
		t.Errorf("asked %+v", q)
	}
	// A server that lists none has those that it is asked for.
	s = serve(t)
	s.other["/v1/models"] = http.NotFound
	h = connect(t, Config{URL: s.URL, Model: "hidden"})
	if w := h.Warnings(); len(w) != 1 || !strings.Contains(w[0], "hidden") {
		t.Errorf("said %q", w)
	}
	ask(t, h, "hello")
}

// What Step gives, Check and Apply take.
func TestSteps(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	for _, row := range h.Settings() {
		if !row.Live {
			continue
		}
		for _, dir := range []int{1, 1, 1, -1, -1, -1, -1, -1} {
			row = *backend.Find(h.Settings(), row.Name)
			to := h.Step(row.Name, row.Value, dir)
			if err := row.Check(to); err != nil {
				t.Errorf("%s from %s: %v", row.Name, row.Value, err)
			}
			if o := h.Apply(map[string]string{row.Name: to}); o[0].Verdict != backend.Applied || o[0].Value != to {
				t.Errorf("%s %s: %+v", row.Name, to, o)
			}
		}
	}
}
