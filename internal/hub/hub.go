// Package hub finds GGUF models of the Hugging Face Hub, in the cache that its own
// tools keep and on the network, and downloads them into that cache in its layout, so
// that those tools find them too.
package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Environment variables that are honoured, as the Hub's own tools do.
const (
	EndpointVariable = "HF_ENDPOINT"
	TokenVariable    = "HF_TOKEN"
	HomeVariable     = "HF_HOME"
	CacheVariable    = "HF_HUB_CACHE"
	OfflineVariable  = "HF_HUB_OFFLINE"
)

const defaultEndpoint = "https://huggingface.co"

// Hub is where models come from and where they are kept.
type Hub struct {
	endpoint *url.URL
	token    string // sent to the endpoint's host only
	cache    string
	offline  bool
	client   *http.Client

	free func(dir string) (int64, bool)             // bytes free for the user; tests say how many
	wait func(context.Context, time.Duration) error // between tries; tests do not
}

// FromEnvironment returns the hub that the environment names.
func FromEnvironment() (*Hub, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	h := &Hub{cache: cache, token: strings.TrimSpace(os.Getenv(TokenVariable)), free: freeSpace, wait: wait}
	switch strings.ToLower(os.Getenv(OfflineVariable)) {
	case "", "0", "no", "off", "false":
	default:
		h.offline = true
	}
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" {
		endpoint = defaultEndpoint
	}
	h.endpoint, err = url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil || h.endpoint.Host == "" || h.endpoint.Scheme != "https" && h.endpoint.Scheme != "http" {
		return nil, fmt.Errorf("%s=%q: want a URL like %s", EndpointVariable, endpoint, defaultEndpoint)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 30 * time.Second
	transport.DisableCompression = true // a range is of the file's own bytes
	h.client = &http.Client{Transport: transport, CheckRedirect: h.redirect}
	return h, nil
}

// CacheDir returns the folder in which the Hub's own tools keep models.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv(HomeVariable); dir != "" {
		return filepath.Abs(filepath.Join(dir, "hub"))
	}
	// Those tools look for it here on every system.
	dir := os.Getenv("XDG_CACHE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no folder for models: %w; set %s", err, HomeVariable)
		}
		dir = filepath.Join(home, ".cache")
	}
	return filepath.Join(dir, "huggingface", "hub"), nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// mostRedirects is more than any hub needs.
const mostRedirects = 10

// redirect follows to other hosts, but never with the token: a file's bytes come from
// a host that has no business with it. The HTTP client would pass it on to hosts below
// the same domain, and to other ports.
func (h *Hub) redirect(r *http.Request, via []*http.Request) error {
	if len(via) >= mostRedirects {
		return fmt.Errorf("more than %d redirects", mostRedirects)
	}
	if r.URL.Host != h.endpoint.Host || r.URL.Scheme != h.endpoint.Scheme {
		r.Header.Del("Authorization")
	}
	return nil
}

// Spec names a model of the hub.
type Spec struct {
	Repo  string // OWNER/REPO
	Quant string // Q4_K_M, or a file's name; empty: the hub's usual one
}

var repoPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ParseSpec reads OWNER/REPO[:QUANT].
func ParseSpec(text string) (Spec, error) {
	repo, quant, colon := strings.Cut(text, ":")
	if !repoPattern.MatchString(repo) || strings.Contains(repo, "..") || strings.Contains(repo, "--") || colon && quant == "" {
		return Spec{}, fmt.Errorf("%q is no model of the hub: want OWNER/REPO or OWNER/REPO:QUANT, as in ggml-org/gpt-oss-20b-GGUF:mxfp4", text)
	}
	return Spec{repo, quant}, nil
}

func (s Spec) String() string {
	if s.Quant == "" {
		return s.Repo
	}
	return s.Repo + ":" + s.Quant
}

// File is a file of a repository.
type File struct {
	Path string // in the repository, with slashes
	Size int64  // bytes
	hash string // in hexadecimal: of the content, or of git's object if the file is small
	lfs  bool   // the content's SHA-256
}

// Set is a model: one file, or all shards of a split set in their order.
type Set struct {
	Files []File
}

// Name is the first file's name.
func (s Set) Name() string { return path.Base(s.Files[0].Path) }

// Size is that of all files, in bytes.
func (s Set) Size() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

var shardPattern = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// sets groups files into models. A split set that lacks a shard is none.
func sets(files []File) (all []Set) {
	type split struct{ stem, of string }
	groups := map[split][]File{}
	var order []split
	for _, f := range files {
		name := path.Base(f.Path)
		if !strings.HasSuffix(strings.ToLower(name), ".gguf") || strings.HasPrefix(strings.ToLower(name), "mmproj") || strings.Contains(strings.ToLower(name), "imatrix") {
			continue
		}
		k := split{stem: f.Path}
		if m := shardPattern.FindStringSubmatch(f.Path); m != nil {
			k = split{m[1], m[3]}
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], f)
	}
	for _, k := range order {
		g := groups[k]
		slices.SortFunc(g, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		if k.of != "" && fmt.Sprintf("%05d", len(g)) != k.of {
			continue
		}
		all = append(all, Set{g})
	}
	return all
}

// usual are the quantisations that are taken where none is named.
var usual = []string{"Q4_K_M", "MXFP4"}

