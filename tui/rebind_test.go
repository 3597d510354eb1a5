package tui

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Keys that the user gives act in place of those that were there, and the footer, the
// help and the page of settings say so.
func TestOtherKeys(t *testing.T) {
	k := Keys{"again": {"ctrl+r"}, "lanes-up": {"f12", "U"}, "settings": {"f9"}, "new": {"ctrl+g"}, "freeze": {"P"}}
	if err := k.Check(); err != nil {
		t.Fatal(err)
	}
	h := start(t, 200, 60, Options{Keys: k}, newFake())
	h.wants("F3/F12 lanes", "^R again", "^G new chat", "F9 settings")
	h.ask("Why?")
	h.keys("ctrl+r")
	h.wait("the second run", func() bool { return len(h.m.runs.All()) == 2 && h.m.state == idle })
	h.keys("f4") // no longer
	if h.f.config().lanes != 4 {
		t.Error("F4 still changes the lanes")
	}
	h.m.setFocus(onPanes)
	h.keys("U")
	h.idle()
	h.keys("P")
	if h.f.config().lanes != 8 || h.m.frozen == nil {
		t.Errorf("%d lanes, frozen %v", h.f.config().lanes, h.m.frozen != nil)
	}
	h.keys("f9")
	h.wants("settings", "F3 F12")
	h.keys("f1")
	h.wants("F3 F12", "[ U", "^R")
	h.keys("esc", "esc", "esc")
	h.keys("ctrl+g")
	h.idle()
	if h.f.newChats != 1 {
		t.Errorf("%d new chats", h.f.newChats)
	}
}

// What cannot be given is refused in a line that names both.
func TestKeysThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		keys Keys
		want []string
	}{
		{Keys{"agian": {"f9"}}, []string{"agian: nothing is called so", "again", "lanes-up"}},
		{Keys{"again": {"ctrl+n"}}, []string{"again: ctrl+n is the key of new"}},
		{Keys{"models": {"f9"}, "again": {"f9"}}, []string{"f9 is the key of", "again", "models"}},
		{Keys{"freeze": {"q"}}, []string{"freeze: q is the key of leave"}},
		{Keys{"freeze": {"3"}}, []string{"freeze: 3 is the key of pane"}},
		{Keys{"new": {"ctrl+c"}}, []string{"new: ctrl+c cannot be given: it ends"}},
		{Keys{"new": {"ctrl+m"}}, []string{"Enter"}},
		{Keys{"new": {"F9"}}, []string{`new: "F9" is no key`}},
		{Keys{"new": {""}}, []string{"no key"}},
	} {
		err := c.keys.Check()
		var k *KeyError
		if !errors.As(err, &k) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", c.keys, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q lacks %q", c.keys, err, want)
			}
		}
	}
	if err := (Keys{"again": {"ctrl+n"}, "new": {"ctrl+g"}}).Check(); err != nil {
		t.Errorf("keys that change places: %v", err)
	}
}

// The manual names all that can be given keys.
func TestManualNamesWhatCanBeGivenKeys(t *testing.T) {
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "In `[keys]`")
	part, _, _ = strings.Cut(part, "\n\n")
	if len(actions()) < 20 {
		t.Errorf("actions: %q", actions())
	}
	for _, name := range actions() {
		if !strings.Contains(part, "`"+name+"`") {
			t.Errorf("%s is not in it", name)
		}
	}
}
