package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"

	tea "charm.land/bubbletea/v2"
)

// midRun returns a screen on which an answer is being written, n deltas in.
func midRun(t *testing.T, w, h, n int) *harness {
	f := newFake()
	f.step = make(chan struct{})
	hs := start(t, w, h, Options{}, f)
	hs.typed("Why is this laptop slow?")
	hs.keys("enter")
	hs.release(n)
	return hs
}

// release lets n deltas through and shows them.
func (h *harness) release(n int) {
	for range n {
		h.f.step <- struct{}{}
		h.let++
	}
	h.settled()
}

// settled waits until the engine has handed over every delta it was let make.
func (h *harness) settled() {
	h.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		h.f.mu.Lock()
		n := h.f.handed
		h.f.mu.Unlock()
		if n == h.let || time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	h.tick()
}

func (h *harness) finish() {
	h.t.Helper()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case h.f.step <- struct{}{}:
			case <-stop:
				return
			}
		}
	}()
	h.wait("the run to end", func() bool { return h.m.state == idle })
	close(stop)
	h.tick()
}

func TestTogglesOfARunWaitForItsEnd(t *testing.T) {
	h := midRun(t, 120, 40, 10)
	h.wants("F2 release-mmap off", "F3/F4 lanes 4")
	h.keys("f2", "f4", "f6", "f7")
	h.wants("F2 release-mmap on next run", "F3/F4 lanes 8 next run", "F5/F6 cache 4500 MiB next run", "F7 overlap off next run")
	if n := len(h.f.changes); n != 0 {
		t.Fatalf("%d changes reached the engine during the run", n)
	}
	h.finish()
	if len(h.f.changes) != 1 {
		t.Fatalf("%d calls of Apply, want 1", len(h.f.changes))
	}
	if want := (map[string]string{"release-mmap": "on", "lanes": "8", "cache": "4500", "overlap": "off"}); !maps.Equal(h.f.changes[0], want) {
		t.Fatalf("passed on %v", h.f.changes[0])
	}
	h.wants("release-mmap on applied", "lanes 8 applied", "cache 4500 MiB applied", "overlap off applied", "overlap off applied")
	h.said("release-mmap on: applied, lanes reopened")
	h.lacks("next run")
	h.time = h.time.Add(time.Minute)
	h.lacks("off applied", "8 applied") // old news
}

func TestAWishCanBeTakenBack(t *testing.T) {
	h := midRun(t, 120, 40, 3)
	h.keys("f2", "f4", "f2", "f3")
	h.lacks("next run")
	h.finish()
	if len(h.f.changes) != 0 {
		t.Fatalf("Apply was called with %+v", h.f.changes)
	}
}

func TestAToggleWhileIdleIsAppliedAtOnce(t *testing.T) {
	f := newFake()
	f.decline = "2 weights still point into the mapping: token_embd, output"
	h := start(t, 120, 40, Options{}, f)
	h.keys("f2")
	h.wait("the answer", func() bool { return h.m.state == idle })
	h.wants("F2 release-mmap off declined", "! release-mmap stays off: declined")
	h.said("release-mmap stays off: declined, 2 weights still point into the mapping")
}

func TestFreezeHoldsThePanes(t *testing.T) {
	h := midRun(t, 120, 40, 20)
	h.keys("tab", "space")
	h.wants("FROZEN", "decoding 20/256")
	before := strings.Join(h.m.paneColumn(54), "\n")
	h.release(10)
	h.wants("decoding 30/256") // the header goes on
	if after := strings.Join(h.m.paneColumn(54), "\n"); after != before {
		t.Errorf("the panes moved while frozen")
	}
	h.keys("space")
	h.lacks("FROZEN")
	if after := strings.Join(h.m.paneColumn(54), "\n"); after == before {
		t.Errorf("the panes did not catch up")
	}
	h.finish()
}

func TestEscStopsTheAnswer(t *testing.T) {
	h := midRun(t, 120, 40, 20)
	h.keys("esc")
	h.wait("the run to stop", func() bool { return h.m.state == idle })
	h.said("stopped", "20 tokens")
	h.lacks("failed")
	if len(h.m.runs.All()) != 1 || !errors.Is(h.m.runs.All()[0].Err, context.Canceled) {
		t.Errorf("the stopped run is not in the list")
	}
}

