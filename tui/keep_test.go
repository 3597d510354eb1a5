package tui

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/internal/sessions"
	"bmoe/tui/view"
)

// keeps returns a screen that keeps its chats in a folder.
func keeps(t *testing.T, dir string, f *fakeEngine) *harness {
	return start(t, 120, 40, Options{Sessions: sessions.Open(dir), Model: "/models/a.gguf"}, f)
}

// command types a command and waits until it is done.
func (h *harness) command(text string) {
	h.t.Helper()
	h.typed(text)
	h.keys("enter")
	h.idle()
}

// idle waits until the engine and the folder have nothing to do.
func (h *harness) idle() {
	h.t.Helper()
	h.wait("the end of it", func() bool { return h.m.state == idle && h.m.queuedSave == nil })
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, notes := sessions.Open(dir).List()
	if len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	for _, s := range all {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return out
}

// A chat is kept, and another start of the program goes on with it: what was said is on
// the screen, and the engine knows it.
func TestChatIsKeptAndTakenUp(t *testing.T) {
	dir := conform.TempDir(t)
	h := keeps(t, dir, newFake())
	h.ask("Why is this laptop slow?")
	h.command("/save My Laptop")
	h.wants(`saved as "My Laptop"`)
	h.ask("And now?")
	h.keys("ctrl+s")
	h.idle()
	if got := names(t, dir); !slices.Equal(got, []string{"My Laptop"}) {
		t.Fatalf("kept: %q", got)
	}
	other := keeps(t, dir, newFake())
	other.command("/resume my lap")
	other.wants(`"My Laptop" goes on: 2 questions`, "And now?")
	other.said("Why is this laptop slow?", answerText)
	if want := h.f.Chat(); !slices.Equal(other.f.Chat().Messages, want.Messages) || other.f.state != "state of 4" {
		t.Errorf("the engine took up %+v with %q", other.f.Chat(), other.f.state)
	}
	var thoughts int
	for _, b := range other.m.chat.Blocks() {
		if b.Reasoning() != "" && b.Thought() == 3_200_000_000 {
			thoughts++
		}
	}
	if thoughts != 2 {
		t.Errorf("%d answers have their thoughts", thoughts)
	}
	other.keys("ctrl+g")
	other.wants("nothing to repeat yet")
	other.ask("Go on.")
	if line, err := other.m.keepOnLeaving(); err != nil || !strings.Contains(line, `saved as "My Laptop"`) {
		t.Errorf("%q, %v", line, err)
	}
	s, _, err := sessions.Open(dir).Find("")
	if err != nil || s.Questions() != 3 || len(s.Runs) != 3 || s.Model.Path != "/models/a.gguf" || s.Runs[0].TokS == "" {
		t.Errorf("%+v, %v", s, err)
	}
	if line, err := other.m.keepOnLeaving(); line != "" || err != nil {
		t.Errorf("kept twice: %q, %v", line, err)
	}
	third := start(t, 120, 40, Options{Sessions: sessions.Open(dir), Resume: new(string)}, newFake())
	third.said("Go on.")
}

// A new chat leaves the one before in the folder, and so does another that is taken up.
func TestNewChatKeepsTheOneBefore(t *testing.T) {
	dir := conform.TempDir(t)
	h := keeps(t, dir, newFake())
	h.keys("ctrl+n")
	h.idle()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("an empty chat is kept: %q", got)
	}
	h.ask("first")
	h.keys("ctrl+n")
	h.idle()
	h.wants(`new chat; the one before is saved as "first"`)
	h.ask("second")
	h.command("/resume first")
	h.said("first")
	if got := names(t, dir); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("kept: %q", got)
	}
	if h.f.newChats != 2 {
		t.Errorf("%d new chats", h.f.newChats)
	}
}

// Where nothing can be written, no chat is lost: it stays on the screen.
func TestFullDriveLosesNoChat(t *testing.T) {
	dir := conform.TempDir(t)
	blocked := filepath.Join(dir, "a file", "sessions")
	if err := os.WriteFile(filepath.Dir(blocked), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := keeps(t, blocked, newFake())
	h.ask("first")
	h.keys("ctrl+n")
	h.idle()
	h.said("first", "the session is not saved", "this chat stays")
	if h.f.newChats != 0 {
		t.Error("the engine forgot it")
	}
	h.keys("ctrl+s")
	h.idle()
	if _, err := h.m.keepOnLeaving(); err == nil {
		t.Error("nothing is said on leaving")
	}
	h.keys("ctrl+n") // the user knows
	h.idle()
	if h.f.newChats != 1 {
		t.Error("the chat cannot be left")
	}
	off := start(t, 120, 40, Options{}, newFake())
	off.ask("first")
	off.command("/save")
	off.wants("nothing is kept")
	if line, err := off.m.keepOnLeaving(); line != "" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}

// What cannot be taken up whole says so, and goes on with what there is.
func TestStateThatIsDamaged(t *testing.T) {
	dir := conform.TempDir(t)
	f := newFake()
	h := keeps(t, dir, f)
	h.ask("first")
	f.state = "damaged"
	h.keys("ctrl+s")
	h.idle()
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := keeps(t, dir, newFake())
	other.command("/resume")
	other.said("first", "the next answer reads the conversation anew: it is damaged", "broken.json.bad")
	other.command("/resume nothing")
	other.said(`there is no session called "nothing"`, "first")
}

// A save that is asked for during an answer follows it.
func TestSaveDuringAnAnswer(t *testing.T) {
	dir := conform.TempDir(t)
	f := newFake()
	f.step = make(chan struct{})
	h := keeps(t, dir, f)
	h.typed("first")
	h.keys("enter")
	h.keys("ctrl+s")
	h.wants("saved as soon as this is over")
	close(f.step)
	h.idle()
	if got := names(t, dir); !slices.Equal(got, []string{"first"}) {
		t.Errorf("kept: %q", got)
	}
}

func TestExport(t *testing.T) {
	dir := conform.TempDir(t)
	h := keeps(t, dir, newFake())
	h.ask("Why?")
	path := filepath.Join(dir, "Chat.md")
	h.typed("/export " + path)
	h.keys("enter")
	h.wait("the file", func() bool { return strings.Contains(h.m.status, "written to") })
	b, err := os.ReadFile(path)
	for _, want := range []string{"# Why?", "## You", "Because the model file is mapped", "<summary>thoughts</summary>", "| 1 | 3.12 |"} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("no %q in %s, %v", want, b, err)
		}
	}
	h.typed("/export")
	h.keys("enter")
	h.wait("the usage", func() bool { return strings.Contains(h.m.status, "/export FILE") })
}

