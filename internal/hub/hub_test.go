package hub

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bmoe/internal/conform"
)

const (
	repo   = "someone/Some-Model-GGUF"
	commit = "0123456789abcdef0123456789abcdef01234567"
	secret = "hf_secret"
)

// scripted is a hub of one repository, whose files come from another host.
type scripted struct {
	hub, cdn *httptest.Server
	files    map[string][]byte
	small    map[string]bool // kept by git itself

	mu       sync.Mutex
	requests []string // METHOD HOST-KIND PATH RANGE
	leaked   bool     // the token came to the host of the bytes
	cutAfter []int    // bytes after which the next answers are cut
	ranges   bool     // are understood
	token    string   // without it everything is refused
	gated    bool
	wrong    bool // the bytes are not those that the listing tells of
}

func script(t *testing.T, files map[string][]byte) (*scripted, *Hub) {
	s := &scripted{files: files, ranges: true, small: map[string]bool{}}
	s.cdn = httptest.NewServer(http.HandlerFunc(s.serveBytes))
	s.hub = httptest.NewServer(http.HandlerFunc(s.serveHub))
	t.Cleanup(s.cdn.Close)
	t.Cleanup(s.hub.Close)
	return s, s.client(t, conform.TempDir(t))
}

// client is a hub as another start of the program has it.
func (s *scripted) client(t *testing.T, cache string) *Hub {
	t.Setenv(EndpointVariable, s.hub.URL+"/")
	t.Setenv(CacheVariable, cache)
	t.Setenv(TokenVariable, secret)
	t.Setenv(OfflineVariable, "")
	h, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	h.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	h.free = func(string) (int64, bool) { return 1 << 40, true }
	return h
}

func (s *scripted) note(host string, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(host+" "+r.URL.Path+" "+r.Header.Get("Range")))
}

func (s *scripted) serveHub(w http.ResponseWriter, r *http.Request) {
	s.note("hub", r)
	switch {
	case s.gated:
		w.Header().Set("X-Error-Code", "GatedRepo")
		w.WriteHeader(http.StatusForbidden)
	case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/api/models/"+repo+"/revision/main":
		type lfs struct {
			SHA256 string `json:"sha256"`
			Size   int    `json:"size"`
		}
		type sibling struct {
			Name   string `json:"rfilename"`
			Size   int    `json:"size"`
			BlobID string `json:"blobId"`
			LFS    *lfs   `json:"lfs,omitempty"`
		}
		var all []sibling
		for name, b := range s.files {
			git := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(b), b))
			sum := sha256.Sum256(b)
			sib := sibling{Name: name, Size: len(b), BlobID: hex.EncodeToString(git[:])}
			if !s.small[name] {
				sib.LFS = &lfs{hex.EncodeToString(sum[:]), len(b)}
			}
			all = append(all, sib)
		}
		json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": all})
	default:
		name, ok := strings.CutPrefix(r.URL.Path, "/"+repo+"/resolve/"+commit+"/")
		if _, there := s.files[name]; !ok || !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		http.Redirect(w, r, s.cdn.URL+"/bytes?name="+url.QueryEscape(name)+"&signature=private", http.StatusFound)
	}
}

func (s *scripted) serveBytes(w http.ResponseWriter, r *http.Request) {
	s.note("cdn", r)
	if r.Header.Get("Authorization") != "" {
		s.leaked = true
	}
	b := s.files[r.URL.Query().Get("name")]
	if s.wrong {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
	}
	from := 0
	if at, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && s.ranges {
		from, _ = strconv.Atoi(strings.TrimSuffix(at, "-"))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(b)-1, len(b)))
		w.Header().Set("Content-Length", strconv.Itoa(len(b)-from))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	}
	s.mu.Lock()
	cut := len(b)
	if len(s.cutAfter) > 0 {
		cut, s.cutAfter = from+s.cutAfter[0], s.cutAfter[1:]
	}
	s.mu.Unlock()
	w.Write(b[from:min(cut, len(b))])
	if cut < len(b) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// content is a file's bytes: none like another's.
func content(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func fetched(t *testing.T, h *Hub, spec string) (string, error) {
	t.Helper()
	sp, err := ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Plan(context.Background(), sp)
	if err != nil {
		return "", err
	}
	return h.Download(context.Background(), p, nil)
}

func same(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, want %d: %v", path, len(got), len(want), err)
	}
}