func TestEscClosesAViewBeforeItStops(t *testing.T) {
	h := midRun(t, 120, 40, 5)
	h.keys("f1", "esc")
	if h.m.stopping || h.m.views.Top() != nil {
		t.Fatal("Esc in the help stopped the answer")
	}
	h.finish()
}

func TestAPasteIsOneMessage(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.send(tea.PasteMsg{Content: "first\r\nsecond\rthird\n\tfourth\x1b[31m"})
	if len(f.prompts) != 0 {
		t.Fatal("the paste was sent by its own line feeds")
	}
	h.keys("enter")
	h.wait("the answer", func() bool { return h.m.state == idle })
	want := "first\nsecond\nthird\n    fourth^[[31m"
	if len(f.prompts) != 1 || f.prompts[0] != want {
		t.Fatalf("sent %q, want %q", f.prompts, want)
	}
}

func TestALongPasteIsKeptWhole(t *testing.T) {
	f := newFake()
	h := start(t, 80, 24, Options{}, f)
	lines := make([]string, 500)
	for i := range lines {
		lines[i] = fmt.Sprint("line ", i)
	}
	h.send(tea.PasteMsg{Content: strings.Join(lines, "\n")})
	h.screen()
	h.keys("enter")
	h.wait("the answer", func() bool { return h.m.state == idle })
	if len(f.prompts) != 1 || f.prompts[0] != strings.Join(lines, "\n") {
		t.Fatal("a paste of 500 lines did not arrive as one message")
	}
}

func TestNewlinesInThePrompt(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.typed("a")
	h.keys("alt+enter")
	h.typed("b")
	h.keys("ctrl+j")
	h.typed("c")
	h.keys("shift+enter")
	h.typed("d")
	h.keys("enter")
	h.wait("the answer", func() bool { return h.m.state == idle })
	if f.prompts[0] != "a\nb\nc\nd" {
		t.Fatalf("sent %q", f.prompts[0])
	}
}

func TestHistory(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.ask("one")
	h.ask("two\nlines")
	h.typed("dra")
	for _, want := range []string{"two\nlines", "two\nlines", "one", "one"} {
		h.keys("up")
		if got := h.m.prompt.Value(); got != want {
			t.Fatalf("Up shows %q, want %q", got, want)
		}
	}
	h.keys("down", "down", "down")
	if got := h.m.prompt.Value(); got != "dra" {
		t.Fatalf("the draft came back as %q", got)
	}
}

func TestCtrlCTwiceQuits(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.ask("Why?")
	h.typed("a draft")
	h.keys("ctrl+c")
	if got := h.m.prompt.Value(); got != "" || h.quit {
		t.Fatalf("Ctrl+C left the draft %q", got)
	}
	h.lacks("again quits")
	h.keys("ctrl+c")
	h.wants("Ctrl+C again quits")
	h.time = h.time.Add(armedFor + time.Second)
	h.keys("ctrl+c")
	if h.quit {
		t.Fatal("two presses far apart quit")
	}
	h.keys("ctrl+c")
	h.wait("the end", func() bool { return h.quit })
}

// Before the first run there is nothing to lose.
func TestCtrlCQuitsAtOnceWithoutARun(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.typed("a draft")
	h.keys("ctrl+c")
	if h.quit {
		t.Fatal("it quit in place of clearing the draft")
	}
	h.keys("ctrl+c")
	h.wait("the end", func() bool { return h.quit })
	if lines := h.m.farewell(); lines != nil {
		t.Errorf("it tells of runs: %q", lines)
	}
}

// q leaves what it was pressed in, never the program.
func TestQLeavesThePanes(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.keys("tab", "e", "q")
	if h.m.views.Top() != nil || h.m.focus != onPanes {
		t.Fatal("q does not close an expanded pane")
	}
	h.keys("q")
	if h.m.focus != onPrompt || h.quit {
		t.Fatal("q does not lead back to the prompt")
	}
	h.typed("q")
	if got := h.m.prompt.Value(); got != "q" {
		t.Fatalf("typed q, got %q", got)
	}
}

