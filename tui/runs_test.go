package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/profile"
	"bmoe/tui/chat"

	tea "charm.land/bubbletea/v2"
)

func TestAgainComparesTheTwoRuns(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	h.said("run 2 against run 1 (release-mmap on): faster +", "; 4.70 tok/s from 3.12; text identical")
	h.keys("f10")
	h.wants("1      lanes 4", "base", "2      release-mmap on", "faster +", "identical")
	h.keys("esc")
	h.lacks("settings that differ")
}

func TestADifferentTextIsNoticed(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	h.f.script = append([]backend.Delta{{Text: "No. "}}, h.f.script...)
	h.keys("ctrl+g")
	h.wait("the third run", func() bool { return len(h.m.runs.All()) == 3 && h.m.state == idle })
	h.said("text DIFFERS")
}

func TestRunsThatCannotBeComparedSayWhy(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	h.ask("And on Linux?")
	h.keys("ctrl+g")
	h.wait("the fourth run", func() bool { return len(h.m.runs.All()) == 4 && h.m.state == idle })
	h.said("run 4 against run 3 (same settings): not comparable: warm cache (run 3); text identical")
	h.keys("f10", "up", "enter") // run 3 becomes the base
	h.wants("3      base (chosen)", "not comparable")
	h.keys("up")
	h.wants("not comparable: another start")
	h.keys("down")
	h.keys("enter") // and is let go
	h.lacks("(chosen)")
	h.wants("│ Why is this laptop slow?", "│ And on Linux?", "Esc close", "lanes 4, cache 3000 MiB, overlap on, release-mmap on")
	h.lacks("q quit")
	h.keys("esc", "ctrl+g")
	h.wait("the fifth run", func() bool { return len(h.m.runs.All()) == 5 && h.m.state == idle })
	h.keys("f10", "down", "down")
	h.wants("4 x2", "2 equal runs, median 4.70 tok/s, from lowest to highest 0")
}

// From the second question on there is no run that started alike: again makes
// both, under the old settings and under those in force, and compares them.
func TestAToggleAndAgainAlwaysCompare(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.ask("And on Linux?")
	h.keys("f2")
	h.wait("the release", func() bool { return f.config().release && h.m.state == idle })
	h.keys("ctrl+g")
	h.wait("both legs", func() bool { return len(h.m.runs.All()) == 4 && h.m.state == idle })
	h.said("release-mmap off: applied", "release-mmap on: applied", "run 4 against run 3 (release-mmap on): faster +")
	var tags []string
	for _, b := range h.m.chat.Blocks() {
		if b.Kind == chat.FromModel {
			tags = append(tags, b.Tag)
		}
	}
	if want := []string{"run 1", "run 2", "run 3 again, 1 of 2", "run 4 again, 2 of 2"}; !slices.Equal(tags, want) {
		t.Errorf("answers %q, want %q", tags, want)
	}
	if !f.config().release {
		t.Error("the settings did not end as the user set them")
	}
	h.keys("f4", "ctrl+g") // now there is a run to compare with
	h.wait("one more run", func() bool { return len(h.m.runs.All()) == 5 && h.m.state == idle })
	h.said("run 5 against run 3 (lanes 8, release-mmap on): faster +")
}

// A pair that is stopped in its first leg leaves the settings as the user set them.
func TestAStoppedPairKeepsTheSettings(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.ask("And on Linux?")
	h.keys("f2")
	h.wait("the release", func() bool { return f.config().release && h.m.state == idle })
	f.step = make(chan struct{})
	h.keys("ctrl+g")
	for range 20 {
		f.step <- struct{}{}
	}
	h.keys("esc")
	h.wait("the stop", func() bool { return h.m.state == idle })
	if got := len(h.m.runs.All()); got != 3 || !f.config().release || backend.Find(h.m.settings, "release-mmap").Value != backend.On {
		t.Errorf("%d runs, release-mmap %v", got, f.config().release)
	}
	h.said("stopped")
}

