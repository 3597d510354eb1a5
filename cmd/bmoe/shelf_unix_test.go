//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
	"bmoe/internal/hub"
)

// TestChangeOfModelOnTheScreen changes from the demo to a model of a folder, chats, and
// goes on to one that is downloaded first.
func TestChangeOfModelOnTheScreen(t *testing.T) {
	model := readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe.gguf"))
	sum := sha256.Sum256(model)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	folder := filepath.Dir(temp(t, "small.gguf", readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe-yarn.gguf"))))
	home := conform.TempDir(t)
	x := inTerminalThat(t, terminalKind{w: 120, h: 40, env: []string{
		"HOME=" + home, hub.HomeVariable + "=", hub.CacheVariable + "=" + conform.TempDir(t), hub.EndpointVariable + "=" + server.URL, "OLLAMA_MODELS="}},
		"--models-dir", folder, "--temp", "0")
	x.waitFor("ask something")
	x.types("Tell me a story.\r")
	x.waitFor("run 1", "tokens,")
	x.types("\x0f")
	x.waitFor("small.gguf", "(open) the demo model", "tok/s here", "of all experts")
	x.types("small")
	x.waitFor("filter: small_", "▶ small.gguf")
	x.types("\r")
	x.waitFor("this is a new chat", "is saved as", "tiny-random-qwen3moe-yarn")
	x.types("abc\r")
	x.waitFor("run 1", "tokens,")
	x.types("\x0f")
	x.waitFor("(open) small.gguf")
	x.types("some/one")
	x.waitFor("of the Hugging Face Hub")
	x.types("\r")
	x.waitFor("one-F32.gguf, 0.5", "of memory", "Enter downloads it")
	x.types("\r")
	x.waitFor("▶ one-F32.gguf", "Hugging Face")
	x.types("\r")
	if s := x.waitFor("this is a new chat"); strings.Contains(s, "yarn  ") {
		t.Errorf("the old model is still open:\n%s", s)
	}
	x.types("\x03\x03")
	<-x.ended
	if code := x.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