// Ctrl+L and the focus's return draw everything anew.
func TestRepaint(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	want := tea.ClearScreen()
	if cmd := h.m.key(tea.KeyPressMsg{Code: 'l', Mod: tea.ModCtrl}); cmd == nil || cmd() != want {
		t.Error("Ctrl+L does not repaint")
	}
	if _, cmd := h.m.Update(tea.FocusMsg{}); cmd == nil || cmd() != want {
		t.Error("the focus does not repaint")
	}
	if !h.m.View().ReportFocus {
		t.Error("the focus is not asked for")
	}
}

func TestQuitDuringAnAnswerStopsAndCloses(t *testing.T) {
	h := midRun(t, 120, 40, 5)
	h.keys("ctrl+c", "ctrl+c")
	h.wait("the end", func() bool { return h.quit })
	if err := h.m.shutDown(); err != nil {
		t.Fatal(err)
	}
	if !h.f.closed {
		t.Fatal("the engine was not closed")
	}
}

func TestAPromptSentWhileLoadingWaits(t *testing.T) {
	f := newFake()
	go1 := make(chan struct{})
	h := loadingScreen(t, 120, 40, Options{Name: "demo", Open: func(p func(string, float64)) (backend.Backend, error) {
		p("dense weights", 0.43)
		<-go1
		return f, nil
	}}, f)
	h.typed("hello")
	h.wants("> hello", "demo")
	h.keys("enter")
	h.wants("waiting")
	h.lacks("lanes 0", "cache 0") // nothing is known of them yet
	close(go1)
	h.wait("the answer", func() bool { return h.m.state == idle && len(h.m.runs.All()) == 1 })
	if f.prompts[0] != "hello" {
		t.Fatalf("sent %q", f.prompts)
	}
}

func TestCtrlCWhileLoadingQuitsAtOnce(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	h := loadingScreen(t, 120, 40, Options{Open: func(func(string, float64)) (backend.Backend, error) { <-block; return nil, errors.New("too late") }}, newFake())
	h.keys("ctrl+c")
	h.wait("the end", func() bool { return h.quit })
	if err := h.m.shutDown(); err != nil {
		t.Fatal(err)
	}
}

func TestALoadErrorEndsTheProgram(t *testing.T) {
	bad := errors.New("open x.gguf: no such file")
	h := loadingScreen(t, 120, 40, Options{Open: func(func(string, float64)) (backend.Backend, error) { return nil, bad }}, newFake())
	h.wait("the end", func() bool { return h.quit })
	if err := h.m.shutDown(); !errors.Is(err, bad) {
		t.Fatalf("returned %v", err)
	}
}

func TestARefusedPromptComesBack(t *testing.T) {
	f := newFake()
	f.failWith = errors.New("the prompt has 5000 tokens, the context 4096:\nshorten it or raise --ctx-size")
	h := start(t, 120, 40, Options{}, f)
	h.typed("long")
	h.keys("enter")
	h.wait("the refusal", func() bool { return h.m.state == idle })
	h.said("failed: the prompt has 5000 tokens, the context 4096: shorten it")
	h.wants("> long")
	if len(h.m.runs.All()) != 0 {
		t.Error("a refusal is in the list of runs")
	}
}

func TestCommands(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	do := func(s string) {
		h.m.prompt.Set(s)
		h.keys("enter")
		h.wait("idle", func() bool { return h.m.state == idle })
	}
	do("/lanes 3")
	do("/cache 1234")
	do("/overlap off")
	do("/release on")
	c := f.config()
	if c.lanes != 3 || c.cacheMiB != 1234 || c.overlap || !c.release {
		t.Errorf("in force: %d lanes, %d MiB, overlap %v, release %v", c.lanes, c.cacheMiB, c.overlap, c.release)
	}
	for cmd, want := range map[string]string{
		"/lanes 0": `/lanes "0": want 1 to 64`, "/lanes 65": `/lanes "65": want 1 to 64`, "/lanes x": "want 1 to 64", "/cache x": "want 1 or more MiB, or auto",
		"/release maybe": `/release "maybe": want on or off`, "/nope": "unknown command /nope", "/runs 3": "usage: /runs",
		"/lanes": "lanes 3; /lanes takes 1 to 64", "/cache": "cache 1234 MiB; /cache takes 1 or more MiB, or auto", "/threads": "threads 8",
		"/threads 4": "threads is fixed once the model is open: start with --threads 4", "/re": "unknown command /re",
	} {
		do(cmd)
		h.wants(want)
	}
	do("/cache auto")
	do("/release-mmap off")
	do("/overlap") // turns
	if c := f.config(); c.cacheMiB != 4500 || c.release || !c.overlap {
		t.Errorf("in force: %+v", c)
	}
	do("/runs")
	h.wants("no run yet")
	h.keys("esc")
	do("/new")
	if f.newChats != 1 {
		t.Error("/new did not reach the engine")
	}
	h.ask("//etc is a folder")
	h.ask("/etc/passwd is a file")
	if got := fmt.Sprintf("%q", f.prompts); got != `["/etc is a folder" "/etc/passwd is a file"]` {
		t.Errorf("sent %s", got)
	}
}