// The list of sessions: going on with one, another name, and deleting after a second d.
func TestListOfSessions(t *testing.T) {
	dir := conform.TempDir(t)
	h := keeps(t, dir, newFake())
	for _, text := range []string{"first", "second", "third"} {
		h.ask(text)
		h.keys("ctrl+n")
		h.idle()
	}
	listed := func() {
		h.wait("the folder", func() bool { return len(h.msgs) == 0 && !strings.Contains(h.screen(), "reading the folder") })
	}
	h.typed("/sessions")
	h.keys("enter")
	listed()
	h.wants("third", "second", "first", "3 conversations kept", "Enter goes on with it")
	h.keys("down", "r", "ctrl+u")
	h.typed("Qr")
	h.keys("space", "x")
	h.send(keysByName["enter"])
	h.wait("the name", func() bool { return strings.Contains(h.screen(), "Qr x") })
	h.keys("down", "d", "up", "d", "esc") // not twice on the same
	h.typed("/sessions")
	h.keys("enter")
	listed()
	if got := names(t, dir); !slices.Equal(got, []string{"Qr x", "first", "third"}) {
		t.Errorf("kept: %q", got)
	}
	h.keys("pgdown", "d")
	h.wants("d again deletes it for good")
	h.keys("d")
	h.wait("the deletion", func() bool { return strings.Contains(h.screen(), "2 conversations kept") })
	if got := names(t, dir); !slices.Equal(got, []string{"Qr x", "third"}) {
		t.Errorf("kept: %q", got)
	}
	h.keys("up", "up", "enter")
	h.idle()
	h.said("third")
	if h.m.views.Top() != nil {
		t.Error("the list is still open")
	}
}

// TestGoldenSessions draws the list at the sizes of the other views.
func TestGoldenSessions(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		h := start(t, size[0], size[1], Options{}, newFake())
		h.command("/sessions")
		golden(t, sized("sessions-off", size), h.screen())
		var rows []view.Session
		for i := range 45 {
			rows = append(rows, view.Session{ID: string(rune('a' + i)), Name: strings.Repeat("Why is this laptop so slow? ", i%4+1), Model: "Qwen3.6-35B-A3B-Q4_K_M",
				Saved: time.Date(2026, 11, 30, 14, i, 0, 0, time.UTC), Questions: i + 1, StateBytes: int64(i%3) * 120_000_000, Open: i == 2})
		}
		h.m.sessions.Set(rows)
		h.keys("down", "down", "d")
		golden(t, sized("sessions", size), h.screen())
		h.keys("esc")
		h.command("/sessions")
		h.m.sessions.Set(rows)
		h.keys("r", "x")
		golden(t, sized("sessions-name", size), h.screen())
	}
}

func sized(name string, size [2]int) string {
	return strings.Join([]string{name, map[int]string{80: "80x24", 120: "120x40", 200: "200x60"}[size[0]]}, "-")
}

// The chat without a screen keeps and takes up the same.
func TestPlainChatIsKept(t *testing.T) {
	dir := conform.TempDir(t)
	chat := func(input string, resume *string) string {
		t.Helper()
		var out bytes.Buffer
		err := runPlain(context.Background(), Options{Open: func(func(string, float64)) (backend.Backend, error) { return newFake(), nil }, Name: "demo", Model: "/m.gguf",
			Sessions: sessions.Open(dir), Resume: resume, Input: strings.NewReader(input), Output: &out, Errors: &out, Plain: true})
		if err != nil {
			t.Error(err)
		}
		return out.String()
	}
	md := filepath.Join(dir, "a.md")
	said := chat("Why?\n/save The Name\n/export "+md+"\nMore?\n/new\nOther?\n", nil)
	for _, want := range []string{`[saved as "The Name"]`, "[written to ", "new chat", `[saved as "Other?"]`} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if b, err := os.ReadFile(md); err != nil || !strings.Contains(string(b), "# The Name") {
		t.Errorf("%s, %v", b, err)
	}
	last := ""
	said = chat("/sessions\n/resume the\n", &last)
	for _, want := range []string{`["Other?" goes on: 1 question`, "The Name  Qwen", `["The Name" goes on: 2 questions`, "you: More?\nbmoe: Because"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}
