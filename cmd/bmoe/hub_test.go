package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/cli"
	"bmoe/internal/conform"
	"bmoe/internal/hub"
)

// A model named by its repository is downloaded once and answers, then and without a
// network; what it takes is said before.
func TestModelOfTheHub(t *testing.T) {
	model := readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe.gguf"))
	sum := sha256.Sum256(model)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch r.URL.Path {
		case "/api/models/some/one/revision/main":
			fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"one-F32.gguf","lfs":{"sha256":%q,"size":%d}}]}`, commit, hex.EncodeToString(sum[:]), len(model))
		case "/some/one/resolve/" + commit + "/one-F32.gguf":
			w.Write(model)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	t.Setenv(hub.EndpointVariable, server.URL)
	t.Setenv(hub.CacheVariable, conform.TempDir(t))
	t.Setenv(hub.TokenVariable, "")
	first := succeeds(t, "--hf", "some/one", "-p", "abc", "-n", "4", "--raw", "--temp", "0")
	if first.stdout == "" || !strings.Contains(first.stderr, "bmoe: downloading one-F32.gguf, ") || !strings.Contains(first.stderr, "of memory") {
		t.Errorf("%+v", first)
	}
	server.Close()
	n := asked
	again := succeeds(t, "--hf", "some/one:F32", "-p", "abc", "-n", "4", "--raw", "--temp", "0")
	if again.stdout != first.stdout || asked != n || strings.Contains(again.stderr, "downloading") {
		t.Errorf("%+v", again)
	}
	for _, args := range [][]string{{"--hf", "one"}, {"--hf", "some/one", "model.gguf"}} {
		if r := bmoe(t, append(args, "-p", "a")...); r.code != cli.Usage {
			t.Errorf("%q: %+v", args, r)
		} else {
			oneComplaint(t, r.stderr)
		}
	}
	if r := bmoe(t, "--hf", "some/other", "-p", "a"); r.code != cli.Failed {
		t.Errorf("%+v", r)
	} else {
		oneComplaint(t, r.stderr)
	}
	if left, err := os.ReadDir(filepath.Join(os.Getenv(hub.CacheVariable), "models--some--one", "blobs")); len(left) != 1 {
		t.Errorf("blobs: %v, %v", left, err)
	}
}
