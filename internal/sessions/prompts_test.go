package sessions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// Prompts come back in order, across programs, and the file is bounded.
func TestPrompts(t *testing.T) {
	dir := filepath.Join(conform.TempDir(t), "new")
	st := Open(dir)
	if got, err := st.Prompts(); err != nil || len(got) != 0 {
		t.Fatalf("%q, %v of a folder that is not there", got, err)
	}
	for _, s := range []string{"one", "two\nlines", "two\nlines", "", strings.Repeat("x", mostPromptBytes+1)} {
		if err := st.AddPrompt(s); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Open(dir).Prompts(); err != nil || fmt.Sprintf("%q", got) != `["one" "two\nlines"]` {
		t.Errorf("%q, %v", got, err)
	}
	for i := range 2*mostPrompts + 10 {
		if err := st.AddPrompt(fmt.Sprint("prompt ", i)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := st.Prompts()
	if err != nil || len(got) != mostPrompts || got[mostPrompts-1] != fmt.Sprint("prompt ", 2*mostPrompts+9) {
		t.Errorf("%d prompts, %v", len(got), err)
	}
	b, err := os.ReadFile(filepath.Join(dir, promptsFile))
	if n := strings.Count(string(b), "\n"); err != nil || n > 2*mostPrompts {
		t.Errorf("%d lines, %v", n, err)
	}
	if all, notes := st.List(); len(all) != 0 || len(notes) != 0 {
		t.Errorf("the list of sessions has %d, says %q", len(all), notes)
	}
}

// A damaged line costs that line, and a torn one does not spoil the next.
func TestDamagedPrompts(t *testing.T) {
	st := Open(conform.TempDir(t))
	if err := os.WriteFile(filepath.Join(st.dir, promptsFile), []byte("\"good\"\n{not json\n\"tor"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := st.AddPrompt("new"); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Prompts(); err != nil || fmt.Sprintf("%q", got) != `["good" "new"]` {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(filepath.Join(st.dir, promptsFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(st.dir, promptsFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := st.AddPrompt("more"); err == nil {
		t.Error("a folder in place of the file is no error")
	}
}
