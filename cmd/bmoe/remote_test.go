package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/engine/either"
	"bmoe/engine/gguf/synth"
	"bmoe/engine/remote"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// chatServer says the same to everybody, and keeps what it was asked.
type chatServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // bodies
	keys  []string
}

func newChatServer(t *testing.T) *chatServer {
	s := &chatServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.keys = append(s.keys, r.Header.Get("Authorization"))
		s.mu.Unlock()
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"Big-Model","owned_by":"vllm","max_model_len":4096}]}`)
		case "/v1/chat/completions":
			s.mu.Lock()
			s.asked = append(s.asked, string(body))
			s.mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			for _, word := range []string{"from ", "far ", "away"} {
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
			}
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// heard returns the questions and the keys that have come so far.
func (s *chatServer) heard() (asked, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.keys)
}

func TestAServerAnswers(t *testing.T) {
	s := newChatServer(t)
	cmd := program("--connect", s.URL, "-p", "hello", "-n", "9", "--temp", "0.5", "--seed", "7")
	cmd.Env = append(cmd.Env, keyVariable+"=sk-secret", "OPENAI_BASE_URL=http://127.0.0.1:1/", "OPENAI_ORG_ID=nobody")
	r := finish(t, cmd)
	if r.code != 0 || r.stdout != "from far away\n" || !strings.Contains(r.stderr, "by vLLM 127.0.0.1:") || !strings.Contains(r.stderr, "prompt 11 tokens, n/a of them cached") {
		t.Errorf("%d, %q, %q", r.code, r.stdout, r.stderr)
	}
	asked, keys := s.heard()
	for _, want := range []string{`"temperature":0.5`, `"seed":7`, `"max_tokens":9`, `"model":"Big-Model"`} {
		if !strings.Contains(asked[0], want) {
			t.Errorf("%s is not in %s", want, asked[0])
		}
	}
	if keys[1] != "Bearer sk-secret" || strings.Contains(r.stdout+r.stderr, "sk-secret") {
		t.Errorf("keys %q, said %q", keys, r.stderr)
	}
	var object map[string]any
	r = succeeds(t, "--connect", s.URL, "-p", "hello", "--json")
	parseJSON(t, r.stdout, &object)
	for key, want := range map[string]any{"text": "from far away", "remote.model": "Big-Model", "remote.n_prompt": 11.0, "remote.queue_s": nil, "s_per_token.compute": nil, "cache.hit_pct": nil, "config.connect": s.URL} {
		if v, ok := lookUp(object, key); !ok || v != want {
			t.Errorf("%s is %v, %v; want %v", key, v, ok, want)
		}
	}
	r = succeeds(t, "--connect", s.URL, "-p", "hello", "--progress")
	if n := strings.Count(r.stdout, "BMOE_PROGRESS"); n != 3 || !strings.Contains(r.stdout, `"compute_ms":null`) || strings.Contains(r.stdout, `"compute_ms":0`) {
		t.Errorf("%d lines of tokens: %s", n, r.stdout)
	}
	r = succeeds(t, "--connect", s.URL, "-p", "hello", "--ab", "temp=0,1;n-predict=5,6", "--cells", "1")
	if !strings.Contains(r.stdout, "temp 0, n-predict 5") || !strings.Contains(r.stdout, "All runs gave the same text.") {
		t.Errorf("the experiment said %s", r.stdout)
	}
	asked, _ = s.heard()
	for _, want := range []string{`"temperature":0,"seed":1,"max_tokens":5`, `"temperature":1,"seed":1,"max_tokens":6`} {
		if !strings.Contains(strings.Join(asked, "\n"), want) {
			t.Errorf("no cell asked %s: %q", want, asked)
		}
	}
}

// The line by line chat has the server's commands, with names as they are written.
func TestPlainChatWithAServer(t *testing.T) {
	s := newChatServer(t)
	cmd := program("--connect", s.URL, "--plain")
	cmd.Stdin = strings.NewReader("hello\n/again\n/remote-model Big-Model\n/remote-model other\n/temp 0.25\n/again\n/lanes 4\n/runs\n/why\n")
	r := finish(t, cmd)
	for _, want := range []string{"Big-Model on vLLM 127.0.0.1:", "bmoe: from far away", "[run 1: 3 tokens", "by vLLM", "text identical",
		"no model of that name; it has Big-Model", "temp 0.25", "unknown command /lanes"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, r.stdout, r.stderr)
		}
	}
}

// With a model beside the server both answer the same prompt, in one list.
func TestBothEnginesInOneChat(t *testing.T) {
	s := newChatServer(t)
	model := filepath.Join(conform.TempDir(t), "tiny.gguf")
	if err := synth.Write(model, mustPreset(t, "tiny")); err != nil {
		t.Fatal(err)
	}
	cmd := program("--connect", s.URL, "--plain", "--engine", "local", "--temp", "0", "-n", "8", model)
	cmd.Stdin = strings.NewReader("hello\n/engine remote\n/again\n/engine local\n/again\n/runs\n")
	r := finish(t, cmd)
	for _, want := range []string{"[run 1: 8 tokens", "bmoe: from far away", "[run 2: 3 tokens", "by vLLM 127.0.0.1:", "run 2 against run 1 (engine vLLM 127.0.0.1:", "text DIFFERS", "tok/s from ", "first token after "} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	r = succeeds(t, "--connect", s.URL, "-p", "hello", "-n", "8", "--temp", "0", "--ab", "engine=local,remote", "--cells", "1", model)
	if !strings.Contains(r.stdout, "engine local") || !strings.Contains(r.stdout, "engine remote") || !strings.Contains(r.stdout, "did NOT all give the same text") {
		t.Errorf("the experiment said %s", r.stdout)
	}
}

func mustPreset(t *testing.T, name string) synth.Spec {
	spec, err := synth.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestServersThatCannotBe(t *testing.T) {
	s := newChatServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--connect", "localhost:8080", "-p", "x"}, 2, `--connect "localhost:8080": this is no address`},
		{[]string{"--connect", "", "-p", "x"}, 2, "--connect"},
		{[]string{"--connect", "http://" + l.Addr().String(), "-p", "x"}, 1, "is the server running"},
		{[]string{"--connect", s.URL, "--remote-model", "other", "-p", "x"}, 2, "--remote-model other: the server at " + s.URL + " has no such model: it has Big-Model"},
		{[]string{"--remote-model", "other", "-p", "x"}, 2, "--remote-model does nothing without --connect"},
		{[]string{"--engine", "remote", "-p", "x"}, 2, "--engine does nothing without --connect"},
		{[]string{"--connect", s.URL, "-p", "x", "--ab", "lanes=1,4"}, 2, `"lanes" is no setting`},
	} {
		r := bmoe(t, c.args...)
		if line := oneComplaint(t, r.stderr); r.code != c.code || !strings.Contains(line, c.want) {
			t.Errorf("%q: %d, %q; want %q", c.args, r.code, line, c.want)
		}
	}
	r := bmoe(t, "--connect", s.URL, "-p", "x", "--threads", "2", "--cache-mb", "100")
	if r.code != 0 || !strings.Contains(r.stderr, "--threads and --cache-mb do nothing with --connect") {
		t.Errorf("flags of the local engine: %d, %q", r.code, r.stderr)
	}
}

// ollamaVariable names the program of a real server.
const ollamaVariable = "BMOE_OLLAMA"

// A real server: models, a chat, its stream, a stop, what it counts, and its runs
// beside those of the local engine on the same model.
func TestARealServer(t *testing.T) {
	ollama := os.Getenv(ollamaVariable)
	if ollama == "" {
		t.Skip(ollamaVariable + " names no ollama")
	}
	dir := conform.TempDir(t)
	model := filepath.Join(dir, "tiny.gguf")
	if err := synth.Write(model, mustPreset(t, "tiny")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Modelfile"), []byte("FROM "+model+"\nPARAMETER num_ctx 2048\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	command := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, ollama, args...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "OLLAMA_HOST="+at, "OLLAMA_MODELS="+filepath.Join(dir, "models"))
		return cmd
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	serving, quit := context.WithCancel(ctx)
	server := command(serving, "serve")
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) } // it ends its runners
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		quit()
		server.Wait() // it was interrupted: whatever it says of that is right
	}()
	for {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if out, err := command(ctx, "create", "tiny", "-f", filepath.Join(dir, "Modelfile")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	far, err := remote.Open(ctx, remote.Config{URL: "http://" + at, Model: "tiny", Temp: profile.Some(0.0)})
	if err != nil {
		t.Fatal(err)
	}
	if i := far.Info(); i.Model != "tiny:latest" || !strings.HasPrefix(i.Engine, "Ollama ") {
		t.Errorf("open is %+v", i)
	}
	o := newOptions()
	if err := o.parse([]string{"--temp", "0", model}); err != nil {
		t.Fatal(err)
	}
	near, err := o.open(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := either.New(near.(either.Engine), far, backend.Elsewhere)
	defer e.Close() // what it would say, the runs have said
	deltas := 0
	run, err := e.Generate(ctx, backend.Request{Text: "Once upon a time", MaxTokens: 24, OnDelta: func(backend.Delta) { deltas++ }})
	if err != nil || run.Err != nil {
		t.Fatalf("%+v, %v", run, err)
	}
	res := &run.Result
	if f := res.Remote; res.Text == "" || deltas < 5 || !f.Told || f.Prompt.Value < 2 || res.NGen < 5 || !res.DecodeTPS.OK || !res.TTFT.OK || !f.RoundTrip.OK {
		t.Errorf("%d deltas, %q, %+v", deltas, res.Text, f)
	}
	again, err := e.Again(ctx, nil)
	if err != nil || again.Result.TextSHA256 != res.TextSHA256 {
		t.Errorf("again: %q after %q, %v", again.Result.Text, res.Text, err)
	}
	var l2 ab.Runs
	l2.Add(run)
	e.Apply(map[string]string{backend.EngineSetting: backend.Local})
	own, err := e.Again(ctx, nil)
	if err != nil || own.Err != nil || own.N != 3 {
		t.Fatalf("%+v, %v", own, err)
	}
	l2.Add(own)
	if c, ok := l2.Verdict(); !ok || !c.SameStart || c.What() != "engine local" || c.Text() == "-" || !own.Result.DecodeTPS.OK {
		t.Errorf("compared: %+v", c)
	}
	// A stop closes the stream: the next question is answered at once.
	e.Apply(map[string]string{backend.EngineSetting: backend.Elsewhere})
	stopping, halt := context.WithCancel(ctx)
	run, err = e.Generate(stopping, backend.Request{Text: "Tell me everything", MaxTokens: 1500, OnDelta: func(backend.Delta) { halt() }})
	halt()
	if run == nil || !errors.Is(run.Err, context.Canceled) || run.Result.StopReason != "cancelled" || run.Result.NGen > 1000 {
		t.Errorf("stopped: %+v, %v", run, err)
	}
	if run, err = e.Generate(ctx, backend.Request{Text: "And now?", MaxTokens: 4}); err != nil || run.Err != nil || len(e.Chat().Messages) < 4 {
		t.Errorf("afterwards: %+v, %v", run, err)
	}
}
