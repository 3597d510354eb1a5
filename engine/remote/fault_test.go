package remote

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bmoe/engine/backend"
)

func TestAddressesThatCannotBe(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"localhost:8080", "address"},
		{"", "address"},
		{"ftp://host", "http"},
		{"http://", "host is missing"},
		{"http://me:secret@host", "password"},
		{"http://host/v1?api_key=secret", "does not belong"},
		{"http://a b/", "address"},
		{"http://host:notaport", "address"},
	} {
		_, err := parseAddress(c.url)
		oneLine(t, err, "connect", c.want)
		if err != nil && c.url == "http://me:secret@host" && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q repeats the password", err)
		}
		if !errors.As(err, new(*backend.SettingError)) {
			t.Errorf("%q: %T", c.url, err)
		}
	}
	for url, want := range map[string]string{
		"http://127.0.0.1:8080":       "http://127.0.0.1:8080/v1/",
		"http://127.0.0.1:8080/":      "http://127.0.0.1:8080/v1/",
		"https://host/v1":             "https://host/v1/",
		"https://host/openai/v1/":     "https://host/openai/v1/",
		"https://host/other/and/more": "https://host/other/and/more/",
	} {
		a, err := parseAddress(url)
		if err != nil || a.api.String() != want {
			t.Errorf("%s: %v, %v", url, a, err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	l.Close()
	_, err = tryConnect(t, Config{URL: at})
	oneLine(t, err, at, "is the server running")
	_, err = tryConnect(t, Config{URL: "http://no-such-host.invalid"})
	oneLine(t, err, "no-such-host.invalid")
}

func TestCertificates(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, err := tryConnect(t, Config{URL: s.URL})
	oneLine(t, err, "certificate is not trusted", "SSL_CERT_FILE")
	plain := serve(t)
	_, err = tryConnect(t, Config{URL: strings.Replace(plain.URL, "http://", "https://", 1)})
	oneLine(t, err, "speaks http and not https")
}

func TestWhatIsNoServerOfModels(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		status           int
	}{
		{"a page", "<html>hello</html>", "not JSON", 200},
		{"nothing there", "404 page not found", "404", 404},
		{"broken JSON", `{"data":[{"id":`, "not JSON", 200},
		{"another form", `{"data":"none"}`, "not JSON", 200},
		{"no models", `{"data":[]}`, "no models", 200},
		{"without end", `{"data":["` + strings.Repeat("x", mostBody+10), "longer than 8 MiB", 200},
	} {
		s := serve(t)
		s.other["/v1/models"] = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}
		_, err := tryConnect(t, Config{URL: s.URL})
		oneLine(t, err, c.want)
	}
}

// Every refusal is one line that says what to do, and the next question is answered.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		header [2]string
		body   string
		want   []string
	}{
		{401, [2]string{}, `{"error":{"message":"Missing key","type":"auth"}}`, []string{"wants a key", "OPENAI_API_KEY", "Missing key"}},
		{404, [2]string{}, `{"error":{"message":"model \"tiny\" not found, try pulling it first"}}`, []string{"not found", "try pulling it first"}},
		{404, [2]string{}, `{"detail":"Not Found"}`, []string{"Not Found", "404"}},
		{404, [2]string{}, ``, []string{"address"}},
		{429, [2]string{"Retry-After", "17"}, `{"error":"slow down"}`, []string{"too many requests", "after 17 s", "slow down"}},
		{429, [2]string{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}, ``, []string{"after Wed, 21 Oct 2026"}},
		{400, [2]string{}, `{"object":"error","message":"the prompt\nis too long"}`, []string{"bad request", "the prompt is too long"}},
		{503, [2]string{}, `<html>` + strings.Repeat("x", 100000), []string{"service unavailable (503)"}},
		{500, [2]string{}, strings.Repeat("long ", 100000), []string{"500", "..."}},
	} {
		s := serve(t)
		h := connect(t, Config{URL: s.URL})
		s.chat = func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
			if c.header[0] != "" {
				w.Header().Set(c.header[0], c.header[1])
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}
		run, err := h.Generate(context.Background(), backend.Request{Text: "hello"})
		if run != nil {
			t.Errorf("%d: a run of nothing", c.status)
		}
		oneLine(t, err, append(c.want, s.URL)...)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%d: asked %d times", c.status, n)
		}
		works(t, s, h)
		if n := len(h.Chat().Messages); n != 2 {
			t.Errorf("%d: the refused message stayed: %d messages", c.status, n)
		}
	}
}

