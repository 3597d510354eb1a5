package remote

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"bmoe/engine/backend"
)

// address is where a server is.
type address struct {
	api  *url.URL // of the interface; its path ends in a slash
	root *url.URL // of the server itself: metrics lie there
}

// parseAddress reads what the user gave. Without a path the interface lies below
// /v1, as with every server that we know.
func parseAddress(text string) (*address, error) {
	refuse := func(problem, remedy string) error {
		return &backend.SettingError{Setting: setConnect, Value: strconv.Quote(text), Problem: problem, Remedy: remedy}
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Opaque != "" || u.Scheme == "" || u.Host == "" && u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("this is no address", "give one like http://127.0.0.1:8080")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("want http:// or https://", "")
	case u.Hostname() == "":
		return nil, refuse("the host is missing", "give one like http://127.0.0.1:8080")
	case u.User != nil:
		// It would be shown, and written into results.
		e := refuse("a name or a password does not belong in an address", "put a key into OPENAI_API_KEY").(*backend.SettingError)
		e.Value = ""
		return nil, e
	case u.RawQuery != "" || u.Fragment != "":
		return nil, refuse("what follows a ? or a # does not belong in an address", "")
	}
	path := strings.TrimRight(u.Path, "/")
	if path == "" {
		path = "/v1"
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(path, "/v1") + "/"}
	return &address{api: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path + "/"}, root: root}, nil
}

// private reports whether what is sent cannot be read on the way: it is encrypted,
// or it does not leave this machine.
func (a *address) private() bool {
	host := a.api.Hostname()
	if a.api.Scheme == "https" || strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// String is the address as it is shown: without the path that all have.
func (a *address) String() string {
	return a.root.Scheme + "://" + a.root.Host + strings.TrimSuffix(a.root.Path, "/")
}