// The keys of features that are not there must not be promised.
func TestOnlyWhatWorksIsAdvertised(t *testing.T) {
	h := start(t, 200, 60, Options{}, newFake())
	for _, open := range []string{"", "tab", "f1"} {
		if open != "" {
			h.keys(open)
		}
		h.lacks("F9", "A/B", "scrub", "diagnosis")
	}
}

func TestKeyTableIsConsistent(t *testing.T) {
	for name, column := range map[string]func(*keyRow) []bind{"any": anyKeys, "panes": paneKeys, "chat": chatKeys} {
		seen := map[string]bool{}
		for i := range keyTable {
			for _, b := range column(&keyTable[i]) {
				if seen[b.key] {
					t.Errorf("%s: %q means two things", name, b.key)
				}
				seen[b.key] = true
				if name != "any" && (&Model{table: keyTable}).lookup(b.key, anyKeys).act != actNone {
					t.Errorf("%s: %q never gets there", name, b.key)
				}
			}
		}
	}
	m := start(t, 120, 40, Options{}, newFake()).m
	for i := range keyTable {
		cmd, _, _ := strings.Cut(strings.TrimPrefix(keyTable[i].cmd, "/"), " ")
		_, plain := plainCommands[cmd]
		if plain || cmd == "" || keyTable[i].view != "" {
			continue
		}
		m.say(m.th.Read, "")
		if m.command(cmd, ""); strings.Contains(m.status, "unknown command") {
			t.Errorf("/%s is in the help and does nothing", cmd)
		}
	}
}

func TestTwins(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.keys("tab")
	idleAgain := func() { h.wait("idle", func() bool { return h.m.state == idle }) }
	for _, k := range []string{"m", "]", "+", "o"} {
		h.keys(k)
		idleAgain()
	}
	c := f.config()
	if !c.release || c.lanes != 8 || c.cacheMiB != 4500 || c.overlap {
		t.Errorf("m ] + o gave %v %d %d %v", c.release, c.lanes, c.cacheMiB, c.overlap)
	}
	for _, k := range []string{"[", "-"} {
		h.keys(k)
		idleAgain()
	}
	if c := f.config(); c.lanes != 4 || c.cacheMiB != 2250 {
		t.Errorf("[ - gave %d %d", c.lanes, c.cacheMiB)
	}
	h.keys("?")
	h.wants("what it does")
	h.keys("q") // closes the page, not the program
	h.lacks("what it does")
	h.keys("3", "e")
	h.wants("▶ 3 lanes", "e or Esc closes")
	h.keys("e", "r")
	h.wants("no run yet")
	h.keys("r", "q")
	if h.m.focus != onPrompt || h.quit {
		t.Error("q does not lead back to the prompt")
	}
}

// The footer grows and shrinks with what it has to say; the rest must follow.
func TestTheFooterMayChangeItsHeight(t *testing.T) {
	for w := 110; w < 230; w += 3 {
		h := start(t, w, 30, Options{}, newFake())
		h.keys("f2", "f4", "f7")
		h.wait("idle", func() bool { return h.m.state == idle })
		h.screen()
		h.time = h.time.Add(time.Minute)
		h.screen()
		h.keys("tab")
		h.screen()
	}
}

