package tui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/internal/sessions"
)

// do sends a line and waits until it is done.
func (h *harness) do(s string) {
	h.t.Helper()
	h.m.prompt.Set(s)
	h.keys("enter")
	h.wait("the end of "+s, func() bool { return h.m.state == idle && h.m.queued == nil })
}

// What is typed during an answer waits for its end; Esc takes it back first, and then
// stops the answer.
func TestAMessageWaitsForTheAnswersEnd(t *testing.T) {
	h := midRun(t, 120, 40, 5)
	h.typed("next")
	h.keys("enter")
	h.wants("waiting to be sent: next", "Esc takes it back")
	h.typed("more")
	h.keys("enter")
	h.wants("one message is waiting already", "> more")
	h.keys("esc")
	h.wants("> next", "  more")
	h.keys("esc")
	h.wants("stopping")
	h.finish()
	if len(h.f.prompts) != 1 {
		t.Fatalf("sent %q", h.f.prompts)
	}
	h = midRun(t, 80, 24, 5)
	h.typed("next")
	h.keys("enter")
	h.finish()
	h.wait("the second answer", func() bool { return h.m.state == idle && len(h.m.runs.All()) == 2 })
	if h.f.prompts[1] != "next" {
		t.Errorf("sent %q", h.f.prompts)
	}
}

// seeded is a fake that samples.
func seeded() *fakeEngine {
	f := newFake()
	f.more = []backend.Setting{
		{Name: "temp", Flag: "temp", Kind: backend.Number, Most: 2, Want: "0 or more", Value: "0.7", Live: true, Help: "temperature"},
		{Name: "seed", Flag: "seed", Kind: backend.Whole, Most: 1 << 30, Want: "0 or more", Value: "1", Live: true, Help: "seed"},
	}
	return f
}

// The last message can be changed, or answered anew; the model is told nothing twice.
func TestEditAndRegenerate(t *testing.T) {
	f := seeded()
	h := start(t, 120, 40, Options{}, f)
	h.do("/edit")
	h.wants("nothing has been said yet")
	h.ask("the first")
	h.ask("the secnd")
	h.do("/edit")
	h.wants("> the secnd", "editing the last message")
	h.keys("esc")
	h.lacks("editing the last message")
	h.do("/edit")
	h.do("the second")
	roles := func() (s string) {
		for _, m := range f.Chat().Messages {
			s += m.Role[:1]
			if m.Role == "user" {
				s += "(" + m.Text + ")"
			}
		}
		return s
	}
	if got := roles(); got != "u(the first)au(the second)a" {
		t.Errorf("the conversation is %s", got)
	}
	h.said("in place of the last message:")

	h.do("/regenerate")
	h.wait("another answer", func() bool { return len(h.m.runs.All()) == 4 })
	h.said("answered anew with seed 2; before it was 1", "seed 2: applied")
	if got := roles(); got != "u(the first)au(the second)a" || f.prompts[3] != "the second" {
		t.Errorf("the conversation is %s, sent %q", got, f.prompts)
	}
	h.do("/regenerate same")
	h.said("answered anew with the same seed, 2")
	f.mu.Lock()
	f.more[0].Value = "0"
	f.mu.Unlock()
	h.m.settings = f.Settings()
	h.do("/regenerate")
	h.said("answered anew without chance (temp 0)")
	h.do("/regenerate often")
	h.wants("usage: /regenerate")

	// What is refused leaves the conversation as it was.
	f.failWith = errors.New("too long")
	h.do("/edit")
	h.do("the third")
	if got := roles(); got != "u(the first)au(the second)a" {
		t.Errorf("after a refusal the conversation is %s", got)
	}
	h.wants("> the third", "editing the last message")
}

// An answer is handed to the terminal as the model wrote it, up to what terminals take.
func TestCopyTheAnswer(t *testing.T) {
	f := newFake()
	f.script = []backend.Delta{{Reasoning: "hm"}, {Text: "**bold** `code`"}}
	h := start(t, 120, 40, Options{}, f)
	h.do("/copy")
	h.wants("no answer to copy yet")
	h.ask("hi")
	if text, ok := h.m.chat.LastAnswer(); !ok || text != "**bold** `code`" {
		t.Errorf("would copy %q", text)
	}
	h.keys("tab", "y")
	h.wants("the answer is copied, 15 characters, if the terminal allows it (OSC 52)")
	if cmd := h.m.copyAnswer(); cmd == nil || fmt.Sprintf("%v", cmd()) != "**bold** `code`" {
		t.Error("the terminal is given something else")
	}
	h.m.chat.Blocks()[1].AddText(strings.Repeat("x", mostCopied))
	if cmd := h.m.copyAnswer(); cmd != nil {
		t.Error("more is copied than terminals take")
	}
	h.wants("/export FILE writes it")
}