// A model comes into the cache's layout, and is found there without the network. The
// token is for the hub alone.
func TestDownload(t *testing.T) {
	files := map[string][]byte{"model-Q4_K_M.gguf": content(3_000_000), "model-Q8_0.gguf": content(50), "README.md": content(10), "mmproj-model-f16.gguf": content(20)}
	s, h := script(t, files)
	s.token = secret
	if _, ok := h.Cached(Spec{Repo: repo}); ok {
		t.Error("found in an empty cache")
	}
	var told []Progress
	p, err := h.Plan(context.Background(), Spec{Repo: repo})
	if err != nil || p.Left != 3_000_000 || p.Set.Name() != "model-Q4_K_M.gguf" {
		t.Fatalf("%+v, %v", p, err)
	}
	if len(s.requests) != 1 {
		t.Errorf("before the first byte: %q", s.requests)
	}
	path, err := h.Download(context.Background(), p, func(p Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(h.cache, "models--someone--Some-Model-GGUF", "snapshots", commit, "model-Q4_K_M.gguf"); path != want {
		t.Errorf("it is %s, want %s", path, want)
	}
	same(t, path, files["model-Q4_K_M.gguf"])
	if s.leaked {
		t.Error("the token was sent to the host of the bytes")
	}
	if len(told) == 0 || told[len(told)-1].Done != 3_000_000 || told[len(told)-1].Total != 3_000_000 {
		t.Errorf("told of %+v", told)
	}
	n := len(s.requests)
	for spec, want := range map[string]bool{"": true, "Q4_K_M": true, "q4_k_m": true, "model-Q4_K_M.gguf": true, "Q8_0": false} {
		got, ok := s.client(t, h.cache).Cached(Spec{repo, spec})
		if ok != want || ok && got != path {
			t.Errorf("%q in the cache: %s, %v", spec, got, ok)
		}
	}
	if _, err := fetched(t, h, repo); err != nil || len(s.requests) != n+1 { // the listing
		t.Errorf("downloaded again: %q, %v", s.requests[n:], err)
	}
	if _, err := fetched(t, h, repo+":Q8_0"); err != nil {
		t.Error(err)
	}
	t.Setenv(OfflineVariable, "1")
	offline, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := offline.Cached(Spec{repo, "Q8_0"}); !ok {
		t.Error("not found offline")
	}
	if _, err := fetched(t, offline, repo); err == nil || !strings.Contains(err.Error(), OfflineVariable) {
		t.Error(err)
	}
}

// All shards of a set come, and the first is what is opened. Small files are git's own.
func TestSplitSet(t *testing.T) {
	files := map[string][]byte{}
	for i := range 3 {
		files[fmt.Sprintf("Q4_K_M/big-Q4_K_M-%05d-of-00003.gguf", i+1)] = content(1000 + i)
		files[fmt.Sprintf("Q6_K/big-Q6_K-%05d-of-00004.gguf", i+1)] = content(2000 + i) // one is missing
	}
	s, h := script(t, files)
	s.small["Q4_K_M/big-Q4_K_M-00001-of-00003.gguf"] = true
	path, err := fetched(t, h, repo+":Q4_K_M")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		name := fmt.Sprintf("big-Q4_K_M-%05d-of-00003.gguf", i+1)
		same(t, filepath.Join(filepath.Dir(path), name), files["Q4_K_M/"+name])
	}
	if filepath.Base(path) != "big-Q4_K_M-00001-of-00003.gguf" {
		t.Errorf("the first is %s", path)
	}
	if _, err := fetched(t, h, repo+":Q6_K"); err == nil || !strings.Contains(err.Error(), "has no Q6_K; it has big-Q4_K_M-00001-of-00003.gguf") {
		t.Error(err)
	}
	if got, ok := h.Cached(Spec{repo, "Q4_K_M"}); !ok || got != path {
		t.Errorf("%s, %v", got, ok)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), "big-Q4_K_M-00002-of-00003.gguf")); err != nil {
		t.Fatal(err)
	}
	if got, ok := h.Cached(Spec{repo, "Q4_K_M"}); ok {
		t.Errorf("found without a shard: %s", got)
	}
}