func TestTheMousePicksPanes(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	for i, name := range []string{"1 token", "2 cache", "3 lanes", "4 file", "5 process"} {
		for y, l := range strings.Split(h.screen(), "\n") {
			if strings.Contains(l, name) {
				h.send(tea.MouseClickMsg{X: 100, Y: y, Button: tea.MouseLeft})
			}
		}
		if h.m.picked != i || h.m.focus != onPanes {
			t.Errorf("a click on %q picked pane %d", name, h.m.picked+1)
		}
		h.wants("▶ " + name)
	}
	h.send(tea.MouseClickMsg{X: 10, Y: 20, Button: tea.MouseLeft})
	if h.m.focus != onPrompt {
		t.Error("a click on the chat left the keys with the panes")
	}
	for _, p := range [][2]int{{0, 0}, {119, 39}, {119, 0}, {64, 20}, {-1, -1}} {
		h.send(tea.MouseClickMsg{X: p[0], Y: p[1], Button: tea.MouseLeft})
	}
}

// Presses that come while a change is being applied go on from its target.
func TestPressesDuringAChangeAddUp(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("hello")
	h.keys("f6", "f6", "f6", "f4", "f2", "f2", "ctrl+g")
	h.wait("the second run", func() bool { return h.m.state == idle && len(h.m.runs.All()) == 2 })
	if c := f.config(); c.cacheMiB != 9000 || c.lanes != 8 || c.release {
		t.Errorf("in force: %d MiB, %d lanes, release %v", c.cacheMiB, c.lanes, c.release)
	}
	if r := h.m.runs.All()[1]; !slices.ContainsFunc(r.Settings, func(v backend.Value) bool { return v.Shown == "9000 MiB" }) {
		t.Errorf("the run started before the changes: %v", r.Settings)
	}
}

// A line above the footer is of the last key or command, and of a moment.
func TestTheStatusLineIsOfTheMoment(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	bad := func() {
		h.typed("/cache x")
		h.keys("enter")
		h.wants(`/cache "x": want 1 or more MiB, or auto`)
	}
	bad()
	h.typed("a")
	h.lacks("want 1 or more")
	h.keys("ctrl+c") // clears the draft
	bad()
	h.time = h.time.Add(7 * time.Second)
	h.tick()
	h.lacks("want 1 or more")
	h.keys("ctrl+g")
	h.wants("nothing to repeat yet")
	h.ask("Why?")
	h.lacks("nothing to repeat yet")
	h.keys("ctrl+c", "tab", "ctrl+c")
	if h.quit {
		t.Error("a key between two Ctrl+C did not disarm the first")
	}
}