// What goes wrong part way leaves what had been said, and one line.
func TestFaultsInMidStream(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(w http.ResponseWriter, stream func(string))
		want string
	}{
		{"an error as an event", func(_ http.ResponseWriter, stream func(string)) {
			stream(`{"error":{"code":500,"message":"the GPU\nis gone","type":"server_error"}}`)
		}, "it failed while it answered: the GPU is gone"},
		{"cut inside an event", func(w http.ResponseWriter, _ func(string)) {
			io.WriteString(w, `data: {"choices":[{"delta":{"con`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "cut"},
		{"ended in good order, but too early", func(http.ResponseWriter, func(string)) {}, "cut"},
		{"broken JSON", func(_ http.ResponseWriter, stream func(string)) { stream(`{"choices":[{]}`) }, "not JSON"},
		{"another form", func(_ http.ResponseWriter, stream func(string)) { stream(`{"choices":"none"}`) }, "not JSON"},
		{"bytes that are no text", func(_ http.ResponseWriter, stream func(string)) {
			stream("{\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}")
		}, "no UTF-8"},
		{"half a character at the end", func(w http.ResponseWriter, _ func(string)) { io.WriteString(w, "data: {}\n\n\xe2\x82") }, "no UTF-8"},
		{"50 MB in one piece", func(w http.ResponseWriter, _ func(string)) {
			io.WriteString(w, `data: {"choices":[{"delta":{"content":"`)
			part := strings.Repeat("x", 1<<20)
			for range 50 {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
			io.WriteString(w, "\"}}]}\n\n")
		}, "longer than 4 MiB"},
		{"an event of many lines without end", func(w http.ResponseWriter, _ func(string)) {
			for range 100000 {
				if _, err := io.WriteString(w, "data: "+strings.Repeat("x", 100)+"\n"); err != nil {
					return
				}
			}
		}, "longer than 4 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t)
			h := connect(t, Config{URL: s.URL})
			s.chat = func(w http.ResponseWriter, _ *http.Request, stream func(string)) {
				stream(piece("so "))
				stream(piece("far"))
				c.then(w, stream)
			}
			run := ask(t, h, "hello")
			oneLine(t, run.Err, c.want, s.URL)
			if run.Result.Text != "so far" || run.Result.StopReason != "error" {
				t.Errorf("kept %q, %s", run.Result.Text, run.Result.StopReason)
			}
			works(t, s, h)
			if n := len(h.Chat().Messages); n != 4 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

func TestAnAnswerWithoutAStream(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	s.chat = func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"message":{"content":"all at once"}}]}`)
	}
	_, err := h.Generate(context.Background(), backend.Request{Text: "hello"})
	oneLine(t, err, "application/json", "stream")
	works(t, s, h)
}

// What was counted and never sent gives no speed.
func TestAServerThatClaimsMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []string
		usage string
		bad   bool
	}{
		{"nothing sent", nil, `{"prompt_tokens":5,"completion_tokens":50}`, true},
		{"less sent", []string{"few"}, `{"prompt_tokens":5,"completion_tokens":5000}`, true},
		{"thoughts that are not shown", []string{"few"}, `{"prompt_tokens":5,"completion_tokens":5000,"completion_tokens_details":{"reasoning_tokens":4998}}`, false},
		{"several tokens in a piece", []string{"one two three ", "four five six"}, `{"prompt_tokens":5,"completion_tokens":7}`, false},
		{"nothing to say", nil, `{"prompt_tokens":5,"completion_tokens":1}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t)
			h := connect(t, Config{URL: s.URL})
			s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
				for _, w := range c.words {
					stream(piece(w))
					h.clock.Add(1e9)
				}
				stream(ended)
				stream(`{"choices":[],"usage":` + c.usage + `}`)
			}
			run, err := h.Generate(context.Background(), backend.Request{Text: "hello"})
			if run != nil {
				err = run.Err
			}
			if !c.bad {
				if err != nil {
					t.Fatal(err)
				}
				if far := run.Result.Remote; !far.Told || far.Prompt.Value != 5 {
					t.Errorf("told %+v", far)
				}
				return
			}
			oneLine(t, err, "generated", "sent", "left out")
			if run != nil && (run.Result.Remote.Told || run.Result.NGen != len(c.words)) {
				t.Errorf("believed: %+v", run.Result.Remote)
			}
			works(t, s, h)
		})
	}
}

// A server that says nothing any more is told of once, after ten seconds, and can
// be stopped.
func TestAServerThatStalls(t *testing.T) {
	for _, first := range []bool{true, false} {
		s := serve(t)
		h := connect(t, Config{URL: s.URL})
		stalls, gone := make(chan struct{}), make(chan struct{})
		s.chat = func(_ http.ResponseWriter, r *http.Request, stream func(string)) {
			if !first {
				stream(piece("so far"))
			}
			close(stalls)
			<-r.Context().Done()
			close(gone)
		}
		ctx, stop := context.WithCancel(context.Background())
		said := make(chan struct{}, 10)
		done := make(chan *backend.Run)
		var failed error
		go func() {
			run, err := h.Generate(ctx, backend.Request{Text: "hello", OnDelta: func(backend.Delta) { said <- struct{}{} }})
			failed = err
			done <- run
		}()
		<-stalls
		if !first {
			<-said
		}
		h.clock.Add(9e9)
		h.beat()
		if n := h.told(); n != nil {
			t.Errorf("told after 9 s: %q", n)
		}
		h.clock.Add(2e9)
		h.beat()
		h.clock.Add(20e9)
		h.beat()
		if n := h.told(); len(n) != 1 || !strings.Contains(n[0], "10 s") || !strings.Contains(n[0], s.Listener.Addr().String()) {
			t.Errorf("told %q", n)
		}
		if got := live(h).Remote.Silence; !got.OK || got.Value != 31e9 {
			t.Errorf("silent for %v", got)
		}
		stop()
		run := <-done
		<-gone // the stream was closed, or the server would not know
		if run != nil {
			failed = run.Err
		}
		if !errors.Is(failed, context.Canceled) || (run == nil) != first || run != nil && run.Result.StopReason != "cancelled" {
			t.Errorf("stopped: %v, %+v", failed, run)
		}
		works(t, s, h)
	}
}
