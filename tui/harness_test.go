package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// harness drives the root model without a terminal and without its ticker:
// tests say when time passes.
type harness struct {
	t    *testing.T
	m    *Model
	f    *fakeEngine
	time time.Time
	msgs chan tea.Msg
	quit bool
	let  int // deltas that were let through
}

// start returns a screen of w x h with its engine open.
func start(t *testing.T, w, h int, o Options, f *fakeEngine) *harness {
	hs := loadingScreen(t, w, h, o, f)
	hs.wait("the engine to open", func() bool { return hs.m.state == idle })
	hs.tick()
	return hs
}

// loadingScreen is start, with the result of loading still to be taken.
func loadingScreen(t *testing.T, w, h int, o Options, f *fakeEngine) *harness {
	t.Helper()
	if o.Open == nil {
		o.Open = func(func(string, float64)) (backend.Backend, error) { return f, nil }
	}
	m := newModel(o, term.Caps{})
	hs := &harness{t: t, m: m, f: f, time: time.Date(2026, 11, 30, 14, 2, 0, 0, time.UTC), msgs: make(chan tea.Msg, 64)}
	m.now = func() time.Time { return hs.time }
	m.tock = func(time.Duration, func(time.Time) tea.Msg) tea.Cmd { return nil }
	t.Cleanup(func() { m.keep.prompts.close(5 * time.Second) }) // before the folder goes
	hs.exec(m.open())
	hs.send(tea.WindowSizeMsg{Width: w, Height: h})
	return hs
}

// exec runs a command beside the test; its message waits to be taken.
func (h *harness) exec(c tea.Cmd) {
	if c == nil {
		return
	}
	go func() {
		switch msg := c().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				h.exec(c)
			}
		default:
			h.msgs <- msg
		}
	}()
}

func (h *harness) send(msg tea.Msg) {
	_, cmd := h.m.Update(msg)
	h.exec(cmd)
}

// wait takes messages until something is so.
func (h *harness) wait(what string, until func() bool) {
	h.t.Helper()
	deadline := time.After(10 * time.Second)
	for !until() {
		select {
		case msg := <-h.msgs:
			if _, ok := msg.(tea.QuitMsg); ok {
				h.quit = true
			}
			h.send(msg)
		case <-deadline:
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// tick samples the engine, as the ticker would.
func (h *harness) tick() {
	s := new(profile.Snapshot)
	h.f.Snapshot(s)
	var experts *profile.ExpertMap
	if h.m.mapShown() {
		experts = look(h.f, &profile.ExpertMap{})
	}
	h.send(tickMsg{h.m.tickSeq, s, experts})
}

var keysByName = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace}, "tab": {Code: tea.KeyTab}, "space": {Code: tea.KeySpace, Text: " "},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "shift+enter": {Code: tea.KeyEnter, Mod: tea.ModShift},
	"ctrl+end": {Code: tea.KeyEnd, Mod: tea.ModCtrl}, "ctrl+home": {Code: tea.KeyHome, Mod: tea.ModCtrl},
	"f1": {Code: tea.KeyF1}, "f2": {Code: tea.KeyF2}, "f3": {Code: tea.KeyF3}, "f4": {Code: tea.KeyF4}, "f5": {Code: tea.KeyF5},
	"f6": {Code: tea.KeyF6}, "f7": {Code: tea.KeyF7}, "f8": {Code: tea.KeyF8}, "f9": {Code: tea.KeyF9}, "f10": {Code: tea.KeyF10},
}

func (h *harness) keys(names ...string) {
	h.t.Helper()
	for _, n := range names {
		k, ok := keysByName[n]
		switch {
		case ok:
		case strings.HasPrefix(n, "ctrl+"):
			k = tea.KeyPressMsg{Code: rune(n[5]), Mod: tea.ModCtrl}
		case len(n) == 1:
			k = tea.KeyPressMsg{Code: rune(n[0]), Text: n}
		default:
			h.t.Fatalf("no key %q", n)
		}
		h.send(k)
	}
}

func (h *harness) typed(s string) {
	for _, r := range s {
		h.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// sameThought gives every reasoning the same length: it is measured by the
// clock, which tests do not hold.
func (h *harness) sameThought() {
	for _, b := range h.m.chat.Blocks() {
		b.SetThought(3_200_000_000, false)
	}
}

// ask sends a prompt and waits for the whole answer.
func (h *harness) ask(text string) {
	h.t.Helper()
	h.typed(text)
	h.keys("enter")
	h.wait("the answer", func() bool { return h.m.state == idle })
	h.tick()
	h.sameThought()
}

// screen is the frame without colours.
func (h *harness) screen() string {
	h.t.Helper()
	f := h.m.frame()
	lines := strings.Split(f, "\n")
	if len(lines) != h.m.h {
		h.t.Errorf("%d rows on a screen of %d", len(lines), h.m.h)
	}
	for i, l := range lines {
		if w := h.m.th.Width(l); w != h.m.w {
			h.t.Errorf("row %d has %d columns of %d: %q", i, w, h.m.w, ansi.Strip(l))
		}
	}
	return ansi.Strip(f)
}

func (h *harness) wants(parts ...string) {
	h.t.Helper()
	s := h.screen()
	for _, p := range parts {
		if !strings.Contains(s, p) {
			h.t.Errorf("%q is not on the screen:\n%s", p, s)
		}
	}
}

// said checks the text of the chat, however it is wrapped.
func (h *harness) said(parts ...string) {
	h.t.Helper()
	var all strings.Builder
	for _, b := range h.m.chat.Blocks() {
		all.WriteString(b.Text() + "\n")
	}
	for _, p := range parts {
		if !strings.Contains(all.String(), p) {
			h.t.Errorf("%q is not in the chat:\n%s", p, all.String())
		}
	}
}

func (h *harness) lacks(parts ...string) {
	h.t.Helper()
	s := h.screen()
	for _, p := range parts {
		if strings.Contains(s, p) {
			h.t.Errorf("%q is on the screen:\n%s", p, s)
		}
	}
}

// golden compares with a file under testdata; trailing blanks do not count.
func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update rewrites it\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
