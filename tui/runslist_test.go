package tui

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/internal/conform"
	"bmoe/internal/sessions"
)

// severalRuns has two questions, the first of which was answered under two settings, one
// of them twice.
func severalRuns(t *testing.T, w, h int, o Options) *harness {
	t.Helper()
	hs := afterPair(t, w, h, o)
	hs.keys("ctrl+g")
	hs.wait("the third run", func() bool { return len(hs.m.runs.All()) == 3 && hs.m.state == idle })
	hs.ask("And on Linux?")
	return hs
}

// Each question stands over its runs, with the spread of equal ones and what differed.
func TestRunsStandUnderTheirQuestion(t *testing.T) {
	for _, size := range []struct {
		w, h int
		name string
	}{{80, 24, "80x24"}, {120, 40, "120x40"}, {200, 60, "200x60"}} {
		h := severalRuns(t, size.w, size.h, Options{})
		h.keys("f10", "up")
		golden(t, "questions-"+size.name, h.screen())
	}
	h := severalRuns(t, 120, 40, Options{})
	h.keys("f10")
	s := h.screen()
	at := -1
	for _, want := range []string{"│ Why is this laptop slow?", " 1      lanes 4", " 2 x2   release-mmap on", "│ And on Linux?", "▶4      lanes 4"} {
		i := strings.Index(s, want)
		if i <= at {
			t.Errorf("%q is not below what stands before it:\n%s", want, s)
		}
		at = i
	}
	h.keys("up")
	h.wants("what differed: release-mmap on (was off)", "2 equal runs", "spread")
	h.keys("up", "up", "up")
	h.wants("▶1 ")
	h.keys("pgdown")
	h.wants("▶4 ")
}

// A note is typed on the picked run, marked in the list and kept with the session.
func TestANoteOnARun(t *testing.T) {
	store := sessions.Open(conform.TempDir(t))
	h := severalRuns(t, 120, 40, Options{Sessions: store})
	h.keys("f10", "up", "n")
	h.wants("Enter keeps the note")
	h.typed("lid openq")
	h.send(keysByName["enter"])
	h.wants("2 x2*", "note: lid openq")
	h.keys("n", "q")
	h.send(keysByName["esc"])
	h.lacks("openqq")
	h.wants("runs  ") // neither q nor Esc closed the list
	h.keys("esc")
	h.typed("/note of the last")
	h.keys("enter")
	h.wants("noted on run 4")
	h.keys("ctrl+s")
	h.wait("the save", func() bool { return strings.Contains(h.m.status, "saved as") })
	all, notes := store.List()
	if len(all) != 1 || len(notes) > 0 {
		t.Fatal(all, notes)
	}
	var kept []string
	for _, r := range all[0].Runs {
		kept = append(kept, r.Note)
	}
	if got := strings.Join(kept, ","); got != ",lid openq,of the last" {
		t.Errorf("kept notes %q", got)
	}
	h.typed("/note")
	h.keys("enter")
	h.wants("/note TEXT puts a line on the latest run")
	h.keys("f10", "n", "ctrl+u")
	h.send(keysByName["enter"])
	h.lacks("note: of the last")
}

// The list is written as CSV and as Markdown; what was not measured is empty.
func TestRunsAreWritten(t *testing.T) {
	dir := conform.TempDir(t)
	h := severalRuns(t, 120, 40, Options{Sessions: sessions.Open(dir)})
	h.typed("/note a, \"b\"")
	h.keys("enter", "f10", "w")
	h.wait("the files", func() bool { return strings.Contains(h.m.status, "written to") })
	base := filepath.Join(dir, "exports", "runs-20261130-140200")
	f, err := os.Open(base + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatal(rows, err)
	}
	cell := func(row int, name string) string {
		for i, n := range rows[0] {
			if n == name {
				return rows[row][i]
			}
		}
		t.Fatalf("no column %q in %q", name, rows[0])
		return ""
	}
	for _, c := range []struct {
		row        int
		name, want string
	}{
		{1, "run", "1"}, {3, "run", "3"}, {3, "equal_to", "2"}, {1, "question", "Why is this laptop slow?"}, {4, "note", `a, "b"`}, {1, "set_release_mmap", "off"}, {2, "set_release_mmap", "on"},
		{1, "read_p99_ms", ""}, {1, "hit_pct", "60.9"}, {1, "change", ""}, {2, "against", "1"}, {2, "text", "identical"}, {1, "when", time.Date(2026, 11, 30, 14, 2, 0, 0, time.UTC).Format(time.RFC3339)},
	} {
		if got := cell(c.row, c.name); got != c.want {
			t.Errorf("row %d, %s: %q, want %q", c.row, c.name, got, c.want)
		}
	}
	if change := cell(2, "change"); !strings.HasPrefix(change, "faster +") {
		t.Errorf("change %q", change)
	}
	text, err := os.ReadFile(base + ".md")
	if err != nil || !strings.Contains(string(text), "| 2 x2 | 4.70 |") || !strings.Contains(string(text), `| a, "b" |`) {
		t.Errorf("%v\n%s", err, text)
	}
	to := filepath.Join(dir, "runs.CSV")
	h.keys("esc")
	h.typed("/export " + to)
	h.keys("enter")
	h.wait("the table", func() bool { return strings.Contains(h.m.status, "written to "+to) })
	if b, err := os.ReadFile(to); err != nil || !strings.HasPrefix(string(b), "run,equal_to,when,") {
		t.Errorf("%v: %.80s", err, b)
	}
}

// Without a folder, without a run, and where the folder cannot be written, it says so.
func TestRunsThatCannotBeWritten(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.keys("f10", "n", "w")
	h.wants("/export FILE.csv writes the runs anywhere", "no run yet")
	dir := conform.TempDir(t)
	h = start(t, 120, 40, Options{Sessions: sessions.Open(dir)}, newFake())
	h.keys("f10", "w")
	h.wants("no run yet")
	h.keys("esc")
	h.ask("Why?")
	if err := os.WriteFile(filepath.Join(dir, "exports"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.keys("f10", "w")
	h.wait("the error", func() bool { return strings.Contains(h.m.status, "exports") })
}