// A connection that is cut is taken up where it ended: in the same download, and in
// another after it failed or was cancelled.
func TestCutAndResumed(t *testing.T) {
	const size = 2_500_000
	files := map[string][]byte{"m.gguf": content(size)}
	s, h := script(t, files)
	s.cutAfter = []int{1_000_000, 0, 0, 500_000}
	path, err := fetched(t, h, repo)
	if err != nil {
		t.Fatal(err)
	}
	same(t, path, files["m.gguf"])
	var ranges []string
	for _, r := range s.requests {
		if rest, ok := strings.CutPrefix(r, "cdn /bytes"); ok {
			ranges = append(ranges, strings.TrimSpace(rest))
		}
	}
	if len(ranges) != 5 || ranges[0] != "" || !strings.HasPrefix(ranges[1], "bytes=") || ranges[1] == "bytes=0-" {
		t.Errorf("asked for %q", ranges)
	}

	s, h = script(t, files)
	s.cutAfter = []int{700_000, 0, 0, 0, 0, 0}
	if _, err := fetched(t, h, repo); err == nil || !strings.Contains(err.Error(), "connection ended after") || strings.Contains(err.Error(), "signature") {
		t.Error(err)
	}
	p, err := h.Plan(context.Background(), Spec{Repo: repo})
	if err != nil || p.Left >= size || p.Left == 0 {
		t.Fatalf("%d bytes are left of %d, %v", p.Left, size, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	checked := false
	_, err = h.Download(ctx, p, func(p Progress) {
		checked = checked || p.Checking
		if !p.Checking {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !checked {
		t.Errorf("cancelled: %v; what was there was checked: %v", err, checked)
	}
	if path, err = fetched(t, h, repo); err != nil {
		t.Fatal(err)
	}
	same(t, path, files["m.gguf"])

	// A hub that does not understand ranges sends all of it again.
	s, h = script(t, files)
	s.cutAfter, s.ranges = []int{700_000}, false
	if path, err = fetched(t, h, repo); err != nil {
		t.Fatal(err)
	}
	same(t, path, files["m.gguf"])
}

// Bytes that are not those that the hub told of become no model.
func TestWrongBytes(t *testing.T) {
	for _, small := range []bool{false, true} {
		s, h := script(t, map[string][]byte{"m.gguf": content(5000)})
		s.wrong, s.small["m.gguf"] = true, small
		if _, err := fetched(t, h, repo); !errors.Is(err, errHash) {
			t.Error(err)
		}
		if _, ok := h.Cached(Spec{Repo: repo}); ok {
			t.Error("it is in the cache")
		}
		s.wrong = false
		path, err := fetched(t, h, repo)
		if err != nil {
			t.Fatal(err)
		}
		same(t, path, s.files["m.gguf"])
	}
}

func TestNoSpace(t *testing.T) {
	s, h := script(t, map[string][]byte{"m.gguf": content(5000)})
	h.free = func(string) (int64, bool) { return 4000 + spare, true }
	_, err := fetched(t, h, repo)
	if none := new(NoSpaceError); !errors.As(err, &none) || none.Need != 5000+spare || !strings.Contains(err.Error(), h.cache) {
		t.Error(err)
	}
	if len(s.requests) != 1 {
		t.Errorf("bytes were asked for: %q", s.requests)
	}
}

// What the hub refuses is said in a line that tells what to do.
func TestRefusals(t *testing.T) {
	s, h := script(t, map[string][]byte{"a-Q8_0.gguf": content(10), "b-Q6_K.gguf": content(11), "c-Q6_K.gguf": content(12), "../../evil-IQ1_S.gguf": content(13)})
	for name, c := range map[string]struct {
		set  func()
		spec string
		says []string
	}{
		"no such repository": {func() {}, "someone/else", []string{"there is no someone/else", "TOKEN does not open it"}},
		"no token":           {func() { h.token = "" }, "someone/else", []string{"set HF_TOKEN"}},
		"not public":         {func() { s.token = "another" }, repo, []string{"not public"}},
		"gated":              {func() { s.gated = true }, repo, []string{"accept its terms at " + s.hub.URL + "/" + repo}},
		"several":            {func() {}, repo, []string{"has 3 models", "a-Q8_0.gguf, b-Q6_K.gguf, c-Q6_K.gguf"}},
		"two alike":          {func() {}, repo + ":Q6_K", []string{"2 models for Q6_K", "b-Q6_K.gguf, c-Q6_K.gguf"}},
		"no such quant":      {func() {}, repo + ":Q2_K", []string{"has no Q2_K"}},
		"part of a quant":    {func() {}, repo + ":6_K", []string{"has no 6_K"}},
		"outside":            {func() {}, repo + ":IQ1_S", []string{"has no IQ1_S"}},
	} {
		s.token, s.gated, h.token = "", false, secret
		c.set()
		_, err := fetched(t, h, c.spec)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	for _, bad := range []string{"", "one", "a/b/c", "../x", "a/..", "a/b:", "a b/c", "a/b--c"} {
		if sp, err := ParseSpec(bad); err == nil {
			t.Errorf("%q is %+v", bad, sp)
		}
	}
	s.hub.Close()
	if _, err := fetched(t, h, repo); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	t.Setenv(EndpointVariable, "not a URL")
	if _, err := FromEnvironment(); err == nil {
		t.Error("an endpoint that is none")
	}
}

// Of two names for a quantisation the plainer one is meant.
func TestChooseAmongDynamicQuants(t *testing.T) {
	files := []File{{Path: "M-Q4_K_XL.gguf"}, {Path: "M-UD-Q4_K_XL.gguf"}}
	for quant, want := range map[string]string{"Q4_K_XL": "M-Q4_K_XL.gguf", "UD-Q4_K_XL": "M-UD-Q4_K_XL.gguf"} {
		if got, err := choose(Spec{repo, quant}, files); err != nil || got.Name() != want {
			t.Errorf("%s: %+v, %v", quant, got, err)
		}
	}
}
