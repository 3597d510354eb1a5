package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/cli"
	"bmoe/internal/conform"
	"bmoe/internal/userdir"
)

// typed runs the line chat with what somebody types.
func typed(t *testing.T, input string, args ...string) result {
	t.Helper()
	cmd := program(append([]string{"--plain", "-n", "8", "--temp", "0"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	r := finish(t, cmd)
	if r.code != 0 {
		t.Fatalf("%q: %+v", args, r)
	}
	return r
}

// A chat is kept when the program ends. The next start goes on with it and with what
// the model remembers, with the same model, and says the same as if it had not ended.
func TestChatIsKept(t *testing.T) {
	t.Setenv(userdir.StateVariable, conform.TempDir(t))
	whole := typed(t, dogStory+"\nAnd then?\n", "--no-save")
	if r := succeeds(t, "--sessions"); !strings.Contains(r.stdout, "no saved session") {
		t.Errorf("kept all the same: %q", r.stdout)
	}
	first := typed(t, dogStory+"\n")
	if !strings.Contains(first.stdout, `[saved as "`+dogStory+`"]`) {
		t.Error(first.stdout)
	}
	second := typed(t, "And then?\n", "--resume")
	answer := func(r result) string {
		text := r.stdout[strings.LastIndex(r.stdout, "bmoe: "):]
		return text[:strings.Index(text, "\n")]
	}
	if answer(second) != answer(whole) || answer(second) == answer(first) || strings.Contains(second.stdout, "anew") {
		t.Errorf("it goes on with %q, not %q", answer(second), answer(whole))
	}
	var all []keptSession
	r := succeeds(t, "--sessions", "--json")
	if parseJSON(t, r.stdout, &all); len(all) != 1 || all[0].Questions != 2 || all[0].StateBytes == 0 || all[0].Name != dogStory {
		t.Errorf("%+v", all)
	}
	typed(t, "", "--resume=tell me a", demoModel(t))
	bad := filepath.Join(os.Getenv(userdir.StateVariable), "sessions", "x.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := succeeds(t, "--sessions"); !strings.Contains(r.stderr, "x.json.bad") || !strings.Contains(r.stdout, dogStory) {
		t.Errorf("%+v", r)
	}
	for code, args := range map[int][]string{
		cli.Failed: {"--plain", "--resume=nothing"},
		cli.Usage:  {"--plain", "--resume", "tell me"},
	} {
		if r := bmoe(t, args...); r.code != code {
			t.Errorf("%q: %+v", args, r)
		} else if line := oneComplaint(t, r.stderr); !strings.Contains(line, "--resume") {
			t.Error(line)
		}
	}
	if r := bmoe(t, "--plain", "--resume", "--no-save"); r.code != cli.Usage {
		t.Errorf("%+v", r)
	}
}