// choose returns the model that a quantisation names.
func choose(spec Spec, files []File) (Set, error) {
	all := sets(files)
	if len(all) == 0 {
		return Set{}, fmt.Errorf("%s has no GGUF model", spec.Repo)
	}
	if spec.Quant == "" {
		if len(all) == 1 {
			return all[0], nil
		}
		for _, q := range usual {
			if found := matching(all, q); len(found) == 1 {
				return found[0], nil
			}
		}
		return Set{}, fmt.Errorf("%s has %d models; name one behind a colon: %s", spec.Repo, len(all), names(all))
	}
	switch found := matching(all, spec.Quant); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Set{}, fmt.Errorf("%s has no %s; it has %s", spec.Repo, spec.Quant, names(all))
	default:
		return Set{}, fmt.Errorf("%s has %d models for %s; name one by its file: %s", spec.Repo, len(found), spec.Quant, names(found))
	}
}

// matching returns the models that a file's name or a quantisation means. Between
// Q4_K_XL and UD-Q4_K_XL the shorter name is it.
func matching(all []Set, quant string) (found []Set) {
	for _, s := range all {
		if strings.EqualFold(s.Files[0].Path, quant) || strings.EqualFold(s.Name(), quant) {
			return []Set{s}
		}
	}
	for _, s := range all {
		stem := s.Files[0].Path
		if m := shardPattern.FindStringSubmatch(stem); m != nil {
			stem = m[1]
		} else {
			stem = stem[:len(stem)-len(".gguf")]
		}
		stem, quant := strings.ToLower(path.Base(stem)), strings.ToLower(quant)
		if rest, ok := strings.CutSuffix(stem, quant); ok && (rest == "" || strings.ContainsRune("-._", rune(rest[len(rest)-1]))) {
			found = append(found, s)
		}
	}
	if len(found) == 2 {
		a, b := found[0].Name(), found[1].Name()
		for i, other := range []string{b, a} {
			ud := strings.ToLower(strings.Replace(found[i].Name(), "UD-", "", 1))
			if ud == strings.ToLower(other) {
				return []Set{found[1-i]}
			}
		}
	}
	return found
}

// mostNames is how many models an error lists.
const mostNames = 20

func names(all []Set) string {
	var out []string
	for _, s := range all {
		out = append(out, s.Name())
	}
	slices.Sort(out)
	if n := len(out); n > mostNames {
		out = append(out[:mostNames], fmt.Sprintf("and %d more", n-mostNames))
	}
	return strings.Join(out, ", ")
}

// repository is what the hub says of one.
type repository struct {
	commit string
	files  []File
}

var (
	hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexSHA1   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// maxListing bounds what is read of an answer that lists files.
const maxListing = 64 << 20

// list asks the hub what a repository has.
func (h *Hub) list(ctx context.Context, repo string) (*repository, error) {
	r, err := h.get(ctx, "/api/models/"+repo+"/revision/main?blobs=true", "")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if err := h.refused(r, repo); err != nil {
		return nil, err
	}
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name   string `json:"rfilename"`
			Size   int64  `json:"size"`
			BlobID string `json:"blobId"`
			LFS    *struct {
				SHA256 string `json:"sha256"`
				Size   int64  `json:"size"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxListing)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: the answer about %s: %w", h.endpoint.Host, repo, err)
	}
	out := &repository{commit: answer.SHA}
	if !hexSHA1.MatchString(out.commit) {
		return nil, fmt.Errorf("%s: the answer about %s names no revision", h.endpoint.Host, repo)
	}
	for _, s := range answer.Siblings {
		f := File{Path: s.Name, Size: s.Size, hash: s.BlobID}
		if s.LFS != nil {
			f.hash, f.Size, f.lfs = s.LFS.SHA256, s.LFS.Size, true
		}
		// What is written goes below the cache's folder, whatever the hub says.
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || strings.ContainsAny(f.Path, `\:`) || f.Size < 0 ||
			!f.lfs && !hexSHA1.MatchString(f.hash) || f.lfs && !hexSHA256.MatchString(f.hash) {
			continue
		}
		out.files = append(out.files, f)
	}
	return out, nil
}

// get asks the endpoint for a path; bytes is a range, or empty for all.
func (h *Hub) get(ctx context.Context, path, bytes string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.endpoint.String()+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "bmoe")
	if h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token)
	}
	if bytes != "" {
		r.Header.Set("Range", "bytes="+bytes)
	}
	resp, err := h.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A redirect's address may be signed: it is nobody's business.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, &networkError{fmt.Errorf("%s: %w", h.endpoint.Host, err)}
	}
	return resp, nil
}

// networkError is one that may not come again.
type networkError struct{ error }

func (e *networkError) Unwrap() error { return e.error }

// refused words an answer that is none, nil if it is one.
func (h *Hub) refused(r *http.Response, repo string) error {
	page := h.endpoint.String() + "/" + repo
	token := "set " + TokenVariable
	if h.token != "" {
		token = TokenVariable + " does not open it"
	}
	switch code := r.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotFound || r.Header.Get("X-Error-Code") == "RepoNotFound":
		return fmt.Errorf("there is no %s at %s, or it is private: %s", repo, h.endpoint.Host, token)
	case code == http.StatusForbidden || r.Header.Get("X-Error-Code") == "GatedRepo":
		return fmt.Errorf("%s is gated: accept its terms at %s and %s", repo, page, token)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%s is not public, or there is none: %s", repo, token)
	case code == http.StatusTooManyRequests || code >= 500:
		return &networkError{fmt.Errorf("%s: %s", h.endpoint.Host, r.Status)}
	default:
		return fmt.Errorf("%s: %s for %s", h.endpoint.Host, r.Status, repo)
	}
}
