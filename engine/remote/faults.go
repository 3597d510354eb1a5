package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"unicode"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// What Windows calls these two; on other systems no error has the numbers.
const (
	wsaReset   = syscall.Errno(10054)
	wsaRefused = syscall.Errno(10061)
)

// The faults of a server, as values: fault puts them into words.
type (
	// statusError is an answer with a status of 400 or more.
	statusError struct {
		code        int
		after, text string // Retry-After, and what the server says
	}
	// redirectError is a redirect that is not followed.
	redirectError struct{ to string }
	// formError is an answer of a form that nobody expects.
	formError struct{ text string }
	// Fault is what went wrong with a server, in one line.
	Fault struct {
		text string
		err  error
	}
)

func (e *statusError) Error() string   { return fmt.Sprintf("status %d", e.code) }
func (e *redirectError) Error() string { return "redirected to " + e.to }
func (e *formError) Error() string     { return e.text }
func (e *Fault) Error() string         { return e.text }
func (e *Fault) Unwrap() error         { return e.err }

var (
	errNotText = &formError{"what it sends is not text: bytes that are no UTF-8"}
	errCut     = errors.New("the stream ended before the answer did")
)

// fault words what went wrong while something was asked of the server: one line
// that says who, what, and what to do. The end of ctx stays what it is.
func (r *Remote) fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Fault{text: r.at.String() + ": " + r.clean(r.words(err)), err: err}
}

func (r *Remote) words(err error) string {
	var status *statusError
	var redirect *redirectError
	var form *formError
	var streamed *ssestream.StreamError
	var dns *net.DNSError
	var op *net.OpError
	var wrong *url.Error
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &status):
		return r.refused(status)
	case errors.As(err, &redirect):
		return "it sends us on to " + redirect.to + ", where nothing was sent: if you mean that one, give its address: {connect}"
	case errors.As(err, &form):
		return form.text + ": is this an OpenAI-compatible server?"
	case errors.As(err, &streamed):
		text := messageIn(streamed.Event.Data)
		if text == "" {
			text = "an error without words"
		}
		return "it failed while it answered: " + text
	case certificate(err):
		return "its certificate is not trusted: " + innermost(err) + ": on Linux SSL_CERT_FILE names a file with the certificate of who signed it"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no host of that name"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, wsaRefused):
		return "nobody answers at this port: is the server running?"
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "the host does not answer"
	case errors.As(err, new(tls.RecordHeaderError)) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "it speaks http and not https"
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, wsaReset), errors.Is(err, io.EOF):
		return "the connection was cut before the answer ended"
	case errors.As(err, &syntax), errors.As(err, &kind), strings.Contains(err.Error(), "parsing response json"):
		return "what it sends is not JSON of the form that was asked for: is this an OpenAI-compatible server?"
	case errors.Is(err, bufio.ErrTooLong):
		return "one piece of its answer is too long"
	case errors.As(err, &wrong):
		return innermost(wrong.Err)
	}
	return innermost(err)
}

// refused words a status.
func (r *Remote) refused(e *statusError) string {
	said := func(text string) string {
		if e.text == "" {
			return text
		}
		return text + ": " + e.text
	}
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		switch {
		case r.withheld:
			return said("it wants a key, and the one in OPENAI_API_KEY was not sent because it could be read on the way: use https, or {connect-insecure=on}")
		case r.key == "":
			return said("it wants a key: put it into OPENAI_API_KEY")
		}
		return said("it does not take the key in OPENAI_API_KEY")
	case http.StatusNotFound:
		if e.text == "" {
			return "there is no such service here (404): is the address right, and this an OpenAI-compatible server?"
		}
		return said("not found (404)")
	case http.StatusTooManyRequests:
		when := ", try again later"
		if s := strings.TrimSpace(e.after); s != "" {
			when = ", try again after " + s
			if strings.Trim(s, "0123456789") == "" {
				when += " s"
			}
		}
		return said("too many requests" + when)
	}
	text := fmt.Sprint(e.code)
	if s := http.StatusText(e.code); s != "" {
		text = fmt.Sprintf("%s (%d)", strings.ToLower(s), e.code)
	}
	return said(text)
}

func certificate(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// innermost returns the text of the error that all others wrap.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// mostWords bounds what a server says of itself in a line of ours.
const mostWords = 400

// clean makes one line of what may hold a server's words: no control characters,
// not without end, and never the key, which some servers repeat.
func (r *Remote) clean(text string) string {
	if r.key != "" {
		text = strings.ReplaceAll(text, r.key, "[key]")
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	if runes := []rune(text); len(runes) > mostWords {
		text = string(runes[:mostWords]) + "..."
	}
	return text
}

// listed names a few.
func listed(names []string) string {
	const most = 8
	if n := len(names) - most; n > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