// A run stopped with Esc is compared over the tokens that both have.
func TestAStoppedRunIsCompared(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.keys("f2")
	h.wait("the release", func() bool { return f.config().release && h.m.state == idle })
	f.step = make(chan struct{})
	h.keys("ctrl+g")
	for range 30 {
		f.step <- struct{}{}
	}
	h.keys("esc")
	h.wait("the stop", func() bool { return h.m.state == idle })
	h.said("run 2 against run 1 (release-mmap on): faster +", "tokens that both have; text identical")
}

func TestADisturbedRunIsNotCompared(t *testing.T) {
	f := newFake()
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	f.disturbed.CPU = profile.Some(true)
	h.keys("f2")
	h.wait("the release", func() bool { return f.config().release && h.m.state == idle })
	h.keys("ctrl+g")
	h.wait("the second run", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
	h.said("hits 60.9 %; disturbed: CPU", "run 2 against run 1 (release-mmap on): not comparable: disturbed: CPU; text identical")
	h.keys("f10")
	h.wants("not comparable: d")
}

func TestNothingToRepeat(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	h.keys("ctrl+g")
	h.wants("nothing to repeat yet")
	h.ask("hello")
	h.keys("ctrl+n")
	h.wait("the new chat", func() bool { return h.m.state == idle })
	h.lacks("hello")
	h.keys("ctrl+g")
	h.wants("nothing to repeat yet")
}

func TestARunThatBreaksPartWaySaysSo(t *testing.T) {
	f := newFake()
	f.breaks = errors.New("read model.gguf at 4096: input/output error")
	h := start(t, 120, 40, Options{}, f)
	h.ask("Why?")
	h.said("failed: read model.gguf at 4096: input/output error")
	if len(h.m.runs.All()) != 1 {
		t.Error("the broken run is not in the list")
	}
}

// On leaving, the last runs stay on the terminal as a short table.
func TestTheLastRunsAreToldOnLeaving(t *testing.T) {
	h := start(t, 80, 24, Options{}, newFake())
	for range 1 + lastRuns {
		h.ask("Why?") // with a warm cache from the second on: none is pooled
	}
	lines := h.m.farewell()
	if len(lines) != 1+lastRuns || !strings.Contains(lines[0], "the last 5 of 6") || !strings.HasPrefix(lines[lastRuns], "6 ") || !strings.Contains(lines[lastRuns], "identical") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if h.m.th.Width(l) > 80 {
			t.Errorf("%d columns: %q", h.m.th.Width(l), l)
		}
	}
}

// A run of seconds a token must not make those of milliseconds unreadable.
func TestTimesATokenAreListedInMilliseconds(t *testing.T) {
	h := afterPair(t, 120, 40, Options{})
	h.keys("f10")
	h.wants("sync in ms a token", "78.8")
	r := h.m.runs.All()[0]
	r.Result.PerToken.Wall, r.Result.PerToken.Stall, r.Result.PerToken.Mgmt = profile.Some(3.2), profile.Some(2.5), profile.Some(0.00002)
	h.wants("2500", "0.02", "78.8")
}

func TestARunsFlagsAreInTheList(t *testing.T) {
	h := afterPair(t, 80, 24, Options{})
	h.m.runs.All()[0].Result.Flags = []string{"simulated", "traced"}
	h.keys("f10")
	h.wants("SIM, TRACED")
	for _, w := range []int{78, 80, 110, 200} {
		h.send(tea.WindowSizeMsg{Width: w, Height: 24})
		h.wants("SIM, TRACED")
	}
}

func TestARunStoppedInPrefillSaysSo(t *testing.T) {
	f := newFake()
	f.step = make(chan struct{})
	h := start(t, 120, 40, Options{}, f)
	h.typed("Why?")
	h.keys("enter")
	for h.m.live.Prompt != 24 {
		time.Sleep(time.Millisecond)
		h.tick()
	}
	f.mu.Lock()
	f.s.PromptDone = 16
	f.mu.Unlock()
	h.keys("esc")
	h.wants("stopping after this token")
	h.wait("the end", func() bool { return h.m.state == idle })
	h.said("stopped in prefill after 16 of 24 prompt tokens")
	h.lacks("stopping", "0 tokens")
	h.keys("f10")
	h.wants("1      stopped in prefill")
	h.lacks("n/a tok/s", "n/a ms/token")
}
