package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/internal/durable"
)

// clock is a time of day that goes on by a minute each time it is asked.
func clock() func() time.Time {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Minute); return now }
}

func store(t *testing.T, dir string) *Store {
	st := Open(dir)
	st.now = clock()
	return st
}

func chat(question string) *Session {
	return &Session{Model: Model{Path: "/models/a.gguf", Name: "A"},
		Chat:       backend.Chat{Messages: []backend.Message{{Role: "user", Text: question}, {Role: "assistant", Text: "Yes.", Reasoning: "Hm."}}},
		Transcript: []Entry{{From: FromUser, Text: question}, {From: FromModel, Text: "Yes.", Reasoning: "Hm."}},
		Runs:       []Run{{Name: "1", TokS: "3.16", Prompt: question}},
	}
}

func remembers(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func save(t *testing.T, st *Store, s *Session, state func(io.Writer) error) Outcome {
	t.Helper()
	out, err := st.Save(s, state)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stateOf(t *testing.T, st *Store, s *Session) string {
	t.Helper()
	r, err := st.State(s)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func files(t *testing.T, dir, ending string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ending) {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestSaveAndFind(t *testing.T) {
	dir := filepath.Join(conform.TempDir(t), "se[ss]ions") // a folder that is a pattern, too
	st := store(t, dir)
	if _, _, err := st.Find(""); !errors.Is(err, ErrNone) {
		t.Errorf("no session: %v", err)
	}
	a, b := chat("Why is this laptop slow?"), chat("Tell me\na story \x1b[31mabout a dog that is so long that it does not fit")
	if out := save(t, st, a, remembers("first")); out.Name != "Why is this laptop slow?" || out.Forked || out.NoState != nil {
		t.Errorf("%+v", out)
	}
	save(t, st, b, nil)
	if strings.ContainsAny(b.Name, "\n\x1b") || len(b.Name) > mostName+3 {
		t.Errorf("the name is %q", b.Name)
	}
	a.Chat.Messages = append(a.Chat.Messages, backend.Message{Role: "user", Text: "And now?"})
	save(t, st, a, remembers("second"))
	if got := files(t, dir, stateEnding); len(got) != 1 {
		t.Errorf("states: %v", got)
	}
	other := store(t, dir) // another start of the program
	for name, want := range map[string]*Session{"": a, "why": a, "WHY IS this laptop slow?": a, "Tell": b, b.id: b} {
		got, notes, err := other.Find(name)
		if err != nil || len(notes) > 0 || got.id != want.id || got.Name != want.Name || !slices.Equal(got.Chat.Messages, want.Chat.Messages) ||
			!slices.Equal(got.Transcript, want.Transcript) || !slices.Equal(got.Runs, want.Runs) || got.Model != want.Model {
			t.Errorf("%q: %+v, %v, %v", name, got, notes, err)
		}
	}
	if got := stateOf(t, other, a); got != "second" {
		t.Errorf("it remembers %q", got)
	}
	if got := stateOf(t, other, b); got != ErrNoState.Error() {
		t.Errorf("it remembers %q", got)
	}
	if _, _, err := other.Find("nothing"); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Error(err)
	}
	save(t, st, chat("Why not?"), nil)
	if _, _, err := other.Find("Why "); err == nil || !strings.Contains(err.Error(), "2 sessions begin") {
		t.Error(err)
	}
	for _, name := range files(t, dir, "") {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestRenameAndDelete(t *testing.T) {
	dir := conform.TempDir(t)
	st := store(t, dir)
	a := chat("one")
	save(t, st, a, remembers("x"))
	if err := st.Rename(a.id, " \n"); err == nil {
		t.Error("renamed to nothing")
	}
	if err := st.Rename(a.id, "another\nname"); err != nil {
		t.Fatal(err)
	}
	// Who has it open goes on with the new name, and may change it again.
	if out := save(t, st, a, remembers("y")); out.Name != "another name" || out.Forked {
		t.Errorf("%+v", out)
	}
	a.Name = "third"
	if out := save(t, st, a, nil); out.Name != "third" || out.Forked {
		t.Errorf("%+v", out)
	}
	if err := st.Delete(a.id); err != nil {
		t.Fatal(err)
	}
	if all := append(files(t, dir, ending), files(t, dir, stateEnding)...); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
	if err := st.Delete(a.id); err == nil {
		t.Error("deleted twice")
	}
	save(t, st, a, nil) // who has it open loses nothing
	if got, _, err := st.Find("third"); err != nil || got.id != a.id {
		t.Error(got, err)
	}
}

// Two programs that go on with one session both keep what they did.
func TestTwoProgramsSaveOneSession(t *testing.T) {
	dir := conform.TempDir(t)
	st, other := store(t, dir), store(t, dir)
	save(t, st, chat("one"), remembers("start"))
	a, _, err := st.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := other.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	a.Transcript = append(a.Transcript, Entry{From: FromUser, Text: "by a"})
	b.Transcript = append(b.Transcript, Entry{From: FromUser, Text: "by b"})
	outs := make(chan Outcome, 2)
	for st, s := range map[*Store]*Session{st: a, other: b} {
		go func() {
			out, err := st.Save(s, remembers(s.Transcript[2].Text))
			if err != nil {
				t.Error(err)
			}
			outs <- out
		}()
	}
	one, two := <-outs, <-outs
	if one.Forked == two.Forked || one.Name == two.Name {
		t.Errorf("%+v, %+v", one, two)
	}
	for _, s := range []*Session{a, b} {
		got, _, err := store(t, dir).Find(s.id)
		if err != nil || got.Transcript[2] != s.Transcript[2] || stateOf(t, st, got) != s.Transcript[2].Text {
			t.Errorf("%s: %+v, %v", s.Name, got, err)
		}
	}
	if out := save(t, other, b, nil); out.Forked { // from now on they are two
		t.Errorf("%+v", out)
	}
}

// A full drive: what was saved stays, and the error says that nothing was saved now.
// Where there is room for the conversation only, that is kept.
func TestFullDrive(t *testing.T) {
	dir := conform.TempDir(t)
	st := store(t, dir)
	s := chat("one")
	save(t, st, s, remembers("first"))
	noSpace := errors.New("no space left on device")
	fails := stateEnding
	st.write = func(path string, fill func(io.Writer) error) error {
		return durable.Write(path, func(w io.Writer) error {
			if strings.HasSuffix(path, fails) {
				io.WriteString(w, "half of")
				return noSpace
			}
			return fill(w)
		})
	}
	s.Chat.Messages[0].Text = "two"
	if out := save(t, st, s, remembers("second")); !errors.Is(out.NoState, noSpace) {
		t.Errorf("%+v", out)
	}
	got, _, err := st.Find("one")
	if err != nil || got.Chat.Messages[0].Text != "two" || stateOf(t, st, got) != ErrNoState.Error() {
		t.Errorf("%+v, %v", got, err)
	}
	st.write = durable.Write
	save(t, st, s, remembers("third"))
	st.write = func(path string, fill func(io.Writer) error) error {
		if strings.HasSuffix(path, ending) {
			return noSpace
		}
		return durable.Write(path, fill)
	}
	s.Chat.Messages[0].Text = "four"
	if _, err := st.Save(s, remembers("fourth")); !errors.Is(err, noSpace) || !strings.Contains(err.Error(), "not saved") {
		t.Error(err)
	}
	got, _, err = st.Find("one")
	if err != nil || got.Chat.Messages[0].Text != "two" || stateOf(t, st, got) != "third" {
		t.Errorf("%+v, %v", got, err)
	}
	if left := files(t, dir, stateEnding); len(left) != 1 {
		t.Errorf("states: %v", left)
	}
}

// What is damaged is named and kept aside; what a later version wrote is left alone.
func TestDamagedSessions(t *testing.T) {
	dir := conform.TempDir(t)
	st := store(t, dir)
	good := chat("good")
	save(t, st, good, nil)
	later := fmt.Sprintf(`{"version": %d, "name": "later", "revision": "1"}`, version+1)
	outside := `{"version": 1, "name": "x", "revision": "1", "state_file": "../../passwd.state"}`
	for name, text := range map[string]string{"a.json": "{\"version\": 1, \"na", "b.json": "", "c.json": later, "d.json": outside, "e.json": "[]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, notes, err := st.Find("")
	if err != nil || got.id != good.id || len(notes) != 5 {
		t.Fatalf("%+v, %q, %v", got, notes, err)
	}
	for _, n := range notes {
		if strings.Contains(n, "c.json") != strings.Contains(n, "later version") || strings.Contains(n, "c.json") == strings.Contains(n, "kept aside as") || strings.Contains(n, "\n") {
			t.Errorf("note %q", n)
		}
	}
	if bad := files(t, dir, badEnding); !slices.Equal(bad, []string{"a.json.bad", "b.json.bad", "d.json.bad", "e.json.bad"}) {
		t.Errorf("aside: %v", bad)
	}
	if _, notes := st.List(); len(notes) != 1 {
		t.Errorf("told of again: %q", notes)
	}
}

// The folder is bounded: states of the oldest sessions go first, then the sessions.
func TestFolderIsBounded(t *testing.T) {
	dir := conform.TempDir(t)
	st := store(t, dir)
	st.mostSessions, st.mostStateBytes = 4, 25
	for i := range 6 {
		save(t, st, chat(fmt.Sprint("question ", i)), remembers("ten bytes."))
	}
	all, _ := st.List()
	var names, states []string
	for _, s := range all {
		names = append(names, s.Name[9:])
		states = append(states, stateOf(t, st, s)[:3])
	}
	if !slices.Equal(names, []string{"5", "4", "3", "2"}) || !slices.Equal(states, []string{"ten", "ten", "wha", "wha"}) {
		t.Errorf("%v, %v", names, states)
	}
	// The state that was just saved stays, however large it is.
	big := chat("big")
	save(t, st, big, remembers(strings.Repeat("x", 100)))
	if stateOf(t, st, big)[:1] != "x" {
		t.Error("the newest state is gone")
	}
	// What nobody tells of is removed once no program can still be about to.
	orphan := filepath.Join(dir, "20260101-000000-00000000-00000000"+stateEnding)
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	save(t, st, big, nil)
	if _, err := os.Stat(orphan); err != nil {
		t.Error(err)
	}
	long := st.now().Add(-2 * orphaned)
	if err := os.Chtimes(orphan, long, long); err != nil {
		t.Fatal(err)
	}
	save(t, st, big, nil)
	if _, err := os.Stat(orphan); err == nil {
		t.Error("an orphan is left")
	}
}

func TestMarkdown(t *testing.T) {
	s := chat("Why?")
	when := time.Date(2026, 12, 1, 14, 2, 0, 0, time.UTC)
	s.Transcript[0].When = when
	s.Transcript = append(s.Transcript, Entry{From: FromUs, Text: "lanes 8:\napplied"}, Entry{From: FromModel, Tag: "again", When: when, Text: "So:\n```go\nfor {"})
	s.Runs[0].Settings = "a|b"
	var b bytes.Buffer
	if err := s.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Why?\n\nA\n", "## You, 2026-12-01 14:02\n\nWhy?\n", "<summary>thoughts</summary>\n\nHm.\n", "\n> lanes 8:\n> applied\n",
		"## bmoe, again, 2026-12-01 14:02\n\nSo:\n```go\nfor {\n```\n", `| 1 | 3.16 |  |  |  |  | a\|b | Why? |`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
