package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// script is a server that answers as it was told to.
type script struct {
	*httptest.Server
	t      *testing.T
	models string                                                                 // the body of /v1/models
	chat   func(w http.ResponseWriter, r *http.Request, stream func(data string)) // the answer
	other  map[string]http.HandlerFunc                                            // by path

	mu    sync.Mutex
	asked []question
	keys  []string // the Authorization of each request
	paths []string
}

const oneModel = `{"object":"list","data":[{"id":"tiny","object":"model","owned_by":"someone"}]}`

// serve starts a server with one model that says a few words.
func serve(t *testing.T) *script {
	s := &script{t: t, models: oneModel, other: map[string]http.HandlerFunc{}}
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		say(stream, "Once ", "upon ", "a time")
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.Close)
	return s
}

func (s *script) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.keys, s.paths = append(s.keys, r.Header.Get("Authorization")), append(s.paths, r.URL.Path)
	s.mu.Unlock()
	switch {
	case s.other[r.URL.Path] != nil:
		s.other[r.URL.Path](w, r)
	case r.URL.Path == "/v1/models":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, s.models)
	case r.URL.Path == "/v1/chat/completions":
		body, err := io.ReadAll(r.Body)
		var q question
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		if err != nil {
			s.t.Errorf("request %s: %v", body, err)
		}
		s.mu.Lock()
		s.asked = append(s.asked, q)
		s.mu.Unlock()
		s.chat(w, r, func(data string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", data)
			w.(http.Flusher).Flush()
		})
	default:
		http.NotFound(w, r)
	}
}

func (s *script) requests() []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// piece is an event with a part of the answer.
func piece(text string) string {
	b, _ := json.Marshal(text)
	return `{"choices":[{"index":0,"delta":{"content":` + string(b) + `},"finish_reason":null}]}`
}

const ended = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// say is a whole answer with what was counted.
func say(stream func(string), words ...string) {
	stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	for _, w := range words {
		stream(piece(w))
	}
	stream(ended)
	stream(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":%d}}`, len(words), 7+len(words)))
	stream("[DONE]")
}

// hands is a connected server whose clock and beats the test has in its hands.
type hands struct {
	*Remote
	clock   atomic.Int64
	beats   chan time.Time
	mu      sync.Mutex
	notices []string
}

func (h *hands) told() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.notices)
}

// beat lets a second's beat happen, and returns when it is over.
func (h *hands) beat() {
	h.beats <- time.Time{}
	h.beats <- time.Time{} // it is taken only after the one before has been dealt with
}

func connect(t *testing.T, c Config) *hands {
	t.Helper()
	h, err := tryConnect(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tryConnect(t *testing.T, c Config) (*hands, error) {
	h := &hands{beats: make(chan time.Time)}
	h.clock.Store(1e9)
	c.Notice = func(text string) {
		h.mu.Lock()
		h.notices = append(h.notices, text)
		h.mu.Unlock()
	}
	r, err := open(context.Background(), c, h.clock.Load, h.beats)
	if err != nil {
		return nil, err
	}
	h.Remote = r
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, nil
}

func ask(t *testing.T, r backend.Backend, text string) *backend.Run {
	t.Helper()
	run, err := r.Generate(context.Background(), backend.Request{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// works asks something and has the whole answer: what happened before did no harm.
func works(t *testing.T, s *script, h *hands) {
	t.Helper()
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) { say(stream, "still ", "here") }
	if run := ask(t, h, "and now?"); run.Err != nil || run.Result.Text != "still here" {
		t.Errorf("afterwards: %q, %v", run.Result.Text, run.Err)
	}
}

func live(h *hands) *profile.Snapshot {
	var s profile.Snapshot
	h.Snapshot(&s)
	return &s
}

func near(got profile.Maybe[float64], want float64) bool {
	return got.OK && got.Value > want*0.999 && got.Value < want*1.001
}

func oneLine(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", want)
	}
	text := err.Error()
	if strings.Contains(text, "\n") || len(text) > 700 {
		t.Errorf("not one line: %q", text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}
