package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bmoe/internal/cli"
	"bmoe/internal/conform"
)

// The file gives settings their values, the command line wins over it, and a run knows
// which came from where.
func TestConfigurationFile(t *testing.T) {
	dir := conform.TempDir(t)
	path := filepath.Join(dir, "my.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := func(r result) map[string]any {
		t.Helper()
		var object struct {
			Config map[string]any `json:"config"`
		}
		parseJSON(t, r.stdout, &object)
		return object.Config
	}
	write("lanes = 2\ncache-mb = 5\nrelease-mmap = true\nio-engine = \"lanes\"\ntemp = 0.5\n")
	r := succeeds(t, "-p", "a", "-n", "2", "--json", "--config", path, "--temp", "0")
	c := config(r)
	if c["io_threads"] != 2.0 || c["cache_mb"] != 5.0 || c["release_mmap"] != true || c["temp"] != 0.0 || r.stderr != "" {
		t.Errorf("%v, %q", c, r.stderr)
	}
	said := typed(t, "/settings\n", "--config", path, "--io-threads", "4").stdout
	for _, want := range []string{"lanes 4 (flag)", "cache 5 MiB (file)", "release-mmap on (file)", "overlap on (default)", "temp 0 (flag)"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	// A model of the file lies where the file is; one of the command line wins.
	b := readTest(t, filepath.Join("..", "..", "testdata", "conformance", "models", "qwen3moe.gguf"))
	if err := os.WriteFile(filepath.Join(dir, "mine.gguf"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	write("model = 'mine.gguf'\n")
	if c := config(succeeds(t, "-p", "a", "-n", "2", "--json", "--raw", "--config", path)); c["model"] != filepath.Join(dir, "mine.gguf") {
		t.Errorf("the model is %v", c["model"])
	}
	if c := config(succeeds(t, "-p", "a", "-n", "2", "--json", "--config", path, demoModel(t))); c["model"] != demoModel(t) {
		t.Errorf("the model is %v", c["model"])
	}
	// Anything wrong leaves the whole file out, and the line is named.
	for text, want := range map[string]string{
		"lanes = 2\n\nlane = 3\n":               `my.toml:3: there is no setting "lane"`,
		"lanes = 99\n":                          "my.toml:1: lanes = \"99\": want 1 to 64",
		"lanes = 2\ntemp =\n":                   "my.toml:2: ",
		"lanes = 2\n[temp]\n":                   "my.toml:2: settings stand alone",
		"lanes = 2\n[keys]\nagin = 'f9'\n":      "my.toml:3: [keys] agin: nothing is called so",
		"lanes = 2\n[keys]\nagain = 'ctrl+n'\n": "my.toml:3: [keys] again: ctrl+n is the key of new, too",
		"theme = 'pink'\n":                      "my.toml:1: theme = pink: want auto",
		"no-mouse = 3\n":                        "my.toml:1: no-mouse = 3",
	} {
		write(text)
		r := succeeds(t, "-p", "a", "-n", "2", "--json", "--temp", "0", "--config", path)
		if line := oneComplaint(t, r.stderr); !strings.Contains(line, want) || !strings.Contains(line, "started without") {
			t.Errorf("%q: %s", text, line)
		}
		if c := config(r); c["io_threads"] != 4.0 {
			t.Errorf("%q: half of it is taken: %v", text, c)
		}
	}
	if r := bmoe(t, "-p", "a", "--config", filepath.Join(dir, "none.toml")); r.code != cli.Usage || !strings.Contains(oneComplaint(t, r.stderr), "none.toml") {
		t.Errorf("%+v", r)
	}
	// Without a name it is the user's own.
	home := conform.TempDir(t)
	own := filepath.Join(home, "bmoe")
	switch runtime.GOOS {
	case "windows":
		t.Setenv("AppData", home)
	case "darwin":
		t.Setenv("HOME", home)
		own = filepath.Join(home, "Library", "Application Support", "bmoe")
	default:
		t.Setenv("XDG_CONFIG_HOME", home)
	}
	path = filepath.Join(own, configName)
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	write("lanes = 8\n")
	if c := config(succeeds(t, "-p", "a", "-n", "2", "--json", "--temp", "0")); c["io_threads"] != 8.0 {
		t.Errorf("%v", c)
	}
}