// A text file goes with the next message; what is none, or cannot fit, is refused.
func TestAttachAFile(t *testing.T) {
	dir := conform.TempDir(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notes := write("notes.txt", "some notes\nwith ``` in them\n\x1b[2J\n")
	h := start(t, 120, 40, Options{}, newFake())
	says := func(line string, parts ...string) {
		t.Helper()
		h.m.prompt.Set(line)
		h.keys("enter")
		if strings.Contains(line, dir) {
			h.wait("the file", func() bool { return h.m.status != "" })
		}
		h.wants(parts...)
		h.m.status = ""
	}
	says("/file", "usage: /file PATH")
	says("/file "+filepath.Join(dir, "none"), "no such file")
	says("/file "+dir, "is not a file")
	says("/file "+write("bin", "a\x00b"), "is not text")
	says("/file "+write("bad", "a\xffb"), "is not text")
	says("/file "+write("empty", " \n"), "is empty")
	says("/file "+write("big", strings.Repeat("word ", 10000)), "big has 48.8 KiB, about 12500 tokens: the context holds 4096")
	says("/file "+write("tight", strings.Repeat("word ", 4000)), "with the next message: tight, 19.5 KiB: about 5000 tokens, 4096 left", "may not fit")
	says("/file off", "no file goes with the next message")
	says("/file "+notes, "with the next message: notes.txt, 34 bytes: about 9 tokens, 4096 left")
	h.wants("/file off takes it back")
	h.ask("what is in it?")
	want := "File notes.txt:\n````\nsome notes\nwith ``` in them\n^[[2J\n````\n\nwhat is in it?"
	if got := h.f.prompts[0]; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	h.said("what is in it?\n[notes.txt, 34 bytes]")
	h.ask("and now?")
	if got := h.f.prompts[1]; got != "and now?" {
		t.Errorf("the file went with the next message too: %q", got)
	}
}

// Tab goes on with commands and with what they take.
func TestCompletion(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	tab := func(typed string, want ...string) {
		t.Helper()
		h.m.prompt.Set(typed)
		for _, w := range want {
			h.keys("tab")
			if got := h.m.prompt.Value(); got != w {
				t.Errorf("%q became %q, want %q", typed, got, w)
			}
		}
	}
	tab("/mark", "/markdown ")
	tab("/markdown o", "/markdown on", "/markdown off", "/markdown on")
	tab("/re", "/record ", "/regenerate ")
	tab("/s", "/save ", "/sessions", "/settings", "/stop", "/save ")
	tab("/overlap of", "/overlap off")
	tab("/nothing", "/nothing")
	h.wants("no command goes on like this")
	if h.m.focus != onPrompt {
		t.Error("Tab left the prompt with a command begun")
	}
	h.m.status = ""
	h.m.prompt.Set("/s")
	h.wants("Tab:", "/save", "/sessions")
	h.m.prompt.Set("/lanes ")
	h.wants("/lanes [N]  readers")
	h.m.prompt.Set("no command")
	h.keys("tab")
	if h.m.focus != onPanes {
		t.Error("Tab stays in a prompt without a command")
	}
}

// What was sent comes back in the next session, if sessions are kept.
func TestPromptsOverSessions(t *testing.T) {
	store := sessions.Open(conform.TempDir(t))
	h := start(t, 80, 24, Options{Sessions: store}, newFake())
	h.ask("the first")
	for range 1000 {
		if all, err := store.Prompts(); err != nil || len(all) == 1 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	h = start(t, 80, 24, Options{Sessions: store}, newFake())
	h.send(h.m.earlierPrompts()())
	h.typed("draft")
	h.keys("up")
	if got := h.m.prompt.Value(); got != "the first" {
		t.Errorf("Up brings %q", got)
	}
	h.keys("down")
	if got := h.m.prompt.Value(); got != "draft" {
		t.Errorf("the draft became %q", got)
	}
	if cmd := start(t, 80, 24, Options{}, newFake()).m.keepPrompt("secret"); cmd != nil {
		t.Error("a prompt is kept with --no-save")
	}
}

// The chat says once that the context fills up.
func TestAFullContextIsTold(t *testing.T) {
	f := newFake()
	f.s.Ctx = 180
	h := start(t, 120, 40, Options{}, f)
	h.ask("one")
	h.said("the context is 82 % full, 147 of 180 tokens")
	h.ask("two")
	n := 0
	for _, b := range h.m.chat.Blocks() {
		n += strings.Count(b.Text(), "the context is 82 % full")
	}
	if n != 1 {
		t.Errorf("told %d times", n)
	}
}

// The chat with a file that waits, with a message being edited, and with a command
// begun.
func TestChatLines(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			name := fmt.Sprintf("-%dx%d", size.w, size.h)
			if ascii {
				name += "-ascii"
			}
			h := start(t, size.w, size.h, Options{ASCII: ascii}, told())
			h.ask("Why is this laptop slow?")
			h.send(fileMsg{a: attachment{"notes.txt", strings.Repeat("word ", 700)}})
			h.m.status = ""
			golden(t, "file"+name, h.screen())
			h.do("/file off")
			h.m.status = ""
			h.m.prompt.Set("/s")
			golden(t, "completion"+name, h.screen())
			h.do("/edit")
			golden(t, "edit"+name, h.screen())
			h.keys("esc", "ctrl+f")
			h.typed("lanes")
			golden(t, "find"+name, h.screen())
			h.keys("tab")
			golden(t, "token-in-text"+name, h.screen())
		}
	}
}
