//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"bmoe/internal/cli"
	"bmoe/internal/conform"
)

// evil is what a prompt, a file or its name may say to a terminal.
const evil = "\x1b]0;evil\x07\u009b31m\u202e\U000E0041\x7f"

// rawIn returns the first character of what the program wrote that is none to
// show, with what is around it. Progress begins its line anew.
func rawIn(written []byte) string {
	written = bytes.ReplaceAll(written, []byte("\r\x1b[K"), nil)
	for at, r := range string(written) {
		if r != '\n' && r != '\r' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r >= 0xE0000 && r <= 0xE0FFF) {
			return string(written[max(0, at-60):min(len(written), at+20)])
		}
	}
	return ""
}

// speaking is the demo model with other tokens for some of its words: what it
// answers holds escape sequences and characters that turn the text around.
func speaking(t *testing.T) string {
	t.Helper()
	b := readTest(t, filepath.Join("..", "..", "engine", "demo", "tiny-stories-moe-q8_0.gguf"))
	for word, other := range map[string]string{
		"\u0120the":  "\u011b[3m",          // ESC [ 3 m, in the letters that stand for bytes
		"\u0120to":   "\u00c2\u013d",       // U+009B
		"\u0120with": "\u00e2\u0122\u00ae", // U+202E
	} {
		token := append([]byte{byte(len(word)), 0, 0, 0, 0, 0, 0, 0}, word...)
		if bytes.Count(b, token) != 1 {
			t.Fatalf("%d tokens %q", bytes.Count(b, token), word)
		}
		b = bytes.Replace(b, token, append(token[:8:8], other...), 1)
	}
	return temp(t, "speaking.gguf", b)
}

// Nothing raw reaches the terminal, whoever said it.
func TestNothingRawReachesTheTerminal(t *testing.T) {
	dir := filepath.Join(conform.TempDir(t), "dir"+evil)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skipf("no such name here: %v", err)
	}
	notAModel := filepath.Join(dir, "text.gguf")
	template := filepath.Join(dir, "template.jinja")
	for path, text := range map[string]string{notAModel: "not a model " + evil, template: "{{ raise_exception('" + evil + "') }}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		code int
		args []string
		want string
	}{
		{"no such model", cli.Failed, []string{filepath.Join(dir, "none.gguf"), "-p", "x"}, "none.gguf"},
		{"not a model", cli.Failed, []string{notAModel, "-p", "x"}, "text.gguf"},
		{"template", cli.Failed, []string{"--chat-template-file", template, "-p", "x"}, "^[]0;evil"},
		{"show-prompt", cli.Done, []string{"--show-prompt", "-p", evil}, "^[]0;evil^G"},
		{"flag", cli.Usage, []string{"--no" + evil}, "^[]0;evil"},
		{"answer", cli.Done, []string{speaking(t), "-p", "Tell me a story about a dog.", "-n", "60", "--temp", "0"}, "^[[3m"},
		{"plain", cli.Done, []string{speaking(t), "--plain", "-n", "60", "--temp", "0"}, "^[[3m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := inTerminal(t, 100, 30, c.args...)
			if c.name == "plain" {
				x.waitForText("you: ")
				x.types("Tell me a story about a dog.\n")
				x.waitForText("tok/s")
				x.types("\x04")
			}
			x.quit("", c.code)
			x.waitForText(c.want)
			if raw := rawIn(x.raw()); raw != "" {
				t.Errorf("written: %q", raw)
			}
		})
	}
}

// On the screen the program's own sequences stand between; what others say is
// known by its words.
func TestNothingRawReachesTheScreen(t *testing.T) {
	x := inTerminal(t, 120, 30, speaking(t), "--temp", "0")
	x.waitFor("idle")
	x.types("\x1b[200~Tell me " + evil + " a story.\x1b[201~")
	x.waitFor("Tell me ?31m^? a story.") // the keys' decoder took the rest for an answer
	x.types("\r")
	x.waitFor("run 1", "idle", "^[[3m")
	x.types(keyF10)
	x.waitFor("settings that differ", "Tell me ?31m^? a story.")
	x.closes("settings that differ")
	x.quit(keyStop+keyStop, 0)
	for _, bad := range []string{"\x1b]0;", "\x1b[3m", "\u009b", "\u202e", "\U000E0041", "\x7f"} {
		if at := bytes.Index(x.raw(), []byte(bad)); at >= 0 {
			t.Errorf("written: %q", x.raw()[max(0, at-60):at+20])
		}
	}
}
