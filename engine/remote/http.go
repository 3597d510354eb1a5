package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// dialPatience is how long a connection may take to come about.
	dialPatience = 10 * time.Second
	// mostEvent bounds one event of a stream, mostBody any other answer, mostRefusal
	// the words of a refusal that are read.
	mostEvent   = 4 << 20
	mostBody    = 8 << 20
	mostRefusal = 64 << 10
)

// newClient returns a client that takes proxies and certificates from where Go's
// takes them, and goes nowhere that it was not told to.
func (r *Remote) newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialPatience, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = dialPatience
	return &http.Client{Transport: &guard{next: t, remote: r}, CheckRedirect: stayHere}
}

// stayHere follows redirects within the server and no others: neither the key nor
// what is said is for anybody else. A redirect that would drop the request's body
// is no use.
func stayHere(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host || req.Method != first.Method || len(via) > 3 {
		to := *req.URL
		to.User, to.RawQuery, to.Fragment = nil, "", ""
		return &redirectError{to.String()}
	}
	return nil
}

// guard looks at what a server answers before anybody reads it.
type guard struct {
	next   http.RoundTripper
	remote *Remote
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	var began int64
	trace := &httptrace.ClientTrace{
		ConnectStart: func(string, string) { began = g.remote.now() },
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				g.remote.roundTrip.Store(max(g.remote.now()-began, 1))
			}
		},
	}
	res, err := g.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode >= 400:
		return nil, refusal(res)
	case res.StatusCode >= 300:
	case req.Method != http.MethodPost:
		res.Body = &bounded{res.Body, mostBody}
	case kind != "text/event-stream":
		err := &formError{"it answers with " + named(kind) + " and not with a stream of events"}
		return nil, errors.Join(err, res.Body.Close())
	default:
		res.Body = &events{rc: res.Body, heard: g.remote.heard}
	}
	return res, nil
}

func named(kind string) string {
	if kind == "" {
		return "something without a type"
	}
	return kind
}

// bounded is a body of which no more than so many bytes are taken.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &formError{fmt.Sprintf("its answer is longer than %d MiB", mostBody>>20)}
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// events is a stream of events on its way to the decoder, which neither bounds an
// event nor minds bytes that are no text.
type events struct {
	rc    io.ReadCloser
	heard func()
	line  int    // bytes of the line so far
	event int    // of the event
	part  []byte // of a character that is not complete
	bad   error  // what came behind the last event that was whole
}

func (e *events) Close() error { return e.rc.Close() }

func (e *events) Read(p []byte) (int, error) {
	if e.bad != nil {
		return 0, e.bad
	}
	n, err := e.rc.Read(p)
	if n > 0 {
		e.heard()
		if e.bad = e.check(p[:n]); e.bad != nil {
			// What was said before stays.
			return bytes.LastIndex(p[:n], []byte("\n\n")) + 1, nil
		}
	}
	if errors.Is(err, io.EOF) && len(e.part) > 0 {
		err = errNotText
	}
	return n, err
}

func (e *events) check(p []byte) error {
	for _, c := range p {
		switch {
		case c == '\n' && e.line == 0:
			e.event = 0
		case c == '\n':
			e.line = 0
		case c != '\r':
			e.line++
			e.event++
		}
		if e.event > mostEvent {
			return &formError{fmt.Sprintf("one piece of its answer is longer than %d MiB", mostEvent>>20)}
		}
	}
	text := append(e.part, p...)
	whole := len(text)
	for i := 1; i <= min(utf8.UTFMax-1, len(text)); i++ {
		if at := len(text) - i; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	if !utf8.Valid(text[:whole]) {
		return errNotText
	}
	e.part = append(e.part[:0], text[whole:]...)
	return nil
}

// refusal reads why a server refuses. Each program words it in its own form.
func refusal(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, mostRefusal))
	if cerr := res.Body.Close(); err == nil {
		err = cerr
	}
	e := &statusError{code: res.StatusCode, after: res.Header.Get("Retry-After"), text: messageIn(body)}
	if e.text == "" && err != nil {
		e.text = err.Error()
	}
	return e
}

// messageIn finds the words of an error: {"error":{"message":M}}, {"error":M},
// {"message":M}, {"detail":M}, or a text.
func messageIn(body []byte) string {
	var o struct {
		Error, Message, Detail json.RawMessage
	}
	if json.Unmarshal(body, &o) != nil {
		text := strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") {
			return "" // a page
		}
		return text
	}
	for _, raw := range []json.RawMessage{o.Error, o.Message, o.Detail} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		var inner struct{ Message string }
		if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
	}
	return ""
}
