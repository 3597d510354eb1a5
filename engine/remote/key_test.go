package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"bmoe/engine/backend"
)

const secret = "sk-this-is-the-secret"

func TestTheKeyGoesToTheServerAndNowhereElse(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL, Key: secret + "\n"})
	run := ask(t, h, "hello")
	h.beat()
	for i, k := range s.keys {
		if k != "Bearer "+secret {
			t.Errorf("%s was sent %q", s.paths[i], k)
		}
	}
	shown := fmt.Sprintf("%+v %+v %+v %+v", h.Settings(), *live(h), run.Settings, h.Warnings())
	result, err := json.Marshal(&run.Result)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(shown+string(result)+fmt.Sprintf("%+v", run.Result.Config), secret) {
		t.Error("the key is in what is shown or written")
	}
	// A server that repeats it in an error is not repeated.
	s.chat = func(w http.ResponseWriter, _ *http.Request, _ func(string)) {
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error":{"message":"incorrect key provided: %s"}}`, secret)
	}
	_, err = h.Generate(context.Background(), backend.Request{Text: "hello"})
	oneLine(t, err, "does not take the key", "[key]")
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%q holds the key", err)
	}
}

func TestTheKeyIsWithheldWhereOthersCouldReadIt(t *testing.T) {
	for url, private := range map[string]bool{
		"http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true, "https://example.org": true,
		"http://10.0.0.7:8080": false, "http://example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false,
	} {
		a, err := parseAddress(url)
		if err != nil || a.private() != private {
			t.Errorf("%s: private %v, %v", url, a.private(), err)
		}
	}
	// The name is another machine's, as far as anybody can tell; a proxy of ours
	// stands in for it.
	s := serve(t)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/nowhere")
	t.Setenv("OPENAI_ORG_ID", "an-organisation")
	t.Setenv("OPENAI_PROJECT_ID", "a-project")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: yes")
	headers := make(chan http.Header, 10)
	s.other["/v1/models"] = func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Clone()
		io.WriteString(w, oneModel)
	}
	for _, insecure := range []bool{false, true} {
		r := &Remote{cfg: Config{}, now: func() int64 { return 1 }}
		at, err := parseAddress("http://model-box.example")
		if err != nil {
			t.Fatal(err)
		}
		r.at = at
		c := Config{URL: "http://model-box.example", Key: secret, Insecure: insecure}
		if err := r.takeKey(&c); err != nil {
			t.Fatal(err)
		}
		warned := len(r.warnings) > 0 && strings.Contains(r.warnings[0], "{connect-insecure=on}")
		if (r.key == "") == insecure || r.withheld == insecure || warned == insecure {
			t.Errorf("insecure %v: key %q, withheld %v, warnings %q", insecure, r.key, r.withheld, r.warnings)
		}
	}
	h := connect(t, Config{URL: s.URL, Key: secret})
	got := <-headers
	for name := range got {
		switch name {
		case "Authorization", "User-Agent", "Accept-Encoding":
		default:
			t.Errorf("sent %s: %q", name, got[name])
		}
	}
	_ = h
	if _, err := tryConnect(t, Config{URL: s.URL, Key: "two\nlines"}); err == nil || strings.Contains(err.Error(), "lines\n") {
		t.Errorf("a key of two lines: %v", err)
	}
}

// A redirect to anybody else is not followed: neither the key nor what was said
// goes there.
func TestRedirectsElsewhere(t *testing.T) {
	other := serve(t)
	for _, status := range []int{301, 302, 307, 308} {
		s := serve(t)
		s.other["/v1/models"] = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path+"?token="+secret, status)
		}
		_, err := tryConnect(t, Config{URL: s.URL, Key: secret})
		oneLine(t, err, "sends us on to "+other.URL+"/v1/models", "{connect}")
		delete(s.other, "/v1/models")
		h := connect(t, Config{URL: s.URL, Key: secret})
		s.chat = func(w http.ResponseWriter, r *http.Request, _ func(string)) {
			http.Redirect(w, r, other.URL+r.URL.Path, status)
		}
		_, err = h.Generate(context.Background(), backend.Request{Text: "hello"})
		oneLine(t, err, "sends us on to "+other.URL)
		works(t, s, h)
	}
	if len(other.paths) > 0 {
		t.Errorf("asked for %q, with keys %q", other.paths, other.keys)
	}
	// Within the server it is followed, with the body.
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	s.other["/v1/chat/completions"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}
	s.other["/elsewhere"] = func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte("hello")) {
			t.Errorf("redirected with %q, %v", body, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		say(func(data string) { fmt.Fprintf(w, "data: %s\n\n", data) }, "found")
	}
	if run := ask(t, h, "hello"); run.Result.Text != "found" {
		t.Errorf("%q, %v", run.Result.Text, run.Err)
	}
}