// Figures of the last run must not pass for those of settings changed since.
func TestFiguresOfTheOldSettingsSayWhoseTheyAre(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.keys("f4")
	h.wait("the lanes", func() bool { return h.f.config().lanes == 8 && h.m.state == idle })
	h.tick()
	h.lacks("settings changed") // before the first run there is nothing to mistake
	h.ask("Why?")
	h.lacks("settings changed")
	h.keys("f3")
	h.wait("the lanes", func() bool { return h.f.config().lanes == 4 && h.m.state == idle })
	h.tick()
	h.wants("settings changed after run 1", "a read takes 2.49 ms", "run 1: hits 60.9 %")
	h.lacks("now 926 MiB/s")
	h.keys("ctrl+g")
	h.wait("the second run", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
	h.tick()
	h.wants("now 926 MiB/s")
	h.lacks("settings changed", "run 1: hit")
}

func TestCtrlDInAnEmptyPromptQuits(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.typed("ab")
	h.keys("home", "ctrl+d")
	if got := h.m.prompt.Value(); got != "b" || h.quit {
		t.Fatalf("Ctrl+D in a prompt left %q", got)
	}
	h.m.prompt.Clear()
	h.keys("ctrl+d")
	h.wait("the end", func() bool { return h.quit })
}

func TestCtrlZWaitsForTheAnswer(t *testing.T) {
	h := midRun(t, 120, 40, 3)
	h.keys("ctrl+z")
	h.wants("not now: an answer is being written")
	h.finish()
	stops := 0
	h.m.suspend = func() { stops++ }
	h.keys("ctrl+z")
	if stops != 1 {
		t.Error("Ctrl+Z does not suspend")
	}
	h.send(resumedMsg{})
	h.wants("there is no shell to go back to")
}

func TestCommandsInCapitals(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.typed("/OVERLAP OFF")
	h.keys("enter")
	h.wait("the change", func() bool { return !f.config().overlap && h.m.state == idle })
	h.typed("/cache auto")
	h.keys("enter")
	h.wait("the change", func() bool { return f.config().cacheMiB == 4500 && h.m.state == idle })
}

func TestAnEmptyChatSaysWhatToAsk(t *testing.T) {
	f := newFake()
	f.warnings = []string{"the budget is below one token cycle"}
	h := start(t, 80, 24, Options{}, f)
	h.wants("! the budget", "Tell me a story about a dog.")
	h.ask("Why?")
	h.lacks("Tell me a story")
	h.keys("ctrl+n")
	h.wait("the new chat", func() bool { return h.m.state == idle })
	h.wants("Tell me a story about a dog.", "new chat")
}

// TestASettingMoreIsInEveryFace gives the backend a row more, which the screen
// knows nothing of, and finds it wherever settings are shown or changed.
func TestASettingMoreIsInEveryFace(t *testing.T) {
	f := newFake()
	f.more = []backend.Setting{{Name: "drop-cold", Flag: "drop-cold-experts", Help: "skip experts that are cold, unlike {overlap=off}", Kind: backend.Word,
		Words: []string{"never", "always"}, Want: "never, always", Default: "never", Value: "never", Origin: backend.FromDefault, Live: true, Main: true, Lossy: true}}
	h := start(t, 200, 80, Options{}, f)
	do := func(s string) {
		h.m.prompt.Set(s)
		h.keys("enter")
		h.wait("idle", func() bool { return h.m.state == idle })
	}
	h.keys("f1")
	h.wants("/drop [never|always]", "skip experts that are cold")
	h.keys("esc")
	h.ask("hello")
	do("/drop-cold")
	h.wants("drop-cold never; /drop takes never, always")
	do("/drop maybe")
	h.wants(`/drop "maybe": want never, always`)
	do("/drop always")
	h.said("drop-cold always: applied")
	do("/again")
	h.wait("the second run", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
	h.said("run 2 against run 1 (drop-cold always)")
	do("/runs")
	h.wants("drop-cold always", "drop-cold never")

	in := strings.NewReader("/drop\n/drop-cold sometimes\n/drop always\n/help\n/quit\n")
	var out strings.Builder
	g := newFake()
	g.more = slices.Clone(f.more)
	g.more[0].Value = "never"
	o := Options{Plain: true, Input: in, Output: &out, Environ: []string{"TERM=dumb"}, Open: func(func(string, float64)) (backend.Backend, error) { return g, nil }}
	if err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"drop-cold never; /drop takes never, always", `/drop "sometimes": want never, always`, "drop-cold always: applied", "/drop [never|always]: skip experts that are cold"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// TestABackendWithoutSettings offers no keys for them and says so of commands.
func TestABackendWithoutSettings(t *testing.T) {
	f := newFake()
	o := Options{Open: func(func(string, float64)) (backend.Backend, error) { return struct{ backend.Backend }{f}, nil }}
	h := start(t, 120, 40, o, f)
	h.lacks("F2 release-mmap", "F3/F4 lanes", "F7 overlap")
	h.keys("f4")
	h.wants("there is no such setting here")
	h.m.prompt.Set("/lanes 2")
	h.keys("enter")
	h.wants("unknown command /lanes")
	h.ask("hello")
	h.keys("ctrl+g")
	h.wait("the second run", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
}

// The last pane says why, with the key or the command that acts on it.
func TestWhyItIsSlow(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.wants("6 why it is slow  ask something first")
	h.ask("Why?")
	s := h.m.live
	s.Cache.Fits = profile.Some[int64](4000 * units.MiB)
	s.Cache.WhatIf[0] = profile.WhatIf{Budget: 4000 * units.MiB, Hit: profile.Some(71.0), TPS: profile.Some(5.2)}
	s.Cache.WhatIfs = 1
	s.Lanes.Alone, s.Lanes.RateRun = profile.Some(231.0*units.MiB), profile.Some(231.0*units.MiB)
	h.m.show(s)
	h.typed("/why")
	h.keys("enter")
	h.wants("58 % of a token waits for the drive", "/cache 4000 fits in memory: 71.0 % hits, about 5.20 tokens/s [estimated]",
		"4 lanes together give 1.0x what one alone gives here", "F2 and the question again tell")
	h.keys("esc")
	h.wants("> ask something", "6 why it is slow  2 findings")
}
